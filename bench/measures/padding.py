"""Padding: how long it takes until the empty copy of a log that starts far from 0 starts there as well.

Called by the command line and the tests. The source's log is planted (see `plant`): its first segment begins where
asked. Anabranch then copies it as a user would let it; what is looked at are the offsets at which the remote
partitions begin and end.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.competitors.base import Running, Scene, fault
from bench.competitors.ours import Anabranch
from bench.instruments.procs import ProcessTree
from bench.measures.race import broker_pids
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, table
from bench.workload.load import Load
from bench.workload.plant import plant
from bench.workload.topics import create, remove
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running

MOST_SECONDS = 60.0
_TOPIC = "trimmed"
_LOOK = 0.05
_ANSWER_SECONDS = 10.0
_PATIENCE = 600.0
_MB = 1e6
_BROKER = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True)
class Padded:
    """One start of Anabranch, in seconds.

    Attributes:
        startup: from the start of its process to the first offset that is used up.
        padding: from there until every copy begins where its original does.
        records: from there until every record is copied.
        cpu: CPU seconds of Anabranch from the first offset to the last record.
        brokers: those of the brokers meanwhile.
        worker: bytes of a worker at its peak.
    """

    startup: float
    padding: float
    records: float
    cpu: float
    brokers: float
    worker: int


@dataclass(frozen=True)
class PaddingResult:
    """All starts, over how many partitions, up to which offset, and the machine's load average before."""

    offset: int
    partitions: int
    starts: tuple[Padded, ...]
    load_before: float


def padding(offset: int, load: Load, runs: int, say: Callable[[str], None]) -> PaddingResult:
    """Let Anabranch copy logs that start at an offset, `runs` times.

    Args:
        offset: where every partition of the source starts.
        load: the records from there on; each is a batch of its own.
        runs: how often.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or Anabranch does not do its part, or the copy is not the original.
    """
    load_before = os.getloadavg()[0]
    options = ClusterOptions(jvm=STEADY_JVM, overrides=_BROKER)
    starts = []
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-padding-") as scratch,
        running(EmbeddedCluster("source", options), EmbeddedCluster("target", options)) as (source, target),
    ):
        create(source, _TOPIC, load.partitions)
        plant(source, _TOPIC, load, offset)
        for number in range(1, runs + 1):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            say(f"run {number} of {runs}")
            starts.append(_one(Scene(source, target, f"padding-{number}", _TOPIC, load, folder), offset))
            say(f"  {starts[-1].padding:.1f} s of padding, after {starts[-1].startup:.1f} s of start-up")
        remove(source, _TOPIC)
    return PaddingResult(offset, load.partitions, tuple(starts), load_before)


def _one(scene: Scene, offset: int) -> Padded:
    anabranch = Anabranch(1)
    try:
        anabranch.prepare(scene)
        share, rest = divmod(scene.load.records, scene.load.partitions)
        ends = [offset + share + (number < rest) for number in range(scene.load.partitions)]
        with _bounds(scene) as look:
            started, process = time.monotonic(), anabranch.start(scene)
            tree, brokers = ProcessTree(process.pid), [ProcessTree(pid) for pid in broker_pids(scene)]

            def wait(done: Callable[[list[tuple[int, int]]], bool]) -> float:
                _wait(scene, process, look, done)
                return time.monotonic()

            began = wait(lambda bounds: any(high > 0 for _, high in bounds))
            cpu, broker_cpu = tree.cpu_seconds(), sum(one.cpu_seconds() for one in brokers)
            padded = wait(lambda bounds: all(low >= offset for low, _ in bounds))
            copied = wait(lambda bounds: [high for _, high in bounds] == ends)
        spent, broker_spent = tree.cpu_seconds() - cpu, sum(one.cpu_seconds() for one in brokers) - broker_cpu
        memory = tree.memory()
        anabranch.finish(scene)
        anabranch.check(scene)
        return Padded(began - started, padded - began, copied - began, spent, broker_spent, memory.worker)
    finally:
        anabranch.clear(scene)


@contextmanager
def _bounds(scene: Scene) -> Iterator[Callable[[], list[tuple[int, int]]]]:
    """Give a way to ask for log start and log end of each remote partition."""
    consumer = Consumer({**scene.target.client_config(), "group.id": f"{scene.alias}-bounds", "log_level": 2})
    places = [TopicPartition(scene.remote, number) for number in range(scene.load.partitions)]

    def ask() -> list[tuple[int, int]]:
        return [consumer.get_watermark_offsets(place, _ANSWER_SECONDS) for place in places]

    try:
        yield ask
    finally:
        consumer.close()


def _wait(
    scene: Scene,
    process: Running,
    look: Callable[[], list[tuple[int, int]]],
    done: Callable[[list[tuple[int, int]]], bool],
) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        # Asked before the offsets are: what ends after its last record has not ended early.
        code = process.poll()
        try:
            bounds = look()
        except KafkaException as error:
            raise fault(scene, f"the remote topic cannot be seen: {error}") from None
        if done(bounds):
            return
        if code is not None:
            raise fault(scene, f"ended with exit code {code}, the remote partitions hold {bounds}")
        if time.monotonic() > deadline:
            raise fault(scene, f"is not done after {_PATIENCE:g} s, the remote partitions hold {bounds}")
        time.sleep(_LOOK)


def padding_report(result: PaddingResult, machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        result: what was measured.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    heads = ["", "start-up s", "padding s", "offsets/s", "to the last record s", "CPU s", "brokers' CPU s", "worker MB"]
    rows = [_row(str(number), one, result) for number, one in enumerate(result.starts, 1)]
    middle = Padded(
        median(one.startup for one in result.starts),
        median(one.padding for one in result.starts),
        median(one.records for one in result.starts),
        median(one.cpu for one in result.starts),
        median(one.brokers for one in result.starts),
        round(median(one.worker for one in result.starts)),
    )
    bar = Bar(f"seconds to pad to offset {result.offset:,}", middle.padding, MOST_SECONDS, False, " s")
    return "\n".join(
        [
            f"# Padding of {date}\n",
            f"{result.partitions} empty remote partition(s) padded to offset {result.offset:,}, where the source's log "
            "starts; one task.\n",
            machine_lines(machine) + f"- load average {result.load_before:.2f} before the start\n",
            table(heads, [*rows, _row("median", middle, result)]),
            bars_table([bar]),
            "Padding runs from the first offset that is used up in a remote partition until each begins where its\n"
            "original does, looked at every 50 ms; start-up, from the start of `anabranch replicate`, is apart. The\n"
            "source's first segment was written by the bench. Afterwards the copies had the same first and last\n"
            "offsets as the originals, and the same records between.\n",
        ]
    )


def _row(name: str, one: Padded, result: PaddingResult) -> list[str]:
    speed = result.offset * result.partitions / one.padding if one.padding else 0.0
    times = [f"{one.startup:.1f}", f"{one.padding:.1f}", f"{speed:,.0f}", f"{one.records:.1f}"]
    return [name, *times, f"{one.cpu:.1f}", f"{one.brokers:.1f}", f"{one.worker / _MB:,.0f}"]
