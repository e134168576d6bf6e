"""The reconcile loop against two brokers: what it makes, what it leaves alone, and what it only tells."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.steps import AlterConfig
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.spec import FlowSpec
from reconciler.operate.flows.following import growing
from reconciler.operate.planning import observe_and_plan
from reconciler.replicator.driver.refresh import Refresh
from reconciler.replicator.partition.shares import Shares
from reconciler.state import control
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import create, declared, delete, grow, partitions, set_config, topic_configs, topic_id
from tests.support.replicator.announced import announced
from tests.support.replicator.copying import Running, at, code, fill, identical


class Looked:
    """A flow with a name of its own, and what its loop says."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, **fields: Any) -> None:
        clusters = {"east": declared("east", source), "west": declared("west", target)}
        flow = replace(Flow(topic[-8:], "east", "west", Selection((f"{topic}.*",))), **fields)
        self.topology = Topology("tests", clusters, (flow,))
        self.spec = FlowSpec.compile(self.topology, flow, uuid.uuid4().hex)
        self.warnings: list[str] = []
        self.notes: list[str] = []
        Journal(self.spec.target, own(self.spec.topology).control).ensure()
        self.refresh = Refresh(self.spec, growing(self.topology), self.warnings.append, self.notes.append)

    def shares(self) -> Shares:
        found = announced(self.spec.target, self.spec.seal)
        assert found is not None
        return Shares.from_json(found)


