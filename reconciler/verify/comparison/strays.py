"""Classifies unexpected records of the target: repeated, reordered, duplicate, allowed, or foreign. Pure."""

from __future__ import annotations

from reconciler.model.offsets.verification import Counts, Difference
from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.looking import WINDOWS, Repeat
from reconciler.verify.comparison.pairing import PairingTerms
from reconciler.verify.comparison.side import Content, Side, content

# This many of the last records that the target lacked are recognised if they come later.
_REMEMBERED = WINDOWS[1]
# This many failed searches further back for an unknown record are made.
_MOST_LOOKS = 16


class Strays:
    """Classifies such records, one after the other.

    Args:
        source: the original's side.
        target: the copy's side.
        terms: how both are paired.
        counts: counts of records that are no difference.
    """

    def __init__(self, source: Side, target: Side, terms: PairingTerms, counts: Counts) -> None:
        self._source = source
        self._target = target
        self._terms = terms
        self._counts = counts
        self._missed: list[Content] = []
        # The record of the target of the last search, and the number of failed searches.
        self._looked_for, self._looks = -1, 0

    @property
    def looks_back(self) -> bool:
        """Whether unknown records may be repeated ones from further back."""
        return self._terms.repeats and self._looks < _MOST_LOOKS

    def is_to_be_looked_for(self, record: RawRecord) -> bool:
        """Return whether to search further back for the next record of the target; once for each unknown record.

        Raises:
            NeedMore: more must be read first.
        """
        if not self.looks_back or record.offset == self._looked_for:
            return False
        if content(record) in map(content, self._source.window(WINDOWS[0])):
            return False
        self._looked_for = record.offset
        return True

    def looked_back(self, found: Repeat | None) -> None:
        """Skip the records that the target repeats, after a search; None if the source had no records to search."""
        if found is not None and found.records:
            self._counts.repeated += found.records
            self._target.leap(found.end)
        elif found is not None:
            self._looks += 1

    def missed(self, record: RawRecord) -> None:
        """Remember a record of the source that the target lacks."""
        self._missed = [*self._missed[-_REMEMBERED:], content(record)]

    def judge(self, record: RawRecord, may_be_compacted: bool) -> Difference | None:
        """Count a record that is allowed, or return the difference.

        Args:
            record: the next one of the target, which is not taken yet.
            may_be_compacted: whether a compacted source may lack it.

        Raises:
            NeedMore: more must be read first.
        """
        counts, terms, place = self._counts, self._terms, self._source.next
        later, before = self._later(record), self._source.went_by(record)
        if terms.repeats and before is not None:
            counts.repeated += 1
        elif content(record) in self._missed:
            return Difference("order", place, record.offset, "it stands later than at the source")
        elif later is not None:
            return Difference("order", later, record.offset, "it stands earlier than at the source")
        elif before is not None:
            return Difference("duplicate", before, record.offset, "it stands at the target once more")
        elif terms.is_shared:
            counts.others += 1
        elif may_be_compacted and terms.source_compacts:
            counts.compacted_source += 1
        else:
            return Difference("extra", place, record.offset, "the source does not have it")
        return None

    def _later(self, record: RawRecord) -> int | None:
        """Return the offset of an equal record a little further on at the source.

        If either side may lack records, a swapped pair beside a gap is recognised by the records that follow.
        """
        if not self._terms.has_gaps:
            return None
        same = content(record)
        ahead = [one.offset for one in self._source.window(WINDOWS[0]) if content(one) == same]
        if not ahead:
            return None
        # If the target has it again as often, this is another record, which the source no longer has.
        again = sum(content(one) == same for one in self._target.window(WINDOWS[1])) - 1
        return ahead[0] if again < len(ahead) else None
