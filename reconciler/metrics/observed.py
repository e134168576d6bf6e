"""What follows from several readings of a partition: rates, and the ages of records over the last minute.

MirrorMaker 2 reports these by partition, and tasks do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.metrics.collect import PartitionRow

_WINDOW_SECONDS = 30.0


@dataclass(slots=True)
class Observed:
    """One partition.

    Attributes:
        records_per_second: over the readings of the last half minute; None before the second one.
        bytes_per_second: likewise.
        ages: of the newest record at each reading, in ms, with the time of the reading.
    """

    records_per_second: float | None = None
    bytes_per_second: float | None = None
    ages: deque[tuple[float, int]] = field(default_factory=deque)
    counts: deque[tuple[float, int, int]] = field(default_factory=deque)

    @property
    def age_min(self) -> int | None:
        """The least age in ms."""
        return min((age for _, age in self.ages), default=None)

    @property
    def age_max(self) -> int | None:
        """The greatest age in ms."""
        return max((age for _, age in self.ages), default=None)

    @property
    def age_avg(self) -> int | None:
        """The mean age in ms."""
        return round(sum(age for _, age in self.ages) / len(self.ages)) if self.ages else None

    def take(self, row: PartitionRow, now: float) -> None:
        """Take in one reading."""
        metrics = row.status.metrics
        if self.counts and self.counts[-1][1] > metrics.records:
            # Its task's process began anew, and counts from 0.
            self.counts.clear()
        self.counts.append((now, metrics.records, metrics.bytes))
        while len(self.counts) > 2 and self.counts[0][0] < now - _WINDOW_SECONDS:  # noqa: PLR2004
            self.counts.popleft()
        then, records, size = self.counts[0]
        if now > then:
            self.records_per_second = round((metrics.records - records) / (now - then), 3)
            self.bytes_per_second = round((metrics.bytes - size) / (now - then), 3)
        if metrics.record_age is not None:
            self.ages.append((now, metrics.record_age))
        while self.ages and self.ages[0][0] < now - _WINDOW_SECONDS:
            self.ages.popleft()


class Observer:
    """Follows readings; partitions that are not reported any more are forgotten."""

    def __init__(self) -> None:
        self._by_labels: dict[str, Observed] = {}

    def take(self, rows: Iterable[PartitionRow], now: float) -> None:
        """Take in one reading of all partitions."""
        kept: dict[str, Observed] = {}
        for row in rows:
            one = kept[row.labels] = self._by_labels.get(row.labels) or Observed()
            one.take(row, now)
        self._by_labels = kept

    def of(self, labels: str) -> Observed:
        """Return what is known of the partition with these labels."""
        return self._by_labels.get(labels) or Observed()