@pytest.fixture
def looked(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Looked:
    return Looked(source_cluster, target_cluster, topic_name)


def test_remote_topics_are_made_and_grow_as_apply_would_do_it(
    looked: Looked, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name, 2, {"retention.ms": "86400000", "segment.ms": "86400000"})
    looked.refresh.look()
    assert (partitions(target_cluster, remote), looked.warnings) == (2, [])
    assert topic_configs(target_cluster, remote)["retention.ms"] == "86400000"
    plan, _ = observe_and_plan(looked.topology, ("west",))
    assert plan.is_empty

    grow(source_cluster, topic_name, 3)
    set_config(source_cluster, topic_name, "retention.ms", "172800000")
    set_config(target_cluster, remote, "segment.ms", "3600000")
    looked.refresh.look()
    assert partitions(target_cluster, remote) == 3
    assert looked.shares().topics[topic_name].late == (2,)
    found = topic_configs(target_cluster, remote)
    assert (found["retention.ms"], found["segment.ms"]) == ("172800000", "3600000"), "changes there wait for apply"
    (change,) = [
        step for step in observe_and_plan(looked.topology, ("west",))[0].steps if isinstance(step, AlterConfig)
    ]
    assert [(one.key, one.old, one.new, one.reason) for one in change.changes] == [
        ("segment.ms", "3600000", "86400000", "target-change")
    ]
    assert [note.partition(": ")[2] for note in looked.notes] == [
        f"made {remote}, 2 partitions",
        f"enlarged {remote}, 3 partitions",
        f"set retention.ms of {remote}",
    ]
    assert len(looked.shares().of(0)) == 3
    looked.refresh.look()
    assert (len(looked.notes), looked.warnings) == (3, [])


def test_a_topic_that_is_gone_is_told_once_and_nothing_is_deleted(
    looked: Looked, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    looked.refresh.look()
    delete(source_cluster, topic_name)
    looked.refresh.look()
    looked.refresh.look()
    (warning,) = looked.warnings
    assert f"topic {topic_name} is gone from east; its copy east.{topic_name} stays" in warning
    assert partitions(target_cluster, f"east.{topic_name}") == 1
    assert len(looked.shares().of(0)) == 1, "its task keeps it, and says why it stands"
    create(source_cluster, topic_name)
    looked.refresh.look()
    delete(source_cluster, topic_name)
    looked.refresh.look()
    assert len(looked.warnings) == 2, "it was there meanwhile"


def test_a_topic_that_must_not_be_touched_is_left_out_alone_until_that_is_mended(
    looked: Looked, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    foreign = f"{topic_name}-foreign"
    create(target_cluster, f"east.{foreign}")
    for topic in (topic_name, foreign):
        create(source_cluster, topic)
        fill(source_cluster, topic, 10)
    looked.refresh.look()
    looked.refresh.look()
    (warning,) = looked.warnings
    assert "AB401" in warning
    assert f"topic {foreign} is not copied" in warning
    assert [place.topic for place in looked.shares().of(0)] == [topic_name]
    with Running(looked.spec, places=[]) as running:
        running.wait(lambda status: {partition.lag for partition in status.partitions} == {0})
        delete(target_cluster, f"east.{foreign}")
        looked.refresh.look()
        running.wait(lambda status: [partition.lag for partition in status.partitions] == [0, 0])
    assert identical(looked.spec, topic_name, foreign) == 20


def test_who_waits_for_a_remote_topic_goes_on_as_soon_as_it_is_made(
    looked: Looked,
    source_cluster: EmbeddedCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.replicator.partition.backoff._PARKED", (3_600.0, 3_600.0))
    create(source_cluster, topic_name)
    fill(source_cluster, topic_name, 10)
    with Running(looked.spec) as running:
        running.wait(lambda status: code(at(status, topic_name)) == "AB214")
        looked.refresh.look()
        running.wait(lambda status: at(status, topic_name).lag == 0)
    assert identical(looked.spec, topic_name) == 10


def test_without_reconciling_partitions_are_shared_out_all_the_same(
    looked: Looked, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    Refresh(looked.spec, None, looked.warnings.append, looked.notes.append).look()
    assert len(looked.shares().of(0)) == 2
    assert (looked.notes, looked.warnings) == ([], [])


def test_what_another_tool_declares_is_copied_to_as_soon_as_it_fits(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    looked = Looked(source_cluster, target_cluster, topic_name, create=False)
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name, 2, {"retention.ms": "86400000"})
    fill(source_cluster, topic_name, 20, partitions=2)
    looked.refresh.look()
    assert f"{remote} is not there, and flow" in looked.warnings[-1]
    create(target_cluster, remote, 1)
    looked.refresh.look()
    assert f"{remote} has 1 partitions, and its original 2" in looked.warnings[-1]
    grow(target_cluster, remote, 2)
    before = topic_configs(target_cluster, remote)
    with Running(looked.spec) as running:
        looked.refresh.look()
        assert len(looked.shares().of(0)) == 2
        running.wait(lambda status: [one.lag for one in status.partitions] == [0, 0])
    assert identical(looked.spec, topic_name) == 20
    plan, _ = observe_and_plan(looked.topology, ("west",))
    assert (plan.is_empty, plan.clusters[0].not_started) == (True, ())
    assert any("retention.ms is -1, expected 86400000" in one.message for one in plan.clusters[0].warnings)
    assert topic_configs(target_cluster, remote) == before
    assert remote not in Ownership(looked.spec.target, looked.spec.topology).read()


def test_tasks_are_told_of_a_copy_that_was_made_when_they_can_be(
    looked: Looked, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would wait for minutes, as nothing is made a second time."""
    create(source_cluster, topic_name, 1)
    whole, told = control.restart, []

    def restart(cluster: Cluster, topology: str, scopes: Sequence[PauseScope], *, parked_only: bool) -> None:
        told.append((list(scopes), parked_only))
        if len(told) == 1:
            raise Unreachable(Problem("AB310", "west", "does not answer", "wait"))
        whole(cluster, topology, scopes, parked_only=parked_only)

    monkeypatch.setattr(control, "restart", restart)
    for _ in range(3):
        looked.refresh.look()
    scopes = [PauseScope(looked.spec.flow.name, topic_name)]
    assert told == [(scopes, False), (scopes, False)]


def test_the_copy_of_a_topic_made_anew_is_not_enlarged_until_that_is_declared(
    looked: Looked, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    remote = f"east.{topic_name}"

    def recorded() -> tuple[int, str]:
        record = Ownership(looked.spec.target, looked.topology.name).read()[remote]
        return record.partitions, record.source_topic_id

    create(source_cluster, topic_name, 2, {"retention.ms": "86400000"})
    looked.refresh.look()
    fill(target_cluster, remote, 10)
    before = recorded()
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name, 3)
    looked.refresh.look()
    assert (partitions(target_cluster, remote), recorded(), topic_configs(target_cluster, remote)["retention.ms"]) == (
        2,
        before,
        "86400000",
    )
    assert [f"east's {topic_name} was made anew since the last apply" in one for one in looked.warnings] == [True]
    plan, _ = observe_and_plan(looked.topology, ("west",))
    assert plan.steps == ()
    (flow,) = looked.topology.flows
    going_on = replace(looked.topology, flows=(replace(flow, on_recreate="restart"),))
    Refresh(FlowSpec.compile(going_on, going_on.flows[0], "next"), growing(going_on), print, print).look()
    assert (partitions(target_cluster, remote), recorded()) == (3, (3, topic_id(source_cluster, topic_name)))
