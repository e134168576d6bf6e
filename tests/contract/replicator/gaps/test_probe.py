"""The probe on a real broker, and on one that seems not to be Kafka's."""

from __future__ import annotations

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Fill, Flow
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.capabilities import Capabilities, Capability, Verdict
from reconciler.records.batch import Batch
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.gaps import probe
from reconciler.replicator.gaps.trials import Scene
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from reconciler.state.probes import Probes

OURS = own("tests")


@pytest.fixture(autouse=True)
def nothing_is_known(target: Cluster, target_cluster: EmbeddedCluster) -> None:
    Journal(target, OURS.copies).ensure()
    Journal(target, OURS.copies).write(f"probe/{target_cluster.cluster_id}", None)


def flow(fill: Fill = "auto") -> Flow:
    return Flow("east-west", "east", "west", Selection(("orders",)), fill=fill)


def never(cluster: Cluster, scene: Scene, cluster_id: str) -> Capabilities:
    raise AssertionError(cluster_id)


def test_kafka_does_it_all_and_is_asked_once(
    target: Cluster, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    probe.check(target, "tests", [flow(), flow("markers")], warnings.append)
    found = Probes(target, "tests").read(target_cluster.cluster_id)
    assert found is not None
    assert {one.capability: str(one) for one in found.findings} == {one: one.value for one in Capability}
    assert {one.verdict for one in found.findings} == {Verdict.HOLDS}
    assert Ownership(target, "tests").read().keys().isdisjoint({OURS.scratch}), (
        "no record of a topic that we keep as a copy"
    )

    monkeypatch.setattr(probe, "probe", never)
    probe.check(target, "tests", [flow("markers")], warnings.append)
    assert warnings == []


def test_trials_are_repeated_on_what_others_left_behind(target: Cluster, target_cluster: EmbeddedCluster) -> None:
    probe.check(target, "tests", [flow()], pytest.fail)
    for _ in range(2):
        assert probe.probe(
            target, Scene(OURS.scratch, ProducerNames(*OURS.probe)), target_cluster.cluster_id
        ).is_sufficient


def test_a_cluster_that_deduplicates_nothing_is_refused(
    target: Cluster, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten = Batch.rewritten
    # Without a producer a broker takes every batch as new: what one that ignores producers would do.
    monkeypatch.setattr(Batch, "rewritten", lambda batch, *_producer: rewritten(batch, -1, -1, -1))
    with pytest.raises(EnvironmentFault) as caught:
        probe.check(target, "tests", [flow()], pytest.fail)
    assert [problem.code for problem in caught.value.problems] == ["AB317"] * 3
    said = [problem.message.partition(":")[0] for problem in caught.value.problems]
    assert said == [Capability.REPEAT, Capability.SEQUENCE, Capability.PRODUCERS]
    assert "expected (45, " in caught.value.problems[1].message
    assert Probes(target, "tests").read(target_cluster.cluster_id) is None, "somebody may mend it"


def test_a_cluster_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_TIMEOUT", 1.0)
    with pytest.raises(Unreachable):
        probe.check(Cluster("gone", ("127.0.0.1:1",)), "tests", [flow()], pytest.fail)
