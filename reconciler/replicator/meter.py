"""A meter: what one partition did and how well it does, from batch headers alone: the numbers of `status` and `lag`.

`channel` tells it what was read and written, `task` keeps it over its rounds and asks it every second. It holds no
position and decides nothing; a timestamp of a week ago or of tomorrow makes its numbers large or 0, never wrong about
what was copied.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from reconciler.model.latency import Histogram, Latency, bucket_of, summary
from reconciler.model.status import Metrics

# The window is these many slots, the newest of which is being filled.
_SLOT_SECONDS = 5
_SLOTS = 6


@dataclass(slots=True)
class _Slot:
    """The latencies of a few seconds."""

    number: int
    counts: dict[int, int] = field(default_factory=dict)
    sum: int = 0
    min: int = 2**63
    max: int = 0


class Window:
    """The latencies of the last 25 to 30 seconds, whatever their number in bounded memory.

    A task asks thousands of these every second: what has not changed is not computed again.
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


class Meter:
    """One partition, from the start of the task's process on. Timestamps are milliseconds, `now` seconds since 1970.

    Attributes:
        records: copied.
        bytes: copied, as batches in their codec.
        fills: offsets filled in gaps.
        retries: openings that ended before their time.
        shifted: how far the target's offsets are ahead of the source's.
    """

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.fills = 0
        self.retries = 0
        self.shifted = 0
        self._window = Window()
        self._record_age: int | None = None
        self._copied = -1
        self._next: tuple[int, int] = (-1, -1)

    def read(self, newest: int, now: float) -> None:
        """Note that records were read, the newest of them with timestamp `newest`."""
        if newest >= 0:
            self._record_age = _since(newest, now)

    def wrote(self, records: int, size: int, newest: int, now: float) -> int | None:
        """Note that the target has answered for a batch.

        Args:
            records: how many it holds.
            size: its bytes.
            newest: timestamp of its newest record; negative when it has none.
            now: when the answer came.

        Returns:
            The latency of its newest record in ms, or None for records without timestamps.
        """
        self.records += records
        self.bytes += size
        if newest < 0:
            return None
        self._copied = newest
        latency = _since(newest, now)
        self._window.add(latency, records, now)
        return latency

    def metrics(self, position: int, end: int, oldest: int | None, now: float) -> Metrics:
        """Return all there is to say.

        Args:
            position: next source offset to be written, or -1 while unknown.
            end: the source's end, or -1 while unknown.
            oldest: timestamp of the first record from `position` on when its batch has been read, otherwise None.
            now: for the ages.
        """
        if oldest is not None and oldest >= 0:
            self._next = (position, oldest)
        return Metrics(
            records=self.records,
            bytes=self.bytes,
            latency=self._window.latency(now),
            record_age=self._record_age,
            lag_seconds=self._behind(position, end, now),
            fills=self.fills,
            retries=self.retries,
            shifted=self.shifted,
        )

    def _behind(self, position: int, end: int, now: float) -> float | None:
        """Return how old the oldest record is that is not copied yet, as well as headers tell."""
        if position < 0 or end < 0:
            return None
        if position >= end:
            return 0.0
        at, timestamp = self._next
        if at != position:
            # It was not read yet; what was copied last stands before it, and is the older one of the two.
            timestamp = self._copied
        return _since(timestamp, now) / 1_000 if timestamp >= 0 else None


def _since(timestamp: int, now: float) -> int:
    """Return the milliseconds since `timestamp`, at least 0: clocks differ."""
    return max(0, int(now * 1_000) - timestamp)
