"""What records of the target are that do not stand where the source's next ones do: stray, or as they may be. Pure."""

from __future__ import annotations

from reconciler.model.offsets.verification import Counts, Difference
from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.looking import WINDOWS, Repeat
from reconciler.verify.comparison.pairing import PairingTerms
from reconciler.verify.comparison.side import Content, Side, content

# So many of the records that the target lacked last are known when they come after all.
_REMEMBERED = WINDOWS[1]
# So often it is looked further back for a record that is not known, and in vain.
_MOST_LOOKS = 16


class Strays:
    """Judges such records, one after the other.

    Args:
        source: the original's side.
        target: the copy's side.
        terms: how they belong together.
        counts: what is no difference goes there.
    """

    def __init__(self, source: Side, target: Side, terms: PairingTerms, counts: Counts) -> None:
        self._source = source
        self._target = target
        self._terms = terms
        self._counts = counts
        self._missed: list[Content] = []
        # For which record of the target it was looked back last, and how often in vain.
        self._looked_for, self._looks = -1, 0

    @property
    def looks_back(self) -> bool:
        """Whether records that are not known may be repeated ones that went by long ago."""
        return self._terms.repeats and self._looks < _MOST_LOOKS

    def is_to_be_looked_for(self, record: RawRecord) -> bool:
        """Tell whether it is to be looked further back for the next record of the target: once, as it is not known.

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
        """Leave out what the target repeats, after it was looked for; None where the source had nothing to look at."""
        if found is not None and found.records:
            self._counts.repeated += found.records
            self._target.leap(found.end)
        elif found is not None:
            self._looks += 1

    def missed(self, record: RawRecord) -> None:
        """Take note of a record of the source that the target lacks."""
        self._missed = [*self._missed[-_REMEMBERED:], content(record)]

    def judge(self, record: RawRecord, may_be_compacted: bool) -> Difference | None:
        """Count a record that may stand there, or return what is wrong with it.

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
        """Return where a record stands a little further on at the source.

        Where either side may lack records, a swapped pair beside a gap is known by what follows.
        """
        if not self._terms.has_gaps:
            return None
        same = content(record)
        ahead = [one.offset for one in self._source.window(WINDOWS[0]) if content(one) == same]
        if not ahead:
            return None
        # Where the target has it again as often, this is another one, which the source has not any more.
        again = sum(content(one) == same for one in self._target.window(WINDOWS[1])) - 1
        return ahead[0] if again < len(ahead) else None
