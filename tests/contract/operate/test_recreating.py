"""`recreate` deletes a copy and has it copied again while its task runs; the flow's other topics go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.tasks.seal import new_key
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.state import control
from tests.support.clusters.kafka import create, delete, names, topic_id
from tests.support.commands import one_flow
from tests.support.commands.command import Ended, anabranch
from tests.support.replicator.copying import SECONDS, Running, all_running, at, code, fill, identical
from tests.support.replicator.translated import assert_in_order

REFUSED = 4
PAUSED = PartitionState.PAUSED
# Whichever is seen first: another writer, a copy that is longer than its original, or a record that differs.
BROKEN = {"AB209", "AB210", "AB211"}
MODES = ["identical", "translated"]


@dataclass(frozen=True)
class Scene:
    """A topology with one flow that takes two topics, applied, and a run of it that has copied both."""

    file: Path
    spec: FlowSpec
    running: Running
    source: EmbeddedCluster
    target: EmbeddedCluster
    one: str
    other: str

    def recreate(self, topic: str, *options: str) -> Ended:
        return anabranch("recreate", self.file, "--target", f"east.{topic}", "--yes", *options)

    def paused(self) -> list[str]:
        rules = control.PauseRules(self.spec.target, self.spec.topology, SECONDS)
        try:
            return [str(scope) for scope, _ in rules.current().of(self.spec.flow.name)]
        finally:
            rules.close()

    def assert_copied(self, topic: str) -> None:
        if self.spec.flow.offsets == "identical":
            assert identical(self.spec, topic) > 0
        else:
            assert assert_in_order(self.spec, topic) > 0


@pytest.fixture(params=MODES)
def scene(
    request: pytest.FixtureRequest,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
) -> Iterator[Scene]:
    one, other = f"{topic_name}-one", f"{topic_name}-other"
    for topic in (one, other):
        create(source_cluster, topic, 2)
        fill(source_cluster, topic, 400, 2)
    ends = source_cluster, target_cluster
    file = one_flow.write(tmp_path / "shop.yaml", one_flow.name_of(topic_name), ends, f"{topic_name}-.*")
    file.write_text(file.read_text().replace("tasks: 1", f"tasks: 1, offsets: {request.param}"))
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied
    if (syncs := syncs_topic("east")) not in names(target_cluster):
        create(target_cluster, syncs, 1, {"cleanup.policy": "compact"})
    topology = load((file,))
    (flow,) = topology.flows
    spec = FlowSpec.compile(topology, flow, new_key())
    with Running(spec) as running:
        running.wait()
        yield Scene(file, spec, running, source_cluster, target_cluster, one, other)


def test_a_copy_that_another_producer_wrote_to_is_copied_again_beside_its_run(scene: Scene) -> None:
    copy, before = f"east.{scene.one}", topic_id(scene.target, f"east.{scene.one}")
    stray = Producer(scene.target.client_config() | {"log_level": "2"})
    stray.produce(copy, b"stray", partition=1)
    assert stray.flush(SECONDS) == 0
    fill(scene.source, scene.one, 200, 2)
    if scene.spec.flow.offsets == "identical":
        scene.running.wait(lambda status: code(at(status, scene.one, 1)) in BROKEN)
    refused = scene.recreate(scene.one)
    assert (refused.code, "[AB420]" in refused.stderr, "--allow-delete topic=1" in refused.stderr) == (4, True, True)
    assert (topic_id(scene.target, copy), scene.paused()) == (before, [])

    done = scene.recreate(scene.one, "--allow-delete", "topic=1")
    assert done.code == 0, done
    assert f"deleted with all records, copy of east's {scene.one}" in done.stdout
    assert topic_id(scene.target, copy) != before
    fill(scene.source, scene.one, 100, 2)
    fill(scene.source, scene.other, 100, 2)
    scene.running.settled_again(running=True)
    for topic in (scene.one, scene.other):
        scene.assert_copied(topic)
    assert scene.paused() == []


def test_what_is_paused_stays_paused(scene: Scene) -> None:
    assert anabranch("pause", scene.file, "--topic", f"{scene.one}/1").code == 0
    done = scene.recreate(scene.one, "--allow-delete", "topic=1")
    assert done.code == 0, done
    assert scene.paused() == [f"{scene.one}/1"]
    found = scene.running.settled_again()
    assert at(found, scene.one, 1).state is PAUSED
    assert anabranch("resume", scene.file, "--topic", f"{scene.one}/1").code == 0
    assert all_running(scene.running.settled_again(running=True).partitions)
    scene.assert_copied(scene.one)


def test_what_would_not_be_copied_again_stays(scene: Scene) -> None:
    delete(scene.source, scene.one)
    refused = scene.recreate(scene.one, "--allow-delete", "topic=1")
    assert (refused.code, "[AB458]" in refused.stderr) == (REFUSED, True), refused
    assert f"no enabled flow copies east's {scene.one} there now" in " ".join(refused.stderr.split())
    unknown = scene.recreate("nothing", "--allow-delete", "topic=1")
    assert (unknown.code, "east.nothing" in unknown.stderr) == (2, True), unknown
    assert (f"east.{scene.one}" in names(scene.target), scene.paused()) == (True, [])
