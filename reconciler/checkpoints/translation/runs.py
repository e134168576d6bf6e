"""Runs: the offsets of one partition's records on both sides, exactly, and where they are not known.

`history` adds what offset syncs hold, in the order of their log; `translate` looks offsets up, both ways, and adds what
it finds by reading where syncs are missing. Pure.

A record has one offset at the source, and one at the target or several: records that an at-least-once copy has repeated
count once, at the first offset that a sync holds. Where the source was truncated and other records took offsets that
were copied before, the newest count.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_INT = "q"
_FLAG = "b"


class PairedRun(NamedTuple):
    """Records that follow each other without a hole on both sides.

    Attributes:
        source: the first one's source offset.
        target: the first one's target offset.
        records: their number.
    """

    source: int
    target: int
    records: int


class Point(NamedTuple):
    """A place in both logs: what stands before it on one side stands before it on the other."""

    source: int
    target: int


class RunPoint(NamedTuple):
    """The offset on the other side."""

    offset: int


class Between(NamedTuple):
    """The offset is somewhere between two places, and the records there are not known.

    Attributes:
        low: behind what is known before; None where nothing is.
        high: where what is known behind begins; None where nothing is.
    """

    low: Point | None
    high: Point | None


class Behind(NamedTuple):
    """The offset is behind everything that was copied.

    Attributes:
        position: source offset up to which is copied.
        end: target offset behind the last copied record.
    """

    position: int
    end: int


Found = RunPoint | Between | Behind


class PairedRuns:
    """All runs of one partition, in the order of both logs.

    Attributes:
        is_told: whether it is known that nothing was copied behind the last run.
        position: source offset up to which is copied, if so.
        may_repeat: whether syncs come some time after their records can be read, if ever, as outside of transactions.
    """

    def __init__(self) -> None:
        # There may be millions: three numbers each, not objects.
        self._source = array(_INT)
        self._target = array(_INT)
        self._count = array(_INT)
        # Whether there may be records in front of a run that no run holds.
        self._is_open = array(_FLAG)
        self.is_told = False
        self.position = -1
        self.may_repeat = False
        self._is_found = False

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[PairedRun]:
        return map(PairedRun, self._source, self._target, self._count)

    def __getitem__(self, index: int) -> PairedRun:
        return PairedRun(self._source[index], self._target[index], self._count[index])

    @property
    def end(self) -> Point | None:
        """Behind the last run; None without one."""
        return self._behind(len(self) - 1)

    # --- looking up --------------------------------------------------------------------------------------------------

    def downstream(self, offset: int) -> Found:
        """Return the target offset of the first record whose source offset is `offset` or behind it."""
        return self._look(offset, self._source, self._target)

    def upstream(self, offset: int) -> Found:
        """Return the source offset of the first record at or behind target offset `offset`."""
        return self._look(offset, self._target, self._source)

    def _look(self, offset: int, here: array[int], there: array[int]) -> Found:
        at = bisect_right(here, offset)
        if at and offset < here[at - 1] + self._count[at - 1]:
            return RunPoint(there[at - 1] + offset - here[at - 1])
        if at < len(here):
            return Between(self._behind(at - 1), self._begin(at)) if self._is_open[at] else RunPoint(there[at])
        end = self._behind(at - 1)
        if end is None or not self.is_told:
            return Between(end, None)
        return Behind(self.position, end.target)

    def _begin(self, index: int) -> Point:
        return Point(self._source[index], self._target[index])

    def _behind(self, index: int) -> Point | None:
        if index < 0:
            return None
        count = self._count[index]
        return Point(self._source[index] + count, self._target[index] + count)

    # --- from offset syncs -------------------------------------------------------------------------------------------

    def add(
        self, first: Point, parts: Sequence[int], begin: int, *, repeats: bool = False, is_anew: bool = False
    ) -> None:
        """Add the records that a sync covers.

        Args:
            first: where the first of them stands.
            parts: numbers in turn: records in sequence, then source offsets without a record behind them, and so on.
            begin: source offset up to which was read before.
            repeats: whether they may have been written before, too.
            is_anew: whether the source has lost the records from `begin` on that earlier syncs cover.
        """
        if is_anew:
            gone = self._cut(begin, self._source)
            self.position = min(self.position, begin)
            # The records before what is gone are not known.
            self.is_told = self.is_told and not (gone and (self.end is None or self.end.source < begin))
        is_open = self._make_room(first, begin, repeats)
        source, target = first
        behind = self.end.source if self.end is not None and repeats else source
        for count, missing in zip(parts[::2], parts[1::2], strict=True):
            # Records that an earlier sync covers are left out.
            again = min(count, max(0, behind - source))
            if count > again:
                self._append(PairedRun(source + again, target + again, count - again), is_open)
                is_open = False
            source, target = source + count + missing, target + count
        self.position = max(source, self.position) if repeats and self.is_told else source
        self.is_told, self._is_found, self.may_repeat = True, False, repeats

    def add_point(self, first: Point) -> None:
        """Add the single record of a sync without a span."""
        if self.downstream(first.source) == RunPoint(first.target) and self.upstream(first.target) == RunPoint(
            first.source
        ):
            return
        self._make_room(first, first.source, repeats=False)
        self._append(PairedRun(*first, 1), is_open=first not in (self.end, Point(first.source, 0)))
        self.is_told = False

    def _make_room(self, first: Point, begin: int, repeats: bool) -> bool:
        """Drop runs that contradict a record at `first`; return whether other records may be before it."""
        end = self.end
        if end is None:
            return first.target > 0
        upto = self.position if self.is_told else end.source
        # Between two transactions there is at least the marker of the first; a transaction whose syncs are gone takes
        # two offsets or more. Within one transaction compaction removes the older syncs first: the run before a gap
        # ended its own transaction.
        is_next = first.target == end.target or (not repeats and self.is_told and first.target == end.target + 1)
        is_open = begin > upto and not is_next
        if first.target < end.target:
            # Syncs were written again, or the target has lost records.
            cut = self._cut(first.target, self._target)
            is_open = is_open and (cut is None or bool(cut))
        if not repeats and self.end is not None and first.source < self.end.source:
            # The source has lost records and took others at their offsets. The records before them are not known.
            gone, end = self._cut(first.source, self._source), self.end
            is_open = is_open or (bool(gone) and end is not None and end.source < begin and end.target < first.target)
        return is_open if len(self) else first.target > 0

    def _cut(self, offset: int, here: array[int]) -> int | None:
        """Drop the runs at or behind an offset; return whether the first one dropped whole was open before it."""
        at = bisect_right(here, offset)
        if at and here[at - 1] == offset:
            at -= 1
        gone = self._is_open[at] if at < len(here) else None
        for one in (self._source, self._target, self._count, self._is_open):
            del one[at:]
        if at:
            self._count[at - 1] = min(self._count[at - 1], offset - here[at - 1])
        return gone

    def _append(self, run: PairedRun, is_open: bool) -> None:
        if not is_open and self.end == (run.source, run.target):
            self._count[-1] += run.records
            return
        self._source.append(run.source)
        self._target.append(run.target)
        self._count.append(run.records)
        self._is_open.append(is_open)

    # --- from reading both logs ---------------------------------------------------------------------------------------

    def fill(self, gap: Between, runs: Sequence[PairedRun]) -> None:
        """Add what was found between two places; the gap counts as known from now on.

        Args:
            gap: as a look-up has returned it, with nothing added since.
            runs: the runs there, in order.
        """
        at = 0 if gap.low is None else bisect_right(self._source, gap.low.source - 1)
        if at < len(self):
            self._is_open[at] = False
        else:
            last = Point(runs[-1].source + runs[-1].records, 0) if runs else gap.low
            self.is_told = self._is_found = last is not None
            self.position = last.source if last is not None else -1
        for one, values in (
            (self._source, [run.source for run in runs]),
            (self._target, [run.target for run in runs]),
            (self._count, [run.records for run in runs]),
            (self._is_open, [0] * len(runs)),
        ):
            one[at:at] = array(one.typecode, values)

    def doubt(self) -> None:
        """Note that time has passed: where the end was found by reading, and not by a sync, there may be more now."""
        self.is_told = self.is_told and not self._is_found
        self._is_found = False
