"""What a running task reports every second: the values behind `status`, `lag`, the demo's view and goals.

Tasks make them, the `state` room carries them as JSON, `report` prints them. The JSON leaves out what has its usual
value, and a reader ignores unknown fields and takes an unknown state for `opening`: tasks and readers of neighbouring
releases are compatible.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from dataclasses import fields as fields_of
from enum import StrEnum
from functools import cached_property
from typing import Any

from reconciler.model.base.errors import is_coded
from reconciler.model.base.shape import (
    COUNT,
    ID,
    MOST_TASKS,
    OFFSET,
    PARTITION,
    TEXT,
    TIME,
    WORD,
    Misfit,
    fields,
    flag,
    listed,
    maybe,
    real,
    row,
    whole,
)
from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.latency import BUCKETS, Histogram, Latency
from reconciler.model.tasks.process import UNKNOWN_PROCESS, TaskProcess


class PartitionState(StrEnum):
    """Where a partition stands."""

    OPENING = "opening"  # position not known yet: before the first record, or after a break
    RUNNING = "running"
    PARKED = "parked"  # cannot go on by itself; tried again with growing pauses
    PAUSED = "paused"  # requested by a user; stays so until a user resumes it
    WAITING = "waiting"  # not granted to this run: another one copies it, or the lease is not there yet


_STATES = frozenset(PartitionState)


@dataclass(frozen=True)
class Reason:
    """Why a partition is not running, or does not get all that its source holds.

    Attributes:
        code: stable code such as `AB212`.
        text: what was found, and what to do.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return self.text if is_coded(self.text) else f"{self.text} [{self.code}]"


@dataclass(frozen=True)
class Metrics:
    """What one partition did since its task's process began, and how it is doing now.

    Attributes:
        records: copied.
        bytes: copied, as batches in their codec.
        latency: of what was copied in the last 25 to 30 seconds; None when that was nothing. Each batch counts with all
            its records and the timestamp of its newest one.
        record_age: milliseconds from the timestamp of the newest record read until it was read, as MirrorMaker 2's
            `record-age-ms`; None while nothing was read.
        lag_seconds: age of the oldest record that is not copied yet, 0 when caught up; None while unknown. Known from
            the header of its batch once that was read; before, from the record that was copied last, which is older.
        fills: offsets filled in gaps.
        retries: how often it had to be opened anew.
        shifted: how far the target's offsets are ahead of the source's at this position.
    """

    records: int = 0
    bytes: int = 0
    latency: Latency | None = None
    record_age: int | None = None
    lag_seconds: float | None = None
    fills: int = 0
    retries: int = 0
    shifted: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types, without what is 0 or unknown; `from_json` is its inverse."""
        value = {field.name: getattr(self, field.name) for field in fields_of(self)}
        value["latency"] = list(astuple(self.latency)) if self.latency else None
        # A lag of 0 is good news and no absence of news.
        return {name: one for name, one in value.items() if one or (one == 0 and name in ("record_age", "lag_seconds"))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Metrics:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(value, {}, _METRICS))


NO_METRICS = Metrics()


@dataclass(frozen=True)
class PartitionStatus:
    """One partition of a flow.

    Attributes:
        topic: the original topic.
        partition: its number, the same on both sides.
        remote: the remote topic.
        state: where it stands.
        position: next source offset to be written, or -1 while unknown; with identical offsets the target's log end.
        end: the source's end (last stable offset), or -1 while unknown.
        reason: why it is parked or opening again, or what of its source is held back; None when all is well.
        metrics: what it did, and how well.
    """

    topic: str
    partition: int
    remote: str
    state: PartitionState
    position: int
    end: int
    reason: Reason | None = None
    metrics: Metrics = NO_METRICS

    @property
    def lag(self) -> int | None:
        """Records (offsets) still to copy; None while unknown."""
        return max(0, self.end - self.position) if self.position >= 0 and self.end >= 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types, the same one each time; `from_json` is its inverse."""
        return self._json

    @cached_property
    def _json(self) -> dict[str, Any]:
        # A task reports the same of most of thousands of partitions every second.
        value: dict[str, Any] = {
            "topic": self.topic,
            "partition": self.partition,
            "remote": self.remote,
            "state": self.state.value,
            "position": self.position,
            "end": self.end,
        }
        if self.reason is not None:
            value["reason"] = {"code": self.reason.code, "text": self.reason.text}
        if metrics := self.metrics.to_json():
            value["metrics"] = metrics
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PartitionStatus:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(value, _PARTITION, _PARTITION_MORE))


