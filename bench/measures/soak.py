"""Soak: whether a worker's memory stays flat while Anabranch works for an hour.

Called by the command line and the tests. Records of 100 bytes to 1 MB stand in a backlog when Anabranch starts, then
come at a steady rate, now and then in a burst. Every second it is looked at how much memory its processes hold.
Retention is short on both clusters, so that an hour fits on the disk.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from bench.competitors.base import Scene, fault, void
from bench.competitors.ours import Anabranch
from bench.instruments.procs import Memory, ProcessTree
from bench.instruments.sample import ends_fault
from bench.workload.load import Load
from bench.workload.topics import create, ends
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault, Problem

TOPIC = "parcels"
SMALLEST, LARGEST = 100, 1_000_000
# A batch of the largest record alone fits under the brokers' default of 1,048,588 bytes.
_MESSAGE_BYTES = 1_040_000
_MB = 10**6
_FLUSH_SECONDS = 120
_LAST_SECONDS = 300.0
_LOOK = 0.2
_EVERY = 1.0
_BROKER = {
    "log.retention.bytes": str(768 << 20),
    "log.segment.bytes": str(64 << 20),
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
}


@dataclass(frozen=True)
class Wear:
    """How Anabranch is worked.

    Attributes:
        seconds: how long, from the moment when the backlog is copied.
        warm_up: how much of it does not count.
        backlog: bytes that wait when it starts.
        rate: bytes a second afterwards.
        burst: bytes that come at once now and then.
        burst_every: seconds between two bursts.
        partitions: of the topic.
    """

    seconds: float = 3600.0
    warm_up: float = 300.0
    backlog: int = 2000 * _MB
    rate: int = 5 * _MB
    burst: int = 500 * _MB
    burst_every: float = 600.0
    partitions: int = 8


@dataclass(frozen=True)
class SoakResult:
    """What was seen.

    Attributes:
        wear: how it was worked.
        times: seconds since the backlog was copied, one for each look.
        resident: bytes of the largest process of each role, one for each look.
        peaks: the kernel's high-water marks since the start, the backlog included.
        records: how many were copied.
        bytes: of their values.
        backlog_seconds: from the first copied record to the end of the backlog.
        cpu: CPU seconds from the end of the backlog on.
        load_before: the machine's load average before.
    """

    wear: Wear
    times: tuple[float, ...]
    resident: dict[str, tuple[int, ...]]
    peaks: Memory
    records: int
    bytes: int
    backlog_seconds: float
    cpu: float
    load_before: float


def soak(wear: Wear, options: Sequence[str], say: Callable[[str], None]) -> SoakResult:
    """Work Anabranch and return what was seen.

    Args:
        wear: how.
        options: further options of `anabranch replicate`.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or Anabranch does not do its part, or the copy is not the original.
    """
    load_before = os.getloadavg()[0]
    clusters = ClusterOptions(jvm=STEADY_JVM, overrides=_BROKER)
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-soak-") as scratch,
        running(EmbeddedCluster("source", clusters), EmbeddedCluster("target", clusters)) as (source, target),
    ):
        create(source, TOPIC, wear.partitions)
        traffic = _Traffic(source, wear)
        scene = Scene(source, target, "soak", TOPIC, Load(1, partitions=wear.partitions), Path(scratch))
        anabranch = Anabranch(1, options)
        try:
            traffic.add(wear.backlog)
            traffic.flush()
            say(f"backlog of {traffic.records:,} records, {traffic.bytes / _MB:,.0f} MB")
            anabranch.prepare(scene)
            return _work(wear, scene, anabranch, traffic, load_before, say)
        finally:
            traffic.end()
            anabranch.clear(scene)


def _work(
    wear: Wear, scene: Scene, anabranch: Anabranch, traffic: _Traffic, load_before: float, say: Callable[[str], None]
) -> SoakResult:
    process = anabranch.start(scene)
    tree = ProcessTree(process.pid)
    goal = ends(scene.source, TOPIC, wear.partitions)
    first = _await(scene, lambda now: sum(now) > 0, process.poll)
    backlog_seconds = _await(scene, lambda now: now == goal, process.poll) - first
    tree.note_memory()
    say(f"backlog copied in {backlog_seconds:.0f} s, a worker's peak {tree.memory().worker / _MB:.0f} MB")
    began, cpu = time.monotonic(), tree.cpu_seconds()
    traffic.start()
    times: list[float] = []
    seen: dict[str, list[int]] = {role: [] for role in ("worker", "driver", "jvm")}
    while (now := time.monotonic() - began) < wear.seconds:
        if (code := process.poll()) is not None:
            raise fault(scene, f"ended with exit code {code} after {now:.0f} s")
        traffic.raise_failure()
        tree.note_memory()
        sizes_now = tree.resident()
        for role, looks in seen.items():
            looks.append(sizes_now.get(role, 0))
        times.append(now)
        if len(times) % 60 == 0:
            say(f"  {now:.0f} s: worker {seen['worker'][-1] / _MB:.0f} MB, {traffic.bytes / _MB:,.0f} MB sent")
        time.sleep(max(0.0, began + len(times) * _EVERY - time.monotonic()))
    spent = tree.cpu_seconds() - cpu
    traffic.end()
    goal = ends(scene.source, TOPIC, wear.partitions)
    _await(scene, lambda now: now == goal, process.poll)
    peaks = tree.memory()
    anabranch.stop()
    sides = (scene.source.client_config(), TOPIC), (scene.target.client_config(), scene.remote)
    if problem := ends_fault(*sides, wear.partitions):
        raise void(scene, problem)
    return SoakResult(
        wear,
        tuple(times),
        {role: tuple(sizes) for role, sizes in seen.items()},
        peaks,
        traffic.records,
        traffic.bytes,
        backlog_seconds,
        spent,
        load_before,
    )


def _await(scene: Scene, done: Callable[[list[int]], bool], poll: Callable[[], int | None]) -> float:
    """Return the moment at which the remote topic's log ends are as wanted."""
    deadline, newest = time.monotonic() + _LAST_SECONDS, [0]
    while True:
        code = poll()
        found = ends(scene.target, scene.remote, scene.load.partitions)
        if done(found):
            return time.monotonic()
        if found != newest:
            deadline, newest = time.monotonic() + _LAST_SECONDS, found
        if code is not None:
            raise fault(scene, f"ended with exit code {code}, the copy ends at {found}")
        if time.monotonic() > deadline:
            raise fault(scene, f"moved nothing for {_LAST_SECONDS:g} s, the copy ends at {found}")
        time.sleep(_LOOK)


