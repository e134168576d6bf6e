"""The reconcile loop under replication policies of users: one copy, one original, whatever appears while it runs."""

from __future__ import annotations

import uuid

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.tasks.spec import FlowSpec
from reconciler.operate.flows.following import growing
from reconciler.operate.planning import observe_and_plan
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.refresh import Refresh
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import admin, create, declared
from tests.support.replicator.copying import Running, fill, identical
from tests.support.security.policy_classes import offer


class Named:
    """A flow under a policy, and the loop that looks after it."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, policy: ReplicationPolicy) -> None:
        clusters = {"east": declared("east", source), "west": declared("west", target)}
        flow = Flow(topic[-8:], "east", "west", Selection((f"{topic}.*",)), policy)
        self.topology = Topology("tests", clusters, (flow,))
        self.spec = FlowSpec.compile(self.topology, flow, uuid.uuid4().hex)
        self.warnings: list[str] = []
        Journal(self.spec.target, own(self.spec.topology).control).ensure()
        self.refresh = Refresh(self.spec, growing(self.topology), self.warnings.append, lambda _: None)

    def copied(self) -> list[str]:
        return sorted(self.refresh._shares.topics)


def test_a_newcomer_that_a_rule_gives_the_name_of_a_copy_stays_out_of_it(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    rules = (RenameRule(rf"{topic_name}[.-](\w*)", rf"all-{topic_name}-\1", place="shop.yaml:8:7 (policy.rules[0])"),)
    named = Named(source_cluster, target_cluster, topic_name, ReplicationPolicy("rename", rules=rules))
    first, newcomer, other = f"{topic_name}.eu", f"{topic_name}-eu", f"{topic_name}-us"
    create(source_cluster, first)
    fill(source_cluster, first, 10)
    named.refresh.look()
    assert (named.copied(), named.warnings) == ([first], [])
    with Running(named.spec, places=[]) as running:
        running.wait(lambda status: {partition.lag for partition in status.partitions} == {0})
        for topic in (newcomer, other):
            create(source_cluster, topic)
            fill(source_cluster, topic, 5)
        named.refresh.look()
        named.refresh.look()
        (warning,) = named.warnings
        assert f"topic {newcomer} is not copied: shop.yaml:8:7 (policy.rules[0])" in warning
        assert f"found all-{topic_name}-eu for {newcomer}, {first} of east; it is the copy of {first}" in warning
        assert "[AB408]" in warning
        assert named.copied() == [other, first] if other < first else [first, other]
        fill(source_cluster, first, 10)
        running.wait(lambda status: [partition.lag for partition in status.partitions] == [0, 0])
    assert identical(named.spec, first, other) == 25

    with pytest.raises(Refused) as refused:
        observe_and_plan(named.topology, ("west",))
    assert [problem.code for problem in refused.value.problems] == ["AB408"]
    # Whoever begins anew and has nobody to look after remote topics copies neither of the two.
    alone: list[str] = []
    refresh = Refresh(named.spec, None, alone.append, lambda _: None)
    refresh.look()
    assert sorted(refresh.left_out) == sorted([first, newcomer])
    assert sorted(refresh._shares.topics) == [other]
    assert len(alone) == 2


def test_a_class_that_fails_or_lumps_leaves_those_topics_out_and_copies_the_others(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, lumping="Silent")
    good, one, two, bad = (f"{topic_name}-{name}" for name in ("good", "one", "two", "bad"))
    options = ((bad, "no:name"), (good, f"{topic_name}-copy"), (one, f"{topic_name}-all"), (two, f"{topic_name}-all"))
    policy = ReplicationPolicy("class", entry_point="lumping", options=options, place="shop.yaml:7:30 (policy.class)")
    named = Named(source_cluster, target_cluster, topic_name, policy)
    for topic in (good, one, two, bad):
        create(source_cluster, topic)
        fill(source_cluster, topic, 5)
    with pytest.raises(Refused) as refused:
        observe_and_plan(named.topology, ("west",))
    assert sorted(problem.code for problem in refused.value.problems) == ["AB406", "AB408"]
    assert all(problem.where == policy.place for problem in refused.value.problems)
    named.refresh.look()
    assert named.copied() == [good]
    assert sorted(named.refresh.left_out) == sorted([one, two, bad])
    assert {place.topic: place.remote for place in discovery.matching(named.spec)}[bad] == "", (
        "nobody takes it for copied"
    )
    with Running(named.spec, places=[]) as running:
        named.refresh.look()
        running.wait(lambda status: [partition.lag for partition in status.partitions] == [0])
    assert identical(named.spec, good) == 5
    there = {name for name in admin(target_cluster).list_topics(timeout=30).topics if topic_name in name}
    assert there == {f"{topic_name}-copy"}
