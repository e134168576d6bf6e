"""Pairs the records of two logs where no offset sync does.

Both sides hold the same records in the same order, unless compaction has removed some on either. So they are paired by
their content: from the ends that are known, and from records that exist once on each side. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from reconciler.checkpoints.translation.runs import Between, PairedRun


class SeenRecord(NamedTuple):
    """A record as it was read.

    Attributes:
        offset: in its log.
        mark: a hash, the same for the record and its copy, and hardly for any other.
    """

    offset: int
    mark: int


Pair = tuple[int, int]
Slice = tuple[int, int, int, int]


def paired(gap: Between, source: Sequence[SeenRecord], target: Sequence[SeenRecord]) -> list[PairedRun] | None:
    """Return the records of a gap as runs on both sides; None where they cannot be paired.

    Args:
        gap: between which places they stand.
        source: all that the source has there, in order.
        target: likewise.
    """
    found = _matched(gap, source, target)
    if found is None:
        return None
    if not found and source and target:
        # Their timestamps may differ (LogAppendTime); only their number is left to pair them by.
        if gap.low is None or gap.high is None or len(source) != len(target):
            return None
        found = [(number, number) for number in range(len(source))]
    return list(_joined([(source[here].offset, target[there].offset) for here, there in found]))


def _matched(gap: Between, source: Sequence[SeenRecord], target: Sequence[SeenRecord]) -> list[Pair] | None:
    begin = _alike(source, target) if gap.low is not None else 0
    most = min(len(source), len(target)) - begin
    end = min(_alike(source[::-1], target[::-1]), most) if gap.high is not None else 0
    head = [(number, number) for number in range(begin)]
    tail = [(len(source) - number, len(target) - number) for number in range(end, 0, -1)]
    middle = _by_marks(source, target, (begin, len(source) - end, begin, len(target) - end))
    return None if middle is None else [*head, *middle, *tail]


def _alike(one: Sequence[SeenRecord], other: Sequence[SeenRecord]) -> int:
    """Return how many records are the same from the begin on."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a.mark != b.mark), min(len(one), len(other)))


def _by_marks(source: Sequence[SeenRecord], target: Sequence[SeenRecord], part: Slice) -> list[Pair] | None:
    """Return the pairs in a part of both logs: records that exist once, and equal ones beside them."""
    first, last, begin, end = part
    here = _once(source[first:last], first)
    there = _once(target[begin:end], begin)
    anchors = [(at, there[mark]) for mark, at in here.items() if mark in there]
    if any(after[1] <= before[1] for before, after in pairwise(anchors)):
        return None
    found: list[Pair] = []
    # Records between two of them exist several times, or on one side only.
    for (left, right), (left_end, right_end) in pairwise([(first - 1, begin - 1), *anchors, (last, end)]):
        found += [(left, right)] if left >= first else []
        rest = _between(source, target, (left + 1, left_end, right + 1, right_end))
        if rest is None:
            return None
        found += rest
    return found


def _between(source: Sequence[SeenRecord], target: Sequence[SeenRecord], part: Slice) -> list[Pair] | None:
    first, last, begin, end = part
    common = {one.mark for one in source[first:last]} & {one.mark for one in target[begin:end]}
    here = [at for at in range(first, last) if source[at].mark in common]
    there = [at for at in range(begin, end) if target[at].mark in common]
    if [source[at].mark for at in here] != [target[at].mark for at in there]:
        return None
    return list(zip(here, there, strict=True))


def _once(records: Sequence[SeenRecord], first: int) -> dict[int, int]:
    """Return the places of the records that are there once, by their marks, in order."""
    counts = Counter(one.mark for one in records)
    return {one.mark: at for at, one in enumerate(records, first) if counts[one.mark] == 1}


def _joined(pairs: Sequence[Pair]) -> Iterator[PairedRun]:
    """Yield pairs of offsets as runs."""
    begin = 0
    for at in range(1, len(pairs) + 1):
        if at == len(pairs) or pairs[at] != (pairs[at - 1][0] + 1, pairs[at - 1][1] + 1):
            yield PairedRun(*pairs[begin], at - begin)
            begin = at
