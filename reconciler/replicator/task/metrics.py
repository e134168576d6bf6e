"""The metrics of partitions and tasks, from batch headers alone: the numbers of `status` and `lag`.

`task` keeps them over its rounds, notes what was written, and reads them every second; the rest comes from the
channels. They hold no position and decide nothing; a timestamp of a week ago or of tomorrow makes a number large or 0,
and changes nothing else.
"""

from __future__ import annotations

import resource
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.model.tasks.latency import Histogram, Latency, bucket_of, merged, summary
from reconciler.model.tasks.process import LATENCY_BOUNDS_MS, TaskProcess, bound_of
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus
from reconciler.records.batch import Batch
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel

# The window is these many slots, the newest of which is being filled.
_SLOT_SECONDS = 5
_SLOTS = 6
# Rates are those of so many seconds.
_RATE_SECONDS = 5
_STATM = Path("/proc/self/statm")
_PAGE_BYTES = resource.getpagesize()


@dataclass(slots=True)
class _Slot:
    """The latencies of a few seconds."""

    number: int
    counts: dict[int, int] = field(default_factory=dict)
    sum: int = 0
    min: int = 2**63
    max: int = 0


class LatencyWindow:
    """The latencies of the last 25 to 30 seconds, whatever their number in bounded memory.

    A task reads thousands of these every second: what has not changed is not computed again.
    """

    def __init__(self) -> None:
        self._slots: deque[_Slot] = deque()
        self._counts: dict[int, int] = {}
        self._latency: Latency | None = None
        self._is_fresh = True

    def add(self, latency: int, records: int, now: float) -> None:
        """Count `records` with a latency in ms at `now` (seconds)."""
        number = int(now // _SLOT_SECONDS)
        if not self._slots or self._slots[-1].number != number:
            self._forget(number)
            self._slots.append(_Slot(number))
        slot, bucket = self._slots[-1], bucket_of(latency)
        slot.counts[bucket] = slot.counts.get(bucket, 0) + records
        self._counts[bucket] = self._counts.get(bucket, 0) + records
        slot.sum += latency * records
        slot.min = min(slot.min, latency)
        slot.max = max(slot.max, latency)
        self._is_fresh = False

    def latency(self, now: float) -> Latency | None:
        """Return the figures of what was counted lately; None when that is nothing."""
        self._forget(int(now // _SLOT_SECONDS))
        if not self._is_fresh:
            self._is_fresh = True
            self._latency = summary(self._counts, *self._extremes()) if self._slots else None
        return self._latency

    def is_empty(self, now: float) -> bool:
        """Whether nothing was counted lately."""
        self._forget(int(now // _SLOT_SECONDS))
        return not self._slots

    def histogram(self, now: float) -> Histogram | None:
        """Return what was counted lately; None when that is nothing."""
        self._forget(int(now // _SLOT_SECONDS))
        return Histogram.of(self._counts, *self._extremes()) if self._slots else None

    def _extremes(self) -> tuple[int, int, int]:
        slots = self._slots
        return sum(slot.sum for slot in slots), min(slot.min for slot in slots), max(slot.max for slot in slots)

    def _forget(self, number: int) -> None:
        """Drop the slots that are not of the last half minute; a clock that was set back leaves some of the future."""
        while self._slots and not number - _SLOTS < self._slots[0].number <= number:
            for bucket, count in self._slots.popleft().counts.items():
                left = self._counts[bucket] - count
                if left:
                    self._counts[bucket] = left
                else:
                    del self._counts[bucket]
            self._is_fresh = False


class PartitionMetrics:
    """The metrics of one partition since the task's process started. Timestamps are ms, `now` seconds since 1970.

    Attributes:
        records: copied.
        bytes: copied, as batches in their codec.
    """

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self._window = LatencyWindow()
        self._copied = -1
        self._next: tuple[int, int] = (-1, -1)
        # Position and end as last reported: a channel of the next round has neither before it is opened, if it ever is.
        self._stood = (-1, -1)
        # What the channels of this round and of earlier ones have counted: openings that ended, and offsets filled.
        self._channel: Callable[[], Channel | None] = lambda: None
        self._counted = (0, 0)
        self._before = (0, 0)
        # The last status, and what it was computed from: most of thousands of partitions have nothing new.
        self._said: tuple[PartitionStatus, tuple[object, ...]] | None = None

    def wrote(self, sent_batch: InFlightBatch, now: float) -> int | None:
        """Note that the target has acknowledged `sent_batch`.

        Returns:
            The latency of its newest record in ms, or None for records without timestamps.
        """
        self.records += sent_batch.records
        self.bytes += sent_batch.size
        if sent_batch.newest < 0:
            return None
        self._copied = sent_batch.newest
        latency = _since(sent_batch.newest, now)
        self._window.add(latency, sent_batch.records, now)
        return latency

    def histogram(self, now: float) -> Histogram | None:
        """Return the latencies of the last half minute."""
        return self._window.histogram(now)

    def status(self, channel: Channel, now: float, monotonic: float) -> PartitionStatus:
        """Return the status of a channel with its metrics; the same value as before while nothing changes.

        Args:
            channel: as for `metrics`.
            now: likewise.
            monotonic: likewise.
        """
        # Of thousands of partitions this comparison is all that happens, every second.
        stands = (channel.state, channel.position, channel.end, channel.reason)
        seen = (*stands, channel.opening, channel.filled_offsets, channel.newest_read, channel.shift, self.records)
        can_be_still = channel.state is not PartitionState.PAUSED and self._channel() is channel
        if can_be_still and self._said is not None and self._said[1] == seen and self._window.is_empty(now):
            return self._said[0]
        bare = self._standing(channel)
        is_still = can_be_still and not bare.lag and self._window.is_empty(now)
        said = replace(bare, metrics=self._metrics(channel, bare, now, monotonic))
        self._said = (said, seen) if is_still else None
        return said

    def _standing(self, channel: Channel) -> PartitionStatus:
        """Return a channel's status, with position and end from an earlier round where this one has none."""
        bare = channel.status()
        position, end = self._stood
        self._stood = bare.position if bare.position >= 0 else position, bare.end if bare.end >= 0 else end
        position, end = self._stood
        return bare if (bare.position, bare.end) == self._stood else replace(bare, position=position, end=end)

    def metrics(self, channel: Channel, now: float, monotonic: float) -> Metrics:
        """Return the metrics of a channel.

        Args:
            channel: the partition's, of this round.
            now: for the ages.
            monotonic: the same moment on the channel's clock.
        """
        return self._metrics(channel, self._standing(channel), now, monotonic)

    def _metrics(self, channel: Channel, bare: PartitionStatus, now: float, monotonic: float) -> Metrics:
        if self._channel() is not channel:
            self._channel, self._before = weakref.ref(channel), self._counted
        retries, fills = self._before[0] + channel.opening, self._before[1] + channel.filled_offsets
        self._counted = (retries, fills)
        newest, read_at = channel.newest_read
        return Metrics(
            records=self.records,
            bytes=self.bytes,
            latency=self._window.latency(now),
            record_age=_since(newest, now - (monotonic - read_at)) if newest >= 0 else None,
            lag_seconds=self._behind(channel, bare, now),
            fills=fills,
            retries=retries,
            shifted=channel.shift,
        )

    def _behind(self, channel: Channel, bare: PartitionStatus, now: float) -> float | None:
        """Return the age in seconds of the oldest record that is not copied, as far as headers show."""
        if not bare.lag:
            return None if bare.lag is None else 0.0
        oldest = _oldest(channel)
        if oldest is not None:
            self._next = (bare.position, oldest)
        at, timestamp = self._next
        if at != bare.position:
            # It was not read yet: the record that was copied last is before it, and the older of the two.
            timestamp = self._copied
        return _since(timestamp, now) / 1_000 if timestamp >= 0 else None


class TaskMetrics:
    """The metrics of a task's partitions, and of its process, kept over its rounds."""

    def __init__(self) -> None:
        self._by_place: dict[Place, PartitionMetrics] = {}
        self._rounds = 0
        self._latencies = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self._latency_ms = 0

    def begin_round(self) -> None:
        """Count a round."""
        self._rounds += 1

    def wrote(self, place: Place, sent_batch: InFlightBatch, now: float) -> int | None:
        """Note that the target has acknowledged `sent_batch`; return its latency as `PartitionMetrics.wrote` does."""
        latency = self._of(place).wrote(sent_batch, now)
        if latency is not None:
            self._latencies[bound_of(latency)] += sent_batch.records
            self._latency_ms += latency * sent_batch.records
        return latency

    def process(self) -> TaskProcess:
        """Return what this process has used and copied since it began."""
        counts = tuple(self._latencies) if any(self._latencies) else ()
        return TaskProcess(_resident(), self._rounds, counts, self._latency_ms)

    def status(self, channel: Channel) -> PartitionStatus:
        """Return the status of a channel with its metrics."""
        return self._of(channel.place).status(channel, time.time(), time.monotonic())

    def latency(self) -> Histogram | None:
        """Return the latencies of all partitions together over the last half minute."""
        now = time.time()
        return merged(metrics.histogram(now) for metrics in self._by_place.values())

    def _of(self, place: Place) -> PartitionMetrics:
        metrics = self._by_place.get(place)
        if metrics is None:
            metrics = self._by_place[place] = PartitionMetrics()
        return metrics


def _resident() -> int:
    """Return the resident set of this process in bytes, 0 where the system does not show it (proc(5), statm)."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _oldest(channel: Channel) -> int | None:
    """Return the timestamp of the first record that was read and is not durably copied."""
    if isinstance(channel, TranslatedChannel) and channel.written:
        return channel.written[0].oldest
    if channel.in_flight:
        return channel.in_flight[0].oldest
    return next((item.first_timestamp for item in channel.queue.items if isinstance(item, Batch)), None)


def _since(timestamp: int, now: float) -> int:
    """Return the milliseconds since `timestamp`, at least 0: clocks differ."""
    return max(0, int(now * 1_000) - timestamp)


@dataclass
class Totals:
    """What a task has copied since its run began, with a little history for the rates."""

    records: int = 0
    bytes: int = 0
    history: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=_RATE_SECONDS + 1))

    def rates(self, now: float) -> tuple[float, float]:
        """Return records and bytes per second over the last seconds."""
        self.history.append((now, self.records, self.bytes))
        then, records, count = self.history[0]
        seconds = now - then
        return ((self.records - records) / seconds, (self.bytes - count) / seconds) if seconds > 0 else (0.0, 0.0)
