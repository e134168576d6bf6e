"""Follows a competitor from its start to the last replicated record, in the same way for each.

`race` calls it. Progress is what stands in the target's log; the clock and the CPU are read when the first records are
seen there and when the last is. It must not talk to the brokers or the competitor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.competitors.base import Running, Scene, fault
from bench.instruments.procs import Memory, ProcessTree, machine_busy_seconds, own_seconds
from bench.instruments.segments import LogFacts, TopicLog

_TICK = 0.02
_MEMORY_EVERY = 1.0
_PATIENCE = 180.0
_MB = 1e6
_GB = 1e9


@dataclass(frozen=True)
class Instant:
    """What was read at one moment.

    Attributes:
        time: seconds on a clock that only moves forward.
        records: records in the remote topic.
        cpu: CPU seconds that the competitor has used since its start.
        brokers: CPU seconds that the brokers have used since theirs.
        elsewhere: CPU seconds of the machine that went neither to these nor to the bench.
    """

    time: float
    records: int
    cpu: float
    brokers: float
    elsewhere: float


@dataclass(frozen=True)
class Measurement:
    """One start of one competitor, measured from the first replicated records to the last.

    Attributes:
        records: records replicated in that time.
        bytes: their bytes in the source's log.
        seconds: how long it took.
        cpu: CPU seconds of the competitor in that time.
        brokers: CPU seconds of all brokers in that time.
        elsewhere: how many processors were busy, on average, with things that are no part of the race.
        startup: seconds from the start of its process to the first replicated record.
        startup_cpu: CPU seconds until then.
        memory: peaks since its start, and what it holds at the last record.
        copy: what the remote topic held in the end.
    """

    records: int
    bytes: float
    seconds: float
    cpu: float
    brokers: float
    elsewhere: float
    startup: float
    startup_cpu: float
    memory: Memory
    copy: LogFacts

    @property
    def records_per_second(self) -> float:
        """Records per second."""
        return self.records / self.seconds

    @property
    def mb_per_second(self) -> float:
        """Megabytes (10^6) per second."""
        return self.bytes / _MB / self.seconds

    @property
    def cpu_per_gb(self) -> float:
        """CPU seconds per gigabyte (10^9)."""
        return self.cpu / (self.bytes / _GB)


class Watch:
    """Follows one start.

    Args:
        scene: the start.
        process: what replicates.
        brokers: the process ids of the brokers that are not themselves the competitor.
        original: what the source holds.
        copy: the remote topic's log.
        copied: called at each look with the bytes that are in the remote topic.
    """

    def __init__(
        self,
        scene: Scene,
        process: Running,
        brokers: Sequence[int],
        original: LogFacts,
        copy: TopicLog,
        copied: Callable[[int], None],
    ) -> None:
        self._scene = scene
        self._process = process
        self._tree = ProcessTree(process.pid)
        # A follower's broker has worked before; of a process that has just been started there is nothing to take off.
        self._cpu_before = self._tree.cpu_seconds()
        self._brokers = [ProcessTree(pid) for pid in brokers]
        self._original = original
        self._copy = copy
        self._copied = copied
        self._started = time.monotonic()

    def measure(self) -> Measurement:
        """Return when every record of the source is in the remote topic.

        Raises:
            EnvironmentFault: AB350, the competitor ended early, moves nothing, or was too quick to be measured.
        """
        first = self._wait_for(1)
        last = self._wait_for(self._original.records)
        memory = self._tree.memory()
        if last.records <= first.records:
            message = f"{first.records} records came at once, so there is no time to measure; take a larger topic"
            raise fault(self._scene, message)
        records = last.records - first.records
        seconds = last.time - first.time
        return Measurement(
            records=records,
            bytes=self._original.bytes * records / self._original.records,
            seconds=seconds,
            cpu=last.cpu - first.cpu,
            brokers=last.brokers - first.brokers,
            elsewhere=max(0.0, last.elsewhere - first.elsewhere) / seconds,
            startup=first.time - self._started,
            startup_cpu=first.cpu - self._cpu_before,
            memory=memory,
            copy=self._copy.advance(),
        )

    def _wait_for(self, records: int) -> Instant:
        """Return the first moment at which at least `records` records are in the remote topic."""
        moved_at, seen, memory_at = time.monotonic(), 0, 0.0
        while True:
            # Asked before the log is read: what ends after its last record has not ended early.
            code = self._process.poll()
            facts, now = self._copy.advance(), time.monotonic()
            reached = self._instant(now, facts.records) if facts.records >= records else None
            # It may take a while, so not between the clock and the CPU of one instant.
            self._copied(facts.bytes)
            if reached is not None:
                return reached
            if facts.records > seen:
                moved_at, seen = now, facts.records
            if code is not None:
                raise fault(self._scene, f"ended with exit code {code}, {self._progress(facts)}")
            if now - moved_at > _PATIENCE:
                raise fault(self._scene, f"moved nothing for {_PATIENCE:g} s, {self._progress(facts)}")
            if now >= memory_at:
                memory_at = now + _MEMORY_EVERY
                self._tree.note_memory()
            time.sleep(_TICK)

    def _instant(self, now: float, records: int) -> Instant:
        cpu = self._tree.cpu_seconds()
        brokers = sum(tree.cpu_seconds() for tree in self._brokers)
        return Instant(now, records, cpu, brokers, machine_busy_seconds() - cpu - brokers - own_seconds())

    def _progress(self, facts: LogFacts) -> str:
        return f"with {facts.records} of {self._original.records} records replicated"
