"""Whole topics, for a provisioner that resets what is not declared and deletes what is not named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic, WholeTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.whole import whole_topics
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, record, topic, topology

DECLARED = topology()
SOURCE = cluster(EAST, topic("orders", 6, configs={"retention.ms": "5", "max.message.bytes": "1000"}))


def wanted() -> DesiredTopic:
    (one,) = desired_topics(DECLARED, {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])
    return one


def whole(
    target: ObservedCluster, source: ObservedCluster = SOURCE, declared: Topology = DECLARED
) -> tuple[WholeTopic, ...]:
    return whole_topics(declared, {EAST: source, WEST: target}, [WEST])


def standing(partitions: int = 6, replication: int = 3, **configs: str) -> ObservedCluster:
    """The target after an apply, with settings changed since; underscores stand for dots."""
    now = dict(wanted().configs) | {key.replace("_", "."): value for key, value in configs.items()}
    found = replace(made(wanted()), configs=now, partitions=partitions, replication_factor=replication)
    return cluster(WEST, found, owned=[record(wanted(), DECLARED)])


def test_a_new_topic_is_as_desired() -> None:
    (one,) = whole(cluster(WEST))
    assert one == WholeTopic(WEST, "us-east.orders", "us-east-eu-west", 6, 3, wanted().configs)


def test_what_others_have_set_is_declared_too() -> None:
    (one,) = whole(standing(flush_ms="1000"))
    assert one.configs == dict(wanted().configs) | {"flush.ms": "1000"}


def test_drift_is_declared_as_desired_and_a_larger_limit_stays() -> None:
    (one,) = whole(standing(retention_ms="1", max_message_bytes="2000"))
    assert (one.configs["retention.ms"], one.configs["max.message.bytes"]) == ("5", "2000")


def test_what_the_source_no_longer_sets_is_not_declared_any_more() -> None:
    with_segments = replace(record(wanted(), DECLARED), configs={**wanted().configs, "segment.bytes": "9"})
    target = replace(standing(segment_bytes="9"), owned={"us-east.orders": with_segments})
    (one,) = whole(target)
    assert "segment.bytes" not in one.configs


def test_partitions_never_shrink_and_replication_is_the_topics_own() -> None:
    (one,) = whole(standing(partitions=8, replication=2))
    assert (one.partitions, one.replication_factor) == (8, 2)


@pytest.mark.parametrize("source", [cluster(EAST), cluster(EAST, topic("others"))])
def test_a_topic_whose_source_is_gone_stays_declared_as_it_is(source: ObservedCluster) -> None:
    left = [one for one in whole(standing(retention_ms="1"), source) if one.name == "us-east.orders"]
    (one,) = left
    assert (one.flow, one.partitions, one.configs["retention.ms"]) == ("us-east-eu-west", 6, "1")


def test_a_topic_whose_flow_is_gone_stays_declared_below_its_former_flow() -> None:
    declared = topology(flow(name="new", include=["others"]))
    (one,) = whole(standing(), declared=declared)
    assert (one.name, one.flow) == ("us-east.orders", "us-east-eu-west")


def test_other_topologies_topics_are_not_declared() -> None:
    foreign = record(wanted(), topology(name="billing"))
    target = cluster(WEST, made(wanted()), owned=[foreign])
    assert whole(target, cluster(EAST)) == ()


def test_what_a_flow_into_another_alias_of_the_cluster_fills_is_not_declared() -> None:
    again = topology(flow(include=["others"]), flow(target="eu-again", name="us-east-eu-west-again"))
    elsewhere = replace(record(wanted(), again), flow="us-east-eu-west-again")
    target = replace(standing(), owned={"us-east.orders": elsewhere})
    assert whole(target, declared=again) == ()


def test_what_nobody_could_make_is_refused() -> None:
    declared = topology(flow(policy=ReplicationPolicy("identity"), replication_factor=9))
    with pytest.raises(Refused, match="AB403"):
        whole(cluster(WEST), declared=declared)
