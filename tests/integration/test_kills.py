"""Exactly once and offset by offset, whatever dies: kills at random moments, two copies at once, lost checkpoints."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from tests.contract.kafka import create, declared
from tests.integration.command import anabranch
from tests.support.replicating import Replicator, wait_until_copying
from tests.support.traffic import WEEK_MS, Traffic

PARTITIONS = 8

DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{source}"], datacenter: dc1}}
  west: {{bootstrap: ["{target}"], datacenter: dc2}}
replication:
  - {{from: east, to: west, name: {name}, tasks: {tasks}, topics: {{include: ["{name}-.*"]}}}}
"""


class Scene:
    """Two topics, one with fresh and one with week-old timestamps, and the file that declares their flow."""

    def __init__(self, folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, name: str, tasks: int) -> None:
        self.folder = folder
        self.source, self.target = declared("east", source), declared("west", target)
        self.fresh, self.old = f"{name}-fresh", f"{name}-week-old"
        for topic in (self.fresh, self.old):
            create(source, topic, PARTITIONS)
        self.file = folder / "topology.yaml"
        self.file.write_text(
            DECLARATION.format(name=name, source=source.bootstrap, target=target.bootstrap, tasks=tasks)
        )
        applied = anabranch("apply", self.file, "--yes")
        assert applied.code == 0, applied.stderr

    def assert_identical(self, records: dict[str, int]) -> None:
        for topic, expected in records.items():
            for isolation in ("read_uncommitted", "read_committed"):
                found = compare(self.source, topic, self.target, f"east.{topic}", isolation)
                assert found.is_identical, (isolation, found.different)
                assert found.records == expected

    def catch_up(self) -> str:
        last = Replicator(self.file, self.folder, "--until-caught-up")
        try:
            assert last.wait(180) == 0, last.said()
        finally:
            last.end()
        return last.said()


@pytest.fixture
def scene(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Scene:
    return Scene(tmp_path, source_cluster, target_cluster, f"s{topic_name[-8:]}", tasks=2)


def kill(what: str, running: Replicator) -> None:
    {"worker": running.kill_worker, "jvm": running.kill_jvm, "driver": running.kill_driver}[what]()


def test_five_kills_and_a_lost_checkpoint_lose_and_double_nothing(
    scene: Scene, source_cluster: EmbeddedCluster
) -> None:
    records = {scene.fresh: 1_000_000, scene.old: 400_000}
    traffic = [
        Traffic(source_cluster, scene.fresh, PARTITIONS, records[scene.fresh], backlog=300_000, per_second=8_000),
        Traffic(
            source_cluster,
            scene.old,
            PARTITIONS,
            records[scene.old],
            100_000,
            per_second=3_000,
            age_ms=WEEK_MS,
            codec="lz4",
        ),
    ]
    for thread in traffic:
        thread.start()
    chance = random.Random()
    running = Replicator(scene.file, scene.folder)
    try:
        for victim in ("worker", "jvm", "driver", "worker", "driver"):
            wait_until_copying(scene.target, running, time.time())
            time.sleep(chance.uniform(0.1, 2.0))
            kill(victim, running)
            if victim == "jvm":
                assert running.wait(30) == 1
                assert "AB320" in running.said()
            if victim != "worker":
                shutil.rmtree(scene.folder / "state")
                running = Replicator(scene.file, scene.folder)
        for thread in traffic:
            thread.finish()
    finally:
        running.end()
    scene.catch_up()
    scene.assert_identical(records)


@pytest.mark.parametrize("seconds", [15, pytest.param(60, marks=pytest.mark.long)])
def test_two_copies_of_a_flow_at_once_do_no_harm(scene: Scene, source_cluster: EmbeddedCluster, seconds: int) -> None:
    # Enough for both starts of Spark and the time together; what is left then is sent at once.
    count = 100_000 + 6_000 * (seconds + 90)
    traffic = [
        Traffic(source_cluster, scene.fresh, PARTITIONS, count, 100_000, per_second=6_000),
        Traffic(source_cluster, scene.old, PARTITIONS, count, 100_000, per_second=6_000, age_ms=WEEK_MS),
    ]
    for thread in traffic:
        thread.start()
    both = [Replicator(scene.file, scene.folder / name) for name in ("one", "two")]
    try:
        for running in both:
            wait_until_copying(scene.target, running, 0.0)
        time.sleep(seconds)
        assert all(running.is_running for running in both)
        for thread in traffic:
            thread.finish()
        for running in both:
            running.terminate()
        assert [running.wait(30) for running in both] == [0, 0]
    finally:
        for running in both:
            running.end()
    scene.catch_up()
    scene.assert_identical({scene.fresh: count, scene.old: count})
