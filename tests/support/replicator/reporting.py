"""A made-up task that reports every second, and the file of its topology: for tests of what shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from reconciler import operate
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.groups import LastLook, SyncedGroup
from reconciler.model.tasks.latency import Latency
from reconciler.model.tasks.process import TaskProcess
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.status import LookWriter, StatusWriter

HOSTILE = 'orders"} 1\n<img src=x onerror=alert(1)>'


def declared(folder: Path, cluster: EmbeddedCluster, name: str) -> Path:
    path = folder / "shop.yaml"
    path.write_text(
        f"""\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["127.0.0.1:9"]}}
  west: {{bootstrap: ["{cluster.bootstrap}"]}}
  gone: {{bootstrap: ["127.0.0.1:19"]}}
flows:
  - {{from: east, to: west, groups: {{include: [".*"]}}}}
  - {{from: east, to: gone}}
""",
        encoding="utf-8",
    )
    return path


@contextmanager
def posted_again_and_again(writer: StatusWriter, made: Callable[[], Iterable[TaskStatus]]) -> Iterator[None]:
    """Post statuses twice a second, as tasks do once; the first ones are stored when the block begins."""
    stopping = threading.Event()

    def post(seconds: float | None = None) -> None:
        for status in made():
            writer.post(status)
        writer.flush(seconds)

    def go_on() -> None:
        while not stopping.wait(0.5):
            post(1.0)

    post()
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


class Reporting:
    """Posts the status of a made-up task, as a task does."""

    def __init__(self, file: Path) -> None:
        topology = operate.load([file])
        west = topology.clusters["west"]
        Journal(west, JournalPlace(topology.name, "status")).ensure()
        self._writer = StatusWriter(west, topology.name)
        figures = Metrics(1_000, 50_000, Latency(10, 1, 30, 20, 150, 160), 12, 90.5)
        one = PartitionStatus("orders", 0, "east.orders", PartitionState.RUNNING, 90, 100, None, figures)
        parked = Reason("AB212", "the batch at offset 4 has 2,000,000 bytes")
        self.partitions = (
            one,
            replace(one, partition=1, state=PartitionState.PARKED, reason=parked),
            replace(one, topic=HOSTILE, remote=HOSTILE),
        )
        now = time.time()
        groups = (SyncedGroup("late", now - 900, "AB621"), SyncedGroup("<b>app</b>", now))
        LookWriter(west, topology.name, "east-west").write(LastLook(now, 1, groups))
        self._posting = posted_again_and_again(self._writer, lambda: [self._status()])

    def _status(self) -> TaskStatus:
        process = TaskProcess(90_000_000, 3, (1_000, *[0] * 15), 4_000)
        return TaskStatus(
            "east-west", "east", "west", "run", 0, 1, time.time(), False, None, 1_000, 50_000, 0.0, 0.0,
            self.partitions, process=process, since=time.time() - 60,
        )  # fmt: skip

    def __enter__(self) -> Reporting:
        self._posting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._posting.__exit__(None, None, None)
