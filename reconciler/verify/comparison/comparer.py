"""Compares a copy with its original: batches as bytes wherever they are equal, else record by record, in order.

With identical offsets records are paired by their offsets, through recorded shifted runs; with translated ones by their
order. After a difference the sides are aligned by the content of records, so that one lost record is one difference,
and not one for each record after it. Pure: `work` passes in what `feed` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from reconciler.model.offsets.verification import Difference, Findings, Kind
from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.align import align, are_swapped
from reconciler.verify.comparison.compaction import Compaction
from reconciler.verify.comparison.describe import may_be_one, what_differs
from reconciler.verify.comparison.looking import WINDOWS, Approach
from reconciler.verify.comparison.pairing import (
    PairingTerms,
    Places,
    changed_pairs,
    go_on_alike,
    hold_the_same,
    in_words,
)
from reconciler.verify.comparison.side import NeedMore, Side, UnreadableLog, content
from reconciler.verify.comparison.strays import Strays

Wanted = Literal["", "meeting", "keys", "repeat"]

_SMALL = WINDOWS[1]
# After this many failed searches for an equal record, the logs count as unrelated.
_MOST_FAILED = 4


class Comparer:
    """Compares one partition.

    Args:
        source: the original's side.
        target: the copy's side.
        terms: how both are paired.
        findings: earlier findings; added to.
        compaction: records that a compacted target lacks so far.
        moved: by how many offsets records of the target are higher than they should be, after earlier differences.

    Attributes:
        places: target offsets at which records should be.
        strays: classifies unexpected records of the target.
        compaction: as above.
        meeting: offsets on both sides from which both are equal again, until both are reached; compaction has taken
            records before them. It may be set before the first call.
        failed_meetings: how often no such place was found since the last equal record. It may be set likewise.
        unread: a side, and the number of its records that stand for an unreadable batch of the other side; no piece
            ends before they are skipped.
        wanted: the search that must be made before it can go on; empty for none.
    """

    def __init__(
        self,
        source: Side,
        target: Side,
        terms: PairingTerms,
        findings: Findings,
        compaction: Compaction | None = None,
        moved: int = 0,
    ) -> None:
        self.source = source
        self.target = target
        self.compaction = compaction or Compaction()
        self.places = Places(terms.record.runs, moved)
        self._terms = terms
        self._findings = findings
        self._counts = findings.counts
        # The kind of the last difference, until an equal record follows.
        self._streak: Kind | None = None
        # The number of next pairs that no shift makes equal.
        self._blind = 0
        self.unread: tuple[Side, int] = source, 0
        self.meeting: tuple[int, int] | None = None
        # Whether the records of both windows are known to be on one side alone.
        self.failed_meetings, self._is_apart = 0, False
        self.wanted: Wanted = ""
        self._approach: Approach | None = None
        self.strays = Strays(source, target, terms, findings.counts)
        self._mind_end()

    def advance(self) -> Side | None:
        """Compare as far as what was read allows; return the side of which more must be read.

        None is returned at the end, or if `wanted` is set.
        """
        self.wanted = ""
        while True:
            try:
                while self._step():
                    pass
            except NeedMore as need:
                return need.side
            except UnreadableLog as fault:
                self._leave_unreadable(fault)
            else:
                return None

    def met(self, meeting: tuple[int, int] | None) -> None:
        """Set the place from which both sides are equal again, after a search; None if there is none."""
        self.meeting, self._is_apart = meeting, meeting is None
        self.failed_meetings += self._is_apart

    @property
    def judged(self) -> int:
        """The source offset below which records are compared, or will be."""
        is_known = self._terms.identical or self._terms.copied_to is not None
        return self._terms.copied(self.source.end) if is_known else self.source.next

    # --- one step -----------------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Compare the next records; return whether any may follow."""
        if self.unread[1]:
            self._skip_unread(*self.unread)
        if self.meeting is not None:
            self._come_together(self.meeting)
            return not self.wanted
        ours, theirs = self.source.whole(), self.target.whole()
        if ours is not None and theirs is not None and not self.compaction:
            fits = not self._terms.identical or self.places.fit(ours, theirs)
            if fits and hold_the_same(ours, theirs):
                self._counts.as_bytes += ours.record_count
                self._count(ours.record_count, ours.size + theirs.size)
                self.source.take_whole()
                self.target.take_whole()
                return True
        original, copy = self.source.head(), self.target.head()
        if original is None or copy is None:
            return self._at_an_end(original, copy)
        if self._terms.identical and self.places.of(original.offset) != copy.offset:
            self._mind_place(original, copy)
        elif content(original) == content(copy):
            self._take_equal()
        else:
            self._mind_difference(original, copy)
        return not self.wanted

    def _take_equal(self) -> None:
        """Take equal records while both sides have decoded ones; the fast path of `_step`."""
        ours, theirs = self.source.decoded, self.target.decoded
        source_end, target_end = self.source.end, self.target.end
        by_offset, count, size = self._terms.identical, 0, 0
        while ours and theirs:
            original, copy = ours[0], theirs[0]
            if original.rest != copy.rest or original.timestamp != copy.timestamp:
                break
            if original.offset >= source_end or copy.offset >= target_end:
                break
            if by_offset and self.places.of(original.offset) != copy.offset:
                break
            if self.compaction:
                self._counts.compacted_target += self.compaction.came_again(original)
            self.source.next, self.target.next = ours.popleft().offset + 1, theirs.popleft().offset + 1
            count, size = count + 1, size + len(original.rest) + len(copy.rest)
        self._count(count, size)

    def _count(self, records: int, size: int) -> None:
        self._counts.records += records
        self._counts.bytes += size
        self._streak, self._blind, self.failed_meetings = None, 0, 0

    # --- where they differ --------------------------------------------------------------------------------------------

    def _mind_place(self, original: RawRecord, copy: RawRecord) -> None:
        """Handle a next record of the target that is at another offset than the source's record should be."""
        place = self.places.of(original.offset)
        if self._mind_expired(place, copy.offset):
            return
        source, target = self.source.window(_SMALL), self.target.window(_SMALL)
        if place < copy.offset:
            same = content(copy)
            is_there = any(self.places.of(one.offset) == copy.offset and content(one) == same for one in source)
        else:
            same = content(original)
            is_there = any(one.offset == place and content(one) == same for one in target)
        if not is_there and go_on_alike(source, target):
            what = f"it stands {in_words(copy.offset - place)} than it should, and so do those behind it"
            self._report("moved", original.offset, copy.offset, what)
            self._move(copy.offset - place)
        elif place < copy.offset:
            self._lacking(original, may_be_compacted=True)
        else:
            self._surplus(copy, may_be_compacted=True)

    def _mind_expired(self, place: int, offset: int) -> bool:
        """Skip records that the other side deleted before they were read; return whether there were any."""
        if offset < place and self.source.expired and offset < (until := self.places.of(self.source.expired)):
            self._counts.expired += self.target.skip(min(until, self.target.read_to))
        elif place < offset and place < self.target.expired and self.source.head() is not None:
            self._take_original()
            self._counts.expired += 1
        else:
            return False
        return True

    def _mind_difference(self, original: RawRecord, copy: RawRecord) -> None:
        """Handle two records that should be equal and are not."""
        is_blind = self._blind and (not self._terms.has_gaps or may_be_one(original, copy))
        if self._terms.repeats and self.source.went_by(copy) is not None:
            self._surplus(copy, may_be_compacted=True)
        elif what_differs(original, copy) and self.strays.is_to_be_looked_for(copy):
            self.wanted = "repeat"
        elif is_blind or not what_differs(original, copy):
            # No shift makes them equal; or they are equal, encoded differently.
            self._blind = max(0, self._blind - 1)
            self._changed(original, copy)
        else:
            self._align()

    def _align(self) -> None:
        """Move both sides to where they are equal again."""
        for size in WINDOWS:
            source, target = self.source.window(size), self.target.window(size)
            ours, theirs = list(map(content, source)), list(map(content, target))
            if are_swapped(ours, theirs):
                self._reordered(2, "it and the next one have changed places")
                return
            found = align(ours, theirs)
            if found is not None:
                self._leave_out(source, target, *found)
                return
            if self.source.shows_all(size) and self.target.shows_all(size):
                break
        else:
            if self._terms.has_gaps and not self._is_apart and self.failed_meetings < _MOST_FAILED:
                # Compaction may have taken more records than a window holds.
                self.wanted = "meeting"
                return
        if self._terms.has_gaps and (len(source) != len(target) or not all(map(may_be_one, source, target))):
            # None of these is on the other side.
            sides = ((self.source, source), (self.target, target))
            is_all = any(side.shows_all(WINDOWS[-1]) for side, _ in sides)
            end, behind = (side.end if is_all else rows[-1].offset + 1 for side, rows in sides)
            self.meeting, self._is_apart = (max(self._terms.copied(end), source[0].offset), behind), False
            return
        self._blind, self._is_apart = min(len(source), len(target)) - 1, False
        self._changed(source[0], target[0])

    def _leave_out(self, source: Sequence[RawRecord], target: Sequence[RawRecord], before: int, after: int) -> None:
        """Report the records before the place from which both sides are equal again."""
        identical = self._terms.identical
        distance = target[after].offset - self.places.of(source[before].offset) if identical else 0
        behind = f"; what follows stands {in_words(distance)}" if distance else ""
        ours, theirs = source[:before], target[:after]
        if before == after and sorted(map(content, ours)) == sorted(map(content, theirs)):
            self._reordered(before, f"{before} records stand in another order")
            return
        pairs = changed_pairs(ours, theirs, self._terms.has_gaps)
        for original, copy in zip(ours[:pairs], theirs[:pairs], strict=True):
            self._changed(original, copy)
        if self._terms.has_gaps:
            self.meeting = source[before].offset, target[after].offset
            return
        # With identical offsets, compaction leaves gaps and shifts no records.
        for original in ours[pairs:]:
            self._lacking(original, may_be_compacted=False, behind=behind)
        # Repeated records may follow a stray one: each is searched for.
        count = max(1, pairs) if self.strays.looks_back else after
        for copy in theirs[pairs:count]:
            self._surplus(copy, may_be_compacted=False, behind=behind)
        self._move(distance)

    def _come_together(self, meeting: tuple[int, int]) -> None:
        """Take the next record before the meeting: it was changed, or is on one side alone."""
        self._approach = self._approach or Approach(self.source, self.target, meeting)
        original, copy = self._approach.next()
        if original is not None and copy is not None:
            self._changed(original, copy)
        elif original is not None:
            self._lacking(original, may_be_compacted=True)
        elif copy is not None:
            self._surplus(copy, may_be_compacted=True)
        else:
            self.meeting = self._approach = None

    def _reordered(self, count: int, what: str) -> None:
        pairs = [(self._take_original(), self.target.take()) for _ in range(count)]
        self._report("order", pairs[0][0].offset, pairs[0][1].offset, what, records=count)

    def _changed(self, original: RawRecord, copy: RawRecord) -> None:
        self._take_original()
        self.target.take()
        if what := what_differs(original, copy):
            self._report("changed", original.offset, copy.offset, what)
        else:
            self._count(1, len(original.rest) + len(copy.rest))

    def _take_original(self) -> RawRecord:
        record = self.source.take()
        if self.compaction:
            self._counts.compacted_target += self.compaction.came_again(record)
        return record

    def _lacking(self, record: RawRecord, may_be_compacted: bool, behind: str = "") -> None:
        """Take the next record of the source, which the target lacks."""
        place = self.places.of(record.offset) if self._terms.identical else self.target.next
        self.source.take()
        if self._terms.record.behind_aside(record.offset) != record.offset:
            self._counts.aside += 1
            return
        compacts = may_be_compacted and self._terms.target_compacts
        replaced = self.compaction.lacks(record, place) if compacts else None
        self.strays.missed(record)
        if replaced is not None:
            self._counts.compacted_target += replaced
            if self.compaction.is_full:
                self.wanted = "keys"
            return
        self._report("missing", record.offset, place, f"the target does not have it{behind}")

    def _surplus(self, record: RawRecord, may_be_compacted: bool, behind: str = "") -> None:
        """Take the next record of the target, which the source does not have there."""
        stray = self.strays.judge(record, may_be_compacted)
        self.target.take()
        if stray is not None:
            self._report(stray.kind, stray.source, stray.target, f"{stray.what}{behind}")

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _at_an_end(self, original: RawRecord | None, copy: RawRecord | None) -> bool:
        """Take records of one side after the other's end; return whether any may follow."""
        copied_to, places = self._terms.copied_to, self.places
        if self._terms.identical and (original is None) is not (copy is None):
            place = places.of(self.source.end if original is None else original.offset)
            if self._mind_expired(place, self.target.end if copy is None else copy.offset):
                return True
        if copy is not None and self.source.went_by(copy) is None and self.strays.is_to_be_looked_for(copy):
            self.wanted = "repeat"
        elif copy is not None:
            self._surplus(copy, may_be_compacted=True)
        elif original is not None and (
            self._terms.identical or (copied_to is not None and original.offset < copied_to)
        ):
            self._lacking(original, may_be_compacted=True)
        elif self.compaction:
            self.wanted = "keys"
        else:
            self._finish()
            return False
        return not self.wanted

    def _finish(self) -> None:
        reached = self.source.end if self._terms.identical or self.source.is_over else self.source.next
        self._counts.behind = max(0, self._terms.source_end - reached)
        self.source.next, self.target.next = max(self.source.next, reached), max(self.target.next, self.target.end)

    def _move(self, distance: int) -> None:
        self.places.moved += distance
        self._mind_end()

    def _mind_end(self) -> None:
        """Set the end of the source from the end of the target, with identical offsets."""
        if self._terms.identical:
            end = min(self._terms.source_end, self.places.source_end(self.target.end))
            self.source.end = max(self.source.next, end)

    def _leave_unreadable(self, fault: UnreadableLog) -> None:
        """Skip a batch, and then its records on the other side."""
        batch, side = fault.batch, fault.side
        other, sign = (self.target, 1) if side is self.source else (self.source, -1)
        there = other.next
        if self._terms.identical:
            there = batch.base_offset + sign * (self.places.of(self.source.next) - self.source.next)
            other.skip(there + batch.next_offset - batch.base_offset)
        else:
            # The comparison may have begun inside the batch.
            self.unread = other, min(batch.record_count, batch.next_offset - max(side.next, batch.base_offset))
        side.drop(batch)
        ours, theirs = (batch.base_offset, there) if side is self.source else (there, batch.base_offset)
        what = f"a batch of {batch.record_count} records cannot be read at the {side.name}: {fault}"
        self._report("unreadable", ours, theirs, what, records=batch.record_count)

    def _skip_unread(self, side: Side, count: int) -> None:
        """Skip the records that stand for an unreadable batch of the other side."""
        while count and side.head() is not None:
            side.take()
            count -= 1
            self.unread = side, count
        self.unread = side, 0

    def _report(self, kind: Kind, source: int, target: int, what: str, records: int = 1) -> None:
        goes_on = kind == self._streak and kind in ("missing", "extra", "duplicate")
        self._streak = kind
        self._findings.add(Difference(kind, source, target, what, records), goes_on)
