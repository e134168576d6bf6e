"""Replication latency: how long after a record's timestamp the target answered for it, as a histogram of bounded size.

Tasks count into it, the status topic carries it, `report` merges the histograms of many tasks, which percentiles alone
would not allow.

Resolution: below 32 ms each bucket is one millisecond wide; above, each power of two is cut into 16, so that a
percentile, given as its bucket's middle, is within 1/32 (3.2 %) of the exact one. Nothing is longer than 2^42 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_EXACT = 32
_CUTS = 16
_CUT_BITS = 4
_LONGEST = 2**42 - 1
BUCKETS = _EXACT + (42 - 5) * _CUTS


def bucket_of(milliseconds: int) -> int:
    """Return the number of the bucket for a latency; a negative one (a clock ahead of ours) counts as 0."""
    if milliseconds < _EXACT:
        return max(0, milliseconds)
    value = min(milliseconds, _LONGEST)
    power = value.bit_length() - 1
    return _EXACT + (power - 5) * _CUTS + (value >> (power - _CUT_BITS)) - _CUTS


def middle_of(bucket: int) -> int:
    """Return the latency in the middle of a bucket, in ms."""
    if bucket < _EXACT:
        return bucket
    power, cut = divmod(bucket - _EXACT, _CUTS)
    width = 1 << (power + 5 - _CUT_BITS)
    return (_CUTS + cut) * width + (width - 1) // 2


@dataclass(frozen=True, slots=True)
class Latency:
    """What a histogram comes to, in ms.

    Attributes:
        records: how many records it counts.
        min: of the quickest.
        avg: the mean.
        p50: half of the records were quicker; within the histogram's resolution.
        p99: likewise for 99 of 100.
        max: of the slowest.
    """

    records: int
    min: int
    avg: int
    p50: int
    p99: int
    max: int


def percentiles(counts: Mapping[int, int], percents: Sequence[int]) -> list[int]:
    """Return, for each of ascending `percents`, the latency in ms that so many of 100 records do not exceed.

    Args:
        counts: records by bucket; at least one.
        percents: whole numbers, 0 to 100.
    """
    records = sum(counts.values())
    # The nearest rank, from 1.
    ranks = [max(1, -(-percent * records // 100)) for percent in percents]
    found: list[int] = []
    passed = 0
    rank = ranks[0]
    for bucket in sorted(counts):
        passed += counts[bucket]
        while passed >= rank:
            found.append(middle_of(bucket))
            if len(found) == len(ranks):
                return found
            rank = ranks[len(found)]
    return found


def summary(counts: Mapping[int, int], total: int, smallest: int, largest: int) -> Latency:
    """Return the figures of records counted by bucket.

    Args:
        counts: records by bucket; at least one.
        total: the sum of their latencies, in ms.
        smallest: the smallest of these.
        largest: the largest.
    """
    records = sum(counts.values())
    p50, p99 = (max(smallest, min(largest, found)) for found in percentiles(counts, (50, 99)))
    return Latency(records, smallest, round(total / records), p50, p99, largest)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many records had which latency.

    Attributes:
        buckets: number and count of each bucket that is not empty, in ascending order.
        sum: of all latencies, in ms.
        min: the smallest.
        max: the largest.
    """

    buckets: tuple[tuple[int, int], ...]
    sum: int
    min: int
    max: int

    @classmethod
    def of(cls, counts: Mapping[int, int], total: int, smallest: int, largest: int) -> Histogram:
        """Return the histogram of `counts` by bucket."""
        return cls(tuple(sorted(counts.items())), total, smallest, largest)

    def summary(self) -> Latency:
        """Return its figures."""
        return summary(dict(self.buckets), self.sum, self.min, self.max)


def merged(histograms: Iterable[Histogram | None]) -> Histogram | None:
    """Return one histogram of all that `histograms` count; None when they count nothing."""
    some: Sequence[Histogram] = [one for one in histograms if one is not None and one.buckets]
    if not some:
        return None
    if len(some) == 1:
        return some[0]
    counts: dict[int, int] = {}
    for one in some:
        for bucket, count in one.buckets:
            counts[bucket] = counts.get(bucket, 0) + count
    return Histogram.of(
        counts, sum(one.sum for one in some), min(one.min for one in some), max(one.max for one in some)
    )
