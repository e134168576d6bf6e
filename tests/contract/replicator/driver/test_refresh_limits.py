"""The reconcile loop and what a source invents: no look makes more than the flow's limits allow, and each is told."""

from __future__ import annotations

import uuid

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.steps import CreateTopic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.operate.flows.following import growing
from reconciler.operate.planning import observe_and_plan
from reconciler.replicator.driver.refresh import Refresh
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import create, declared, grow, names, partitions


class Looked:
    """A flow with limits, and what its loop says."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, limits: Limits) -> None:
        clusters = {"east": declared("east", source), "west": declared("west", target)}
        flow = Flow(topic[-8:], "east", "west", Selection((f"{topic}.*",)), limits=limits)
        self.topology = Topology("tests", clusters, (flow,))
        self.spec = FlowSpec.compile(self.topology, flow, uuid.uuid4().hex)
        self.warnings: list[str] = []
        Journal(self.spec.target, own(self.spec.topology).control).ensure()
        self.refresh = Refresh(self.spec, growing(self.topology), self.warnings.append, lambda _: None)

    def shared(self) -> dict[str, int]:
        return {name: len(topic.tasks) for name, topic in self.refresh._shares.topics.items()}


def test_thirty_topics_at_once_come_ten_at_a_look(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    looked = Looked(source_cluster, target_cluster, topic_name, Limits(growth=10))
    create(source_cluster, f"{topic_name}-z")
    looked.refresh.look()
    assert (looked.shared(), looked.warnings) == ({f"{topic_name}-z": 1}, [])

    new = [f"{topic_name}-{number:02}" for number in range(30)]
    for name in new:
        create(source_cluster, name)
    for look in range(1, 4):
        looked.refresh.look()
        made = {f"east.{name}" for name in [*new[: 10 * look], f"{topic_name}-z"]}
        assert {name for name in names(target_cluster) if name.startswith(f"east.{topic_name}")} == made
        assert looked.shared() == dict.fromkeys([*new[: 10 * look], f"{topic_name}-z"], 1)
        assert set(looked.refresh.left_out) == set(looked.refresh.waiting) == set(new[10 * look :])
        if look == 1:
            plan, _ = observe_and_plan(looked.topology, ("west",))
            steps = [step for step in plan.steps if isinstance(step, CreateTopic)]
            assert len(steps) == 20, "an apply goes beyond growth"
    assert len(looked.warnings) == 2 and all("[AB237]" in one for one in looked.warnings)
    assert f"at most 10 partitions at one look, found 30; not copied: {new[10]}" in looked.warnings[0]
    looked.refresh.look()
    assert len(looked.warnings) == 2


def test_a_copy_beyond_the_limit_of_partitions_goes_on_as_it_is(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    looked = Looked(source_cluster, target_cluster, topic_name, Limits(partitions=3))
    looked.refresh.look()
    grow(source_cluster, topic_name, 5)
    create(source_cluster, f"{topic_name}-a", 1)
    create(source_cluster, f"{topic_name}-b", 1)
    for _ in range(2):
        looked.refresh.look()
        assert partitions(target_cluster, f"east.{topic_name}") == 2
        assert looked.shared() == {topic_name: 2, f"{topic_name}-a": 1}
    assert set(looked.refresh.left_out) == {f"{topic_name}-b"}
    assert set(looked.refresh.waiting) == {topic_name, f"{topic_name}-b"}
    (warning,) = looked.warnings
    assert "limits.partitions: at most 3 partitions, found 7" in warning
    # A run that begins now has what is copied, and whoever makes nothing leaves the same out.
    for make in (True, False):
        refresh = Refresh(looked.spec, growing(looked.topology, make), looked.warnings.append, lambda _: None)
        refresh.look()
        assert {name: len(one.tasks) for name, one in refresh._shares.topics.items()} == looked.shared()
