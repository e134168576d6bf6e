"""Which record at the target belongs to which at the source, and when batches of both hold the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.offsets.runs import CopyRecord, Runs
from reconciler.records.batch import CODEC_BITS, Batch
from reconciler.records.rewrite import RawRecord
from reconciler.replicator.partition.place import differ
from reconciler.verify.comparison.describe import may_be_one
from reconciler.verify.comparison.side import content

# So many records in a row are the same where two logs go on alike.
_CONFIRMED = 3
_NEVER = 2**63


@dataclass(frozen=True)
class PairingTerms:
    """How the two sides of a partition belong together.

    Attributes:
        identical: whether records are paired by their offsets; else by their order.
        record: what is recorded of the copy: shifted runs, and records that were put aside.
        copied_to: source offset below which all is copied; None where nobody knows.
        source_end: up to where the source could be read when the comparison began.
        repeats: whether records may stand twice at the target.
        source_compacts: whether the source is a compacted topic.
        target_compacts: whether the target is.
        is_shared: whether other flows have copied there, too.
    """

    identical: bool
    record: CopyRecord
    copied_to: int | None
    source_end: int
    repeats: bool = False
    source_compacts: bool = False
    target_compacts: bool = False
    is_shared: bool = False

    def copied(self, end: int) -> int:
        """Return a source offset, or up to where the source is known to be copied if that is less."""
        return end if self.copied_to is None else min(end, self.copied_to)

    @property
    def has_gaps(self) -> bool:
        """Whether either side may lack what the other one has, and nothing but their order tells."""
        return not self.identical and (self.source_compacts or self.target_compacts or self.is_shared)


class Places:
    """Where records of the source should stand at the target.

    Args:
        runs: the shifted runs that are recorded of the copy.
        moved: how much higher they stand than that, behind differences that were told.

    Attributes:
        moved: as above; it changes.
    """

    def __init__(self, runs: Runs, moved: int = 0) -> None:
        self.moved = moved
        self._runs = runs
        self._from = self._to = self._shift = 0

    def of(self, offset: int) -> int:
        """Return the target offset at which the record of a source offset should stand."""
        if not self._from <= offset < self._to:
            self._shift = self._runs.at_source(offset).shift
            starts = [run.source for run in self._runs.runs]
            self._from = max((one for one in starts if one <= offset), default=0)
            self._to = min((one for one in starts if one > offset), default=_NEVER)
        return offset + self._shift + self.moved

    def source_end(self, end: int) -> int:
        """Return the source offset up to which a target is a copy that ends at an offset."""
        end -= self.moved
        return end - self._runs.at_target(end).shift

    def fit(self, ours: Batch, theirs: Batch) -> bool:
        """Tell whether a whole batch stands at the target where it should."""
        return (
            self.of(ours.base_offset) == theirs.base_offset and self.of(ours.next_offset - 1) == theirs.next_offset - 1
        )


def is_of_another(record: CopyRecord, source_id: str | None, target_id: str | None) -> bool:
    """Tell whether another flow's copy record says that records of another original stand in a copy.

    One that only announced a copy has copied nothing, and one of the same original was this flow under another name.

    Args:
        record: what the other flow has on record of this remote partition.
        source_id: id of our original; None where the brokers have none.
        target_id: id of the remote topic as it is now, likewise.
    """
    is_same = None not in (record.source_id, source_id) and record.source_id == source_id
    return record.is_begun and not is_same and not differ(record.target_id, target_id)


def hold_the_same(ours: Batch, theirs: Batch) -> bool:
    """Tell whether two batches hold the same bytes, records and times; then nothing needs to be decoded."""
    if ours.record_count != theirs.record_count or len(ours.body) != len(theirs.body):
        return False
    if (ours.attributes ^ theirs.attributes) & CODEC_BITS:
        return False
    if ours.is_log_append_time is not theirs.is_log_append_time:
        return False
    if ours.is_log_append_time:
        return ours.max_timestamp == theirs.max_timestamp and ours.body == theirs.body
    return ours.base_timestamp == theirs.base_timestamp and ours.body == theirs.body


def changed_pairs(source: Sequence[RawRecord], target: Sequence[RawRecord], has_gaps: bool) -> int:
    """Return how many of the first records of two rows are the same ones, changed.

    Args:
        source: what stands there before the place from which both go on alike.
        target: likewise.
        has_gaps: whether either side may lack records as well; then another one of its key may hold the same.
    """
    count = min(len(source), len(target))
    if not has_gaps:
        return count
    is_gap = len(source) != len(target)
    for at in range(count):
        if not may_be_one(source[at], target[at]) or (is_gap and source[at].rest == target[at].rest):
            return at
    return count


def go_on_alike(source: Sequence[RawRecord], target: Sequence[RawRecord]) -> bool:
    """Tell whether two rows of records carry the same, as far as a few of them tell."""
    return all(
        content(ours) == content(theirs) for ours, theirs in zip(source[:_CONFIRMED], target[:_CONFIRMED], strict=False)
    )


def in_words(distance: int) -> str:
    """Return a distance between places: `2 offsets higher`."""
    count = abs(distance)
    return f"{count} offset{'' if count == 1 else 's'} {'higher' if distance > 0 else 'lower'}"