class _Traffic:
    """Produces records of all sizes: on demand, or at a rate with bursts until it is ended."""

    def __init__(self, cluster: EmbeddedCluster, wear: Wear) -> None:
        config = {"message.max.bytes": _MESSAGE_BYTES, "enable.idempotence": True, "linger.ms": 5, "log_level": 2}
        self._producer = Producer({**cluster.client_config(), **config, "queue.buffering.max.kbytes": 64 << 10})
        self._wear = wear
        self._sizes = sizes(random.Random(1))
        self._pool = os.urandom(2 * LARGEST)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure = ""
        self.records = self.bytes = 0

    def add(self, amount: int) -> None:
        """Produce about so many bytes, as fast as it goes."""
        goal = self.bytes + amount
        while self.bytes < goal and not self._ending.is_set():
            self._one()

    def start(self) -> None:
        """Produce at the rate from now on, in a thread."""
        self._thread.start()

    def flush(self) -> None:
        """Wait until everything is acknowledged.

        Raises:
            EnvironmentFault: AB351, something was not.
        """
        if left := self._producer.flush(_FLUSH_SECONDS):
            self._failure = f"{left} records were not delivered"
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raise what went wrong.

        Raises:
            EnvironmentFault: AB351.
        """
        if self._failure:
            raise EnvironmentFault(Problem("AB351", f"topic {TOPIC}", self._failure, "run it again"))

    def end(self) -> None:
        """Stop producing; may be repeated."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._producer.flush(_FLUSH_SECONDS)

    def _run(self) -> None:
        began = time.monotonic()
        steady, burst_at = 0, began + self._wear.burst_every
        while not self._ending.wait(max(0.0, began + steady / self._wear.rate - time.monotonic())):
            steady += self._one()
            if time.monotonic() >= burst_at:
                burst_at += self._wear.burst_every
                self.add(self._wear.burst)

    def _one(self) -> int:
        size = next(self._sizes)
        at = self.records % LARGEST
        key = b"%d" % self.records
        while not self._ending.is_set():
            try:
                place = self.records % self._wear.partitions
                self._producer.produce(
                    TOPIC, self._pool[at : at + size], key, partition=place, on_delivery=self._delivered
                )
                self.records += 1
                self.bytes += size
                self._producer.poll(0)
                return size
            except BufferError:
                self._producer.poll(0.05)
        return 0

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = error.str()


def sizes(dice: random.Random) -> Iterator[int]:
    """Yield sizes between the smallest and the largest, each order of magnitude as often as the next."""
    yield LARGEST
    while True:
        yield round(SMALLEST * (LARGEST / SMALLEST) ** dice.random())