# A task without a heartbeat for this many seconds is not running any more.
STALE_SECONDS = 5.0


@dataclass(frozen=True)
class TaskStatus:
    """One task of a flow in one run.

    Attributes:
        flow: name of the flow.
        source: alias.
        target: alias.
        run: which start of `replicate` it belongs to.
        task: number of the task, from 0.
        tasks: how many tasks the flow has in this run; 0 where it runs none, as its declaration is not in force.
        time: seconds since 1970 when it was published.
        stopped: whether this is the task's last word.
        waiting: what it waits for while it has no partitions, otherwise None.
        records: copied since the run began.
        bytes: likewise, as batches in their codec.
        records_per_second: over the last seconds.
        bytes_per_second: likewise.
        partitions: what it replicates.
        latency: of all its partitions together, as `Metrics.latency`; None when nothing was copied lately.
        heard: the place in the control topic up to which it has read and obeyed.
        digest: of the declaration that its process has; empty in records of releases that had none.
        failing: why its process cannot keep the flow's tasks alive, in a word of that process; None when it can.
        starting: whether its process is about to begin the flow's tasks, in a word of that process.
        topology: name of the topology whose flow it is; empty in records of releases that did not write it.
        since: when its process began with the flow, in seconds since 1970; 0 where it is not given.
        process: what its process reports of itself.
    """

    flow: str
    source: str
    target: str
    run: str
    task: int
    tasks: int
    time: float
    stopped: bool
    waiting: str | None
    records: int
    bytes: int
    records_per_second: float
    bytes_per_second: float
    partitions: tuple[PartitionStatus, ...]
    latency: Histogram | None = None
    heard: int = 0
    digest: str = ""
    failing: str | None = None
    starting: bool = False
    topology: str = ""
    since: float = 0.0
    process: TaskProcess = UNKNOWN_PROCESS

    @classmethod
    def of_process(
        cls, flow: Flow, run: str, digest: str, waiting: str | None = None, failing: str | None = None
    ) -> TaskStatus:
        """Return what a process reports of a flow while no task of it can.

        Args:
            flow: the flow.
            run: which start of `replicate`.
            digest: of its declaration.
            waiting: what it waits for, or None.
            failing: why no task lives, or None.
        """
        return cls(
            flow=flow.name,
            source=flow.source,
            target=flow.target,
            run=run,
            # Of none of its tasks.
            task=-1,
            tasks=0,
            time=time.time(),
            stopped=False,
            waiting=waiting,
            records=0,
            bytes=0,
            records_per_second=0.0,
            bytes_per_second=0.0,
            partitions=(),
            digest=digest,
            failing=failing,
        )

    @property
    def is_held(self) -> bool:
        """Whether this is the word of a process that runs no task of the flow: it must not, or cannot."""
        return self.tasks == 0

    def is_of(self, topology: str) -> bool:
        """Whether it may be of a topology: flows of several may have one name, and older releases do not name it."""
        return self.topology in ("", topology)

    def is_live(self, now: float) -> bool:
        """Return whether the task runs at `now` (seconds since 1970): its last record is recent, and not the final."""
        return not self.stopped and now - self.time < STALE_SECONDS

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types; `from_json` is its inverse."""
        value = {field.name: getattr(self, field.name) for field in fields_of(self)}
        value["partitions"] = [partition.to_json() for partition in self.partitions]
        value["latency"] = _histogram_json(self.latency) if self.latency else None
        value["process"] = self.process.to_json()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TaskStatus:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(value, _TASK, _TASK_MORE))


def words(statuses: Iterable[TaskStatus], now: float) -> list[tuple[TaskStatus, PartitionStatus]]:
    """Return one word for each partition of each flow, with the task that reported it.

    Of several runs that share a flow, the one that has the partition: tasks that wait for it report it too. Else the
    newest.

    Args:
        statuses: the newest word of each task.
        now: seconds since 1970.
    """
    said = [(status, one) for status in statuses for one in status.partitions]
    said.sort(key=lambda word: (word[0].is_live(now), word[1].state is not PartitionState.WAITING, word[0].time))
    return list({(status.flow, one.topic, one.partition): (status, one) for status, one in said}.values())


def _state(name: Any) -> PartitionState:
    """Return a state by its name; one of a newer release is not taken for well."""
    return PartitionState(name) if WORD(name) in _STATES else PartitionState.OPENING


def _reason(value: Any) -> Reason | None:
    return Reason(**fields(value, {"code": WORD, "text": TEXT})) if value else None


def _metrics(value: Any) -> Metrics:
    return Metrics.from_json(value) if value else NO_METRICS


def _latency(value: Any) -> Latency | None:
    return Latency(*_SIX(value)) if value else None


def _histogram_json(histogram: Histogram) -> dict[str, Any]:
    flat = [number for pair in histogram.buckets for number in pair]
    return {"buckets": flat, "sum": histogram.sum, "min": histogram.min, "max": histogram.max}


def _histogram(value: Any) -> Histogram | None:
    return Histogram(**fields(value, _HISTOGRAM)) if value else None


def _buckets(value: Any) -> tuple[tuple[int, int], ...]:
    flat = _FLAT(value)
    numbers, counts = flat[::2], flat[1::2]
    # Each bucket has a width, by its number, and holds something: percentiles go by that.
    if len(numbers) != len(counts) or any(number >= BUCKETS for number in numbers) or 0 in counts:
        message = "expected buckets of a histogram, each with its count"
        raise Misfit(message)
    return tuple(zip(numbers, counts, strict=True))


_FLAT = listed(COUNT, 2 * BUCKETS)
# Timestamps of records may have any value.
_ANY, _ANY_SECONDS = whole(), real()
_SIX = row(_ANY, _ANY, _ANY, _ANY, _ANY, _ANY)
_HISTOGRAM = {"buckets": _buckets, "sum": _ANY, "min": _ANY, "max": _ANY}
_METRICS = {
    "records": COUNT,
    "bytes": COUNT,
    "latency": _latency,
    "record_age": maybe(_ANY),
    "lag_seconds": maybe(_ANY_SECONDS),
    "fills": COUNT,
    "retries": COUNT,
    "shifted": _ANY,
}
_PARTITION = {
    "topic": WORD,
    "partition": PARTITION,
    "remote": TEXT,
    "state": _state,
    "position": OFFSET,
    "end": OFFSET,
}
_PARTITION_MORE = {"reason": _reason, "metrics": _metrics}
_TASK = {
    "flow": WORD,
    "source": WORD,
    "target": WORD,
    "run": WORD,
    # A process that runs no task reports as a task of none.
    "task": whole(-1, MOST_TASKS - 1),
    "tasks": whole(0, MOST_TASKS),
    "time": TIME,
    "stopped": flag,
    "waiting": maybe(TEXT),
    "records": COUNT,
    "bytes": COUNT,
    "records_per_second": _ANY_SECONDS,
    "bytes_per_second": _ANY_SECONDS,
    "partitions": listed(PartitionStatus.from_json),
}
_TASK_MORE = {
    "latency": _histogram,
    "heard": COUNT,
    "digest": ID,
    "failing": maybe(TEXT),
    "starting": flag,
    "topology": WORD,
    "since": TIME,
    "process": TaskProcess.from_json,
}
