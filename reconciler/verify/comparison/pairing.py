"""Pairs records of the source with records of the target, and compares whole batches. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.offsets.runs import CopyRecord, Runs
from reconciler.records.batch import CODEC_BITS, Batch
from reconciler.records.rewrite import RawRecord
from reconciler.replicator.partition.place import differ
from reconciler.verify.comparison.describe import may_be_one
from reconciler.verify.comparison.side import content

# This many equal records in a row mean that two logs are the same again.
_CONFIRMED = 3
_NEVER = 2**63


@dataclass(frozen=True)
class PairingTerms:
    """How the two sides of a partition are paired.

    Attributes:
        identical: whether records are paired by their offsets; else by their order.
        record: the copy record: shifted runs, and records that were put aside.
        copied_to: source offset below which all is copied; None if unknown.
        source_end: end offset of the source when the comparison began.
        repeats: whether records may be at the target twice.
        source_compacts: whether the source is a compacted topic.
        target_compacts: whether the target is.
        is_shared: whether other flows have filled the copy, too.
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
        """Return the smaller of a source offset and `copied_to`."""
        return end if self.copied_to is None else min(end, self.copied_to)

    @property
    def has_gaps(self) -> bool:
        """Whether either side may lack records of the other, and only their order pairs them."""
        return not self.identical and (self.source_compacts or self.target_compacts or self.is_shared)


class Places:
    """Maps source offsets to the target offsets at which their records should be.

    Args:
        runs: the recorded shifted runs of the copy.
        moved: by how many offsets records are higher than that, after reported differences.

    Attributes:
        moved: as above; it changes.
    """

    def __init__(self, runs: Runs, moved: int = 0) -> None:
        self.moved = moved
        self._runs = runs
        self._from = self._to = self._shift = 0

    def of(self, offset: int) -> int:
        """Return the target offset at which the record of a source offset should be."""
        if not self._from <= offset < self._to:
            self._shift = self._runs.at_source(offset).shift
            starts = [run.source for run in self._runs.runs]
            self._from = max((one for one in starts if one <= offset), default=0)
            self._to = min((one for one in starts if one > offset), default=_NEVER)
        return offset + self._shift + self.moved

    def source_end(self, end: int) -> int:
        """Return the source offset that corresponds to an end offset of the target."""
        end -= self.moved
        return end - self._runs.at_target(end).shift

    def fit(self, ours: Batch, theirs: Batch) -> bool:
        """Return whether a whole batch is at the target offsets at which it should be."""
        return (
            self.of(ours.base_offset) == theirs.base_offset and self.of(ours.next_offset - 1) == theirs.next_offset - 1
        )


def is_of_another(record: CopyRecord, source_id: str | None, target_id: str | None) -> bool:
    """Return whether another flow's copy record means that a copy holds records of another original.

    A record that only announces a copy means no copied records; one of the same original is this flow, renamed.

    Args:
        record: the other flow's copy record of this remote partition.
        source_id: id of this flow's original; None if brokers have no topic ids.
        target_id: id of the remote topic now, likewise.
    """
    is_same = None not in (record.source_id, source_id) and record.source_id == source_id
    return record.is_begun and not is_same and not differ(record.target_id, target_id)


def hold_the_same(ours: Batch, theirs: Batch) -> bool:
    """Return whether two batches hold the same bytes, records and timestamps, so that none need be decoded."""
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
    """Return how many of the first records of two sequences are pairs of one record that was changed.

    Args:
        source: the records before the place from which both sides are equal again.
        target: likewise.
        has_gaps: whether either side may lack records; another record of the key may then hold the same.
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
    """Return whether the first few records of two sequences are equal."""
    return all(
        content(ours) == content(theirs) for ours, theirs in zip(source[:_CONFIRMED], target[:_CONFIRMED], strict=False)
    )


def in_words(distance: int) -> str:
    """Return a distance between places: `2 offsets higher`."""
    count = abs(distance)
    return f"{count} offset{'' if count == 1 else 's'} {'higher' if distance > 0 else 'lower'}"
