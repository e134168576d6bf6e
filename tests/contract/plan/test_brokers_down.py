"""A broker that is down for a moment makes no topic smaller: copies, our own topics, and what commands make beside.

It needs a cluster of its own, as it kills a broker.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.failover.topics.topics import Shape, Topics
from reconciler.model.base.errors import Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.names.selection import Selection
from reconciler.observe.registered import default_in, registered_in
from reconciler.observe.topology import observe, observe_owned
from reconciler.plan.build import build_plan
from reconciler.plan.findings.drift import drift_of
from reconciler.provision.direct import DirectProvisioner
from reconciler.replicator.gaps.probe import check
from reconciler.state import syncs
from reconciler.state.journals.topics import own
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared, metadata
from tests.support.waiting import eventually

SOURCE, TARGET = "north", "south"
SECONDS = 300.0
# A broker that is gone is fenced soon.
QUICK = {"default.replication.factor": "2", "broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}


def replicas(cluster: EmbeddedCluster) -> dict[str, set[int]]:
    topics = metadata(cluster).topics
    return {name: {len(one.replicas) for one in topic.partitions.values()} for name, topic in topics.items()}


@pytest.fixture
def one_down(make_clusters: MakeClusters) -> EmbeddedCluster:
    (three,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK))
    three.kill_broker(3)
    eventually("broker 3 is not listed", lambda: metadata(three).brokers, lambda found: 3 not in found)
    return three


def test_whatever_is_made_while_a_broker_is_down_gets_all_its_replicas(
    one_down: EmbeddedCluster, topic_name: str
) -> None:
    target = declared(TARGET, one_down)
    assert registered_in(target) == frozenset({1, 2, 3}), "no topic shows broker 3"
    assert default_in(target, topic_name) == 2, "as the controller says"
    create(one_down, topic_name, 2, replicas=3)
    flow = Flow("north-south", SOURCE, TARGET, Selection((topic_name,)))
    one = Topology("down", {SOURCE: declared(SOURCE, one_down), TARGET: target}, (flow,))

    def observed_plan(topology: Topology = one):  # type: ignore[no-untyped-def]
        seen = observe(topology, [TARGET])
        assert (seen[TARGET].brokers, seen[TARGET].down) == (3, (3,))
        return build_plan(topology, seen, [TARGET])

    plan = observed_plan()
    assert any("1 of 3 brokers are down (ids 3)" in notice.message for notice in plan.clusters[0].warnings)
    outcome = DirectProvisioner(one).apply(plan)
    assert outcome.is_complete, outcome.failed
    check(target, one.name, [flow], pytest.fail)
    syncs.ensure(target, SOURCE, SECONDS)
    assert Topics(target, SECONDS).make(f"{topic_name}-diverged", Shape(1, 3), or_fewer=True)
    ours = own(one.name)
    made = [f"north.{topic_name}", *ours.names, ours.scratch, syncs_topic(SOURCE), f"{topic_name}-diverged"]
    found = eventually("all are listed", lambda: replicas(one_down), lambda seen: set(made) <= seen.keys())
    assert {name: found[name] for name in made} == {name: {3} for name in made}
    assert observed_plan().is_empty
    owned, unseen = observe_owned(one, [TARGET])
    assert (drift_of(one, owned), unseen) == ((), [])

    # The target's own default, and another factor for topics of our own.
    create(one_down, f"{topic_name}-2", 1, replicas=3)
    taking = replace(flow, topics=Selection((f"{topic_name}-2",)), replication_factor=-1)
    clusters = {**one.clusters, TARGET: replace(target, state_replication_factor=1)}
    factors = replace(one, name="factors", clusters=clusters, flows=(taking,))
    outcome = DirectProvisioner(factors).apply(observed_plan(factors))
    assert outcome.is_complete, outcome.failed
    found = replicas(one_down)
    assert found[f"north.{topic_name}-2"] == {2}
    assert {count for name in own("factors").names for count in found[name]} == {1}

    with pytest.raises(Refused, match=r"replication factor 4 is declared, and south has 3 brokers.*\[AB403\]"):
        observed_plan(replace(one, flows=(replace(flow, replication_factor=4),)))
