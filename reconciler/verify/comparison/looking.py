"""Searches that reach further than the comparison: meetings, repeated records, later records of keys. Pure.

`comparer` requests them (`wanted`), `work` runs them on separate sides, so that compared sides keep their positions.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.align import align
from reconciler.verify.comparison.describe import Identity, identity, may_be_one
from reconciler.verify.comparison.pairing import go_on_alike
from reconciler.verify.comparison.side import NeedMore, Side, UnreadableLog, content

# Window sizes, in records, of the search for where both sides are equal again; the next one if one fails.
WINDOWS = (8, 64, 512, 4096, 16384)
# The last records before a meeting that are paired one by one.
_LAST = 16
# Records that are compared at once.
_AT_ONCE = 4096


class Meeting:
    """Finds where two sides are equal again, if one lacks more records than a window holds, as after compaction.

    The next records of each side are kept, some thousand; the records of the other side are read past them, in pieces.

    Args:
        source: begins with the next record to compare.
        target: likewise.

    Attributes:
        found: offsets on both sides of a record that both have; None if there is none (yet).
    """

    def __init__(self, source: Side, target: Side) -> None:
        self.found: tuple[int, int] | None = None
        self._sides = (source, target)
        self._windows: list[list[RawRecord]] = []

    def advance(self) -> Side | None:
        """Search the records that were read; return the side of which more must be read, or None at the end."""
        while True:
            try:
                while len(self._windows) < len(self._sides):
                    self._windows.append(_taken(self._sides[len(self._windows)], WINDOWS[-1]))
                while self.found is None and any([self._goes_on(number) for number in (0, 1)]):
                    pass
            except NeedMore as need:
                return need.side
            except UnreadableLog as fault:
                fault.side.drop(fault.batch)
            else:
                return None

    def _goes_on(self, number: int) -> bool:
        """Search the next records of one side among those kept of the other; return whether there were any."""
        if self.found is not None:
            return False
        rows, others = _taken(self._sides[number], _AT_ONCE), self._windows[1 - number]
        pair = align(list(map(content, rows)), list(map(content, others)))
        if pair is not None:
            here, there = rows[pair[0]].offset, others[pair[1]].offset
            self.found = (there, here) if number else (here, there)
        return bool(rows)


class Approach:
    """The records of both sides before a meeting; most are on one side alone, some were changed.

    Records of the side that has fewer are indexed by timestamp and key, a window of them at most.

    Args:
        source: the original's side.
        target: the copy's side.
        until: offsets of the meeting on both sides.
    """

    def __init__(self, source: Side, target: Side, until: tuple[int, int]) -> None:
        self._source, self._target = source, target
        self._until = until
        self._near: tuple[Side, dict[Identity, int]] | None = None

    def next(self) -> tuple[RawRecord | None, RawRecord | None]:
        """Return the next record of one side, or one of each that are the same record, changed.

        Both are None if none is left.

        Raises:
            NeedMore: more must be read.
            UnreadableLog: the next batch cannot be decoded.
        """
        original, copy = _below(self._source.head(), self._until[0]), _below(self._target.head(), self._until[1])
        if original is None or copy is None:
            return original, copy
        self._near = self._near or self._look_near()
        near, places = self._near
        here, there = (original, copy) if near is self._source else (copy, original)
        at = places.get(identity(there), -1)
        takes_near = at > here.offset
        if at < here.offset:
            ours, theirs = self._last(self._source, 0), self._last(self._target, 1)
            if len(ours) == len(theirs) <= _LAST and may_be_one(original, copy):
                return original, copy
            rest, others = (ours, theirs) if near is self._source else (theirs, ours)
            takes_near = len(others) < len(rest) and identity(here) not in map(identity, others)
        elif at == here.offset:
            return original, copy
        return (original, None) if takes_near is (near is self._source) else (None, copy)

    def _last(self, side: Side, number: int) -> list[RawRecord]:
        """Return the records left before the meeting, at most one more than `_LAST`."""
        return [one for one in side.window(_LAST + 1) if one.offset < self._until[number]]

    def _look_near(self) -> tuple[Side, dict[Identity, int]]:
        for size in WINDOWS:
            for side, until in ((self._target, self._until[1]), (self._source, self._until[0])):
                rows = side.window(size)
                if len(rows) < size or rows[-1].offset >= until:
                    return side, {identity(one): one.offset for one in rows if one.offset < until}
        return self._target, {}


class Repeat:
    """Finds how far the target repeats records, as after a flow has gone on from its last committed position.

    Args:
        source: from the first offset that may be repeated to the compared position.
        target: begins with the first of these records.

    Attributes:
        records: number of repeated records.
        end: target offset after the last of them.
    """

    def __init__(self, source: Side, target: Side) -> None:
        self.records = 0
        self.end = target.next
        self._source = source
        self._target = target
        # Whether the first of them is found; and whether an equal record is found that is followed by others.
        self._is_found = self._is_alone = False

    def advance(self) -> Side | None:
        """Search the records that were read; return the side of which more must be read, or None at the end."""
        while True:
            try:
                while self._goes_on():
                    pass
            except NeedMore as need:
                return need.side
            except UnreadableLog as fault:
                if fault.side is self._target or self._is_found:
                    return None
                fault.side.drop(fault.batch)
            else:
                return None

    def _goes_on(self) -> bool:
        original, copy = self._source.head(), self._target.head()
        if copy is None:
            return False
        is_same = original is not None and content(original) == content(copy)
        if self._is_found:
            if is_same:
                self._source.take()
                self._take()
            return is_same
        if original is None:
            if self._is_alone:
                self._take()
            return False
        if is_same:
            self._is_found = go_on_alike(self._source.window(WINDOWS[0]), self._target.window(WINDOWS[0]))
            self._is_alone = True
        if not self._is_found:
            self._source.take()
        return True

    def _take(self) -> None:
        self.end = self._target.take().offset + 1
        self.records += 1


class Scan:
    """Calls a function with every record of a side; batches that cannot be read are skipped.

    Args:
        side: the side to read.
        look: called with each record.
    """

    def __init__(self, side: Side, look: Callable[[RawRecord], None]) -> None:
        self._side = side
        self._look = look

    def advance(self) -> Side | None:
        """Scan the records that were read; return the side if more must be read, or None at the end."""
        while True:
            try:
                while self._side.head() is not None:
                    self._look(self._side.take())
            except NeedMore as need:
                return need.side
            except UnreadableLog as fault:
                fault.side.drop(fault.batch)
            else:
                return None


def _taken(side: Side, count: int) -> list[RawRecord]:
    rows = side.window(count)
    for _ in rows:
        side.take()
    return rows


def _below(record: RawRecord | None, offset: int) -> RawRecord | None:
    return None if record is None or record.offset >= offset else record
