"""`lag` and `status --watch` as processes of their own, on a real status topic."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.tasks.latency import Histogram, Latency, bucket_of
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, TaskStatus
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusWriter
from tests.support.clusters.kafka import declared
from tests.support.replicator.alive import alive

COMMAND = (sys.executable, "-m", "reconciler.cli.main")
SECONDS = 300.0
DECLARED = """\
version: 1
name: watched
clusters: {{east: {{bootstrap: ["127.0.0.1:1"]}}, west: {{bootstrap: ["{west}"]}}}}
flows: [{{name: {flow}, from: east, to: west}}]
"""


@pytest.fixture
def file(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    path = tmp_path / "watched.yaml"
    path.write_text(DECLARED.format(west=target_cluster.bootstrap, flow=topic_name))
    return path


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let children take SIGINT as from a terminal: a shell that starts the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def word(flow: str, position: int) -> TaskStatus:
    metrics = Metrics(7, 700, Latency(7, 2, 3, 3, 4, 4), 5, 0.25, retries=1)
    one = PartitionStatus("orders", 3, "east.orders", PartitionState.RUNNING, position, 50, metrics=metrics)
    latency = Histogram(((bucket_of(3), 7),), 21, 3, 3)
    return TaskStatus(flow, "east", "west", "run", 0, 1, time.time(), False, None, 7, 700, 1.0, 100.0, (one,), latency)


@pytest.mark.usefixtures("interruptible")
def test_the_figures_come_through_and_a_watch_follows_them_until_ctrl_c(
    target_cluster: EmbeddedCluster, topic_name: str, file: Path
) -> None:
    west = declared("west", target_cluster)
    Journal(west, own("watched").status).ensure()
    writer = StatusWriter(west, "watched")
    command = [*COMMAND, "status", str(file), "--watch", "0.2", "--format", "json"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            # A busy machine may read a word so late that it counts as an old one: it is written again.
            first, deadline = {"latencyMs": None}, time.monotonic() + SECONDS
            while first["latencyMs"] is None:
                assert time.monotonic() < deadline
                writer.post_last(word(topic_name, 40))
                first = (json.loads(watching.stdout.readline())["flows"] or [first])[0]
            assert (first["lag"], first["lagSeconds"], first["latencyMs"]["p99"]) == (10, 0.25, 3)
            assert first["partitions"][0]["latencyMs"]["p99"] == 4
            writer.post_last(word(topic_name, 45))
            deadline = time.monotonic() + SECONDS
            while json.loads(watching.stdout.readline())["flows"][0]["lag"] != 5:
                assert time.monotonic() < deadline
                writer.post_last(word(topic_name, 45))
            watching.send_signal(signal.SIGINT)
            watching.communicate(timeout=SECONDS)
        finally:
            watching.kill()
    assert watching.returncode == 0

    ended = subprocess.run(
        [*COMMAND, "lag", str(file)], capture_output=True, text=True, timeout=SECONDS, check=True, cwd=file.parent
    )
    flow, partition, _, *figures = ended.stdout.splitlines()[1].split()
    assert (flow, partition, " ".join(figures)) == (topic_name, "orders/3", "45 50 5 0.2 s 3 ms 4 ms")


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_a_clock_that_is_wrong_hides_no_task_and_keeps_none_alive(
    target_cluster: EmbeddedCluster, topic_name: str, file: Path, ahead: float
) -> None:
    west = declared("west", target_cluster)
    Journal(west, own("watched").status).ensure()
    writer = StatusWriter(west, "watched")

    def told() -> dict[str, object]:
        command = [*COMMAND, "status", str(file), "--format", "json"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, cwd=file.parent)
        (flow,) = json.loads(ended.stdout)["flows"]
        return {name: flow[name] for name in ("state", "tasks")}

    with alive(writer, word(topic_name, 40), ahead):
        assert told() == {"state": "running", "tasks": 1}
    assert told() == {"state": "lost", "tasks": 0}
