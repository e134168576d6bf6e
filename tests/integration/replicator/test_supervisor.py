"""A task that stands still is replaced, and a flow whose tasks cannot live says why."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator, wait_until_copying
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

SECONDS = 400.0
PARTITIONS = 4
DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{source}"]}}
  west: {{bootstrap: ["{target}"]}}
flows:
  - {{from: east, to: west, topics: {{include: ["{name}"]}}}}
"""


class Scene:
    def __init__(self, folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, topic_name: str) -> None:
        self.name = f"s{topic_name[-8:]}"
        self.source, self.target = declared("east", source), declared("west", target)
        self._cluster = source
        self.file = folder / "topology.yaml"
        create(source, self.name, PARTITIONS)
        bootstraps = {"source": self.source.bootstrap[0], "target": self.target.bootstrap[0]}
        self.file.write_text(DECLARATION.format(name=self.name, **bootstraps))
        assert anabranch("apply", self.file, "--yes").code == 0

    def fill(self, records: int) -> None:
        fill(self._cluster, self.name, records, PARTITIONS)

    def state(self) -> tuple[str, str | None]:
        answer = anabranch("status", self.file, "--format", "json")
        assert answer.code == 0, answer.stderr
        (flow,) = json.loads(answer.stdout)["flows"]
        return flow["state"], flow["failing"]


@pytest.fixture
def scene(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Scene:
    return Scene(tmp_path, source_cluster, target_cluster, topic_name)


@pytest.mark.long
def test_a_task_that_stands_still_is_replaced(scene: Scene, tmp_path: Path) -> None:
    scene.fill(10_000)
    running = Replicator(scene.file, tmp_path)
    try:
        wait_until_copying(scene.target, running, 0.0)
        stopped = running.worker()
        stopped.suspend()
        scene.fill(10_000)
        wait_until_copying(scene.target, running, time.time() + 10, SECONDS)
        assert "is restarted: its task 0 published no status for" in " ".join(running.said().split())
        eventually("the task that stood still is gone", lambda: not stopped.is_running())
        running.terminate()
        assert running.wait(SECONDS) == 0, running.said()
        last = Replicator(scene.file, tmp_path, "--until-caught-up")
        assert last.wait(SECONDS) == 0, last.said()
    finally:
        running.end()
    found = compare(scene.source, scene.name, scene.target, f"east.{scene.name}", "read_uncommitted")
    assert (found.is_identical, found.records) == (True, 20_000)


@pytest.mark.long
def test_a_flow_whose_tasks_cannot_live_says_why(scene: Scene, tmp_path: Path) -> None:
    scene.fill(1_000)
    running = Replicator(scene.file, tmp_path)
    try:
        wait_until_copying(scene.target, running, 0.0, SECONDS)
        deadline = time.monotonic() + SECONDS
        while scene.state()[0] != "degraded":
            assert running.is_running, running.said()
            assert time.monotonic() < deadline, scene.state()
            kill_workers(running, 2.0)
        why = str(scene.state()[1])
        assert "ended 5 times within 5 minutes; it is restarted about every 60 s: " in why
        # They may live from now on, and it is restarted by itself.
        scene.fill(1_000)
        wait_until_copying(scene.target, running, time.time(), SECONDS)
        assert scene.state()[0] == "degraded"
        running.terminate()
        assert running.wait(SECONDS) == 0, running.said()
        assert scene.state() == ("stopped", None)
    finally:
        running.end()


def kill_workers(running: Replicator, seconds: float) -> None:
    """Kill whatever replicates as soon as it is there, for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for worker in running.workers():
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        time.sleep(0.05)
