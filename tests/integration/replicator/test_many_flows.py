"""Many flows of one process, on quiet processors and on busy ones: each begins, and no query has to be begun anew."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import admin, create
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_500)]

RECORDS = 200
SECONDS = 1_200
_CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
_SPIN = "while True: pass"


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """Keep processors busy with so many processes."""
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def half_a_processor() -> Iterator[Path]:
    """Make a control group with half a processor; whatever is written into the file `cgroup.procs` there is in it."""
    group = _CPU_GROUPS / f"anabranch-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (_CPU_GROUPS / "cgroup.procs").write_text(pid)
        group.rmdir()


class Flows:
    """Some flows of one topology, each with a topic of its own."""

    def __init__(self, folder: Path, count: int, source: EmbeddedCluster, target: EmbeddedCluster, topic: str) -> None:
        self.topics = [f"{topic}-{number}" for number in range(count)]
        self._admin = admin(target)
        for name in self.topics:
            create(source, name)
            fill(source, name, RECORDS)
        flows = [
            f"  - {{from: east, to: west, name: f{number}, topics: {{include: [{name}]}}}}"
            for number, name in enumerate(self.topics)
        ]
        self.file = folder / "many.yaml"
        self.file.write_text(
            f"version: 1\nname: {topic[-20:].strip('-')}\nclusters:\n  east: {{bootstrap: ['{source.bootstrap}']}}\n"
            f"  west: {{bootstrap: ['{target.bootstrap}']}}\nflows:\n" + "\n".join(flows) + "\n"
        )
        applied = anabranch("apply", self.file, "--yes", limit=SECONDS)
        assert applied.code == 0, applied.stderr

    def copied(self) -> int:
        """Return how many flows have copied everything, asking for all at once: the machine has enough to do."""
        asked = {TopicPartition(f"east.{name}", 0): OffsetSpec.latest() for name in self.topics}
        ends = self._admin.list_offsets(asked, request_timeout=SECONDS)
        return sum(end.result().offset == RECORDS for end in ends.values())

    def run(self, folder: Path, group: Path | None = None) -> str:
        """Copy everything, and return what was said meanwhile."""
        begun = time.monotonic()
        running = Replicator(self.file, folder)
        try:
            if group is not None:
                (group / "cgroup.procs").write_text(str(running.pid))
            first = None
            while (found := self.copied()) < len(self.topics):
                first = first or (time.monotonic() - begun if found else None)
                assert running.is_running, running.said()
                assert time.monotonic() - begun < SECONDS, f"{found} flows have copied: {running.said()[-3000:]}"
                time.sleep(1.0)
            last = time.monotonic() - begun
            print(f"{len(self.topics)} flows: the first had copied after {first or last:.0f} s, all after {last:.0f} s")
            running.terminate()
            assert running.wait(SECONDS) == 0
        finally:
            running.end()
        return running.said()


@pytest.fixture
def topic(topic_name: str) -> str:
    return topic_name.lower().replace("_", "-").replace(".", "-")[-40:].strip("-")


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.long)])
def test_all_flows_begin_and_none_is_begun_anew(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic: str, count: int
) -> None:
    said = Flows(tmp_path, count, source_cluster, target_cluster, topic).run(tmp_path)
    assert "is restarted" not in said


@pytest.mark.long
def test_flows_begin_beside_processes_that_take_all_processors(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic: str
) -> None:
    flows = Flows(tmp_path, 12, source_cluster, target_cluster, topic)
    with spinning(4):
        flows.run(tmp_path)


@pytest.mark.long
def test_a_flow_begins_with_half_a_processor(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic: str
) -> None:
    flows = Flows(tmp_path, 1, source_cluster, target_cluster, topic)
    with half_a_processor() as group:
        flows.run(tmp_path, group)
