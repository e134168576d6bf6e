"""Which records of a batch the target refuses, as its answer names them. Pure.

`channel` asks when a batch is refused. Brokers since 2.4 look at all records of a batch and name each that they refuse
(ProduceResponse from version 8 on); where one names none, the batch is divided until a single record is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reconciler.model.tasks.status import Reason
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ProduceAnswer

# What is put aside of one batch: of a copy twice as many ranges are remembered, so that its own are not pushed out by
# those of the batch behind it.
_MOST_RANGES, _MOST_RECORDS = 500, 100_000
_FEW = 0.2
_NAMED = 10


class RefusedRecords(NamedTuple):
    """A record that the target will never take.

    Attributes:
        number: which of its parcel's records, from 0.
        offset: at the source.
        reason: why.
    """

    number: int
    offset: int
    reason: Reason


def refused_records(place: Place, sent: InFlightBatch, answer: ProduceAnswer) -> tuple[RefusedRecords, ...]:
    """Return the records for which a parcel was refused, in order; none where nobody can tell.

    Args:
        place: its partition.
        sent: what was sent.
        answer: what the target said of it: an error that stays.
    """
    if answer.error in reasons.TOO_LARGE:
        verdict = reasons.why_failed(place.remote, sent.landing, sent.size, answer)
        assert verdict is not None, "an answer with an error"
        return (RefusedRecords(0, sent.base_offset, verdict[1]),) if sent.records == 1 else ()
    messages = {one.number: one.message for one in answer.records if 0 <= one.number < sent.records}
    if sent.records == 1:
        messages = {0: messages.get(0)}
    return tuple(
        RefusedRecords(index, sent.source_offset(index), _why(place, answer, messages[index]))
        for index in sorted(messages)
    )


def much(sent: InFlightBatch, refused: Sequence[RefusedRecords]) -> int | None:
    """Return in how many bytes a parcel holds no more refused records than are put aside at once.

    None where it holds no more.
    """
    parts = _share(refused)
    return int(sent.size / parts) if parts > 1 else None


def are_few(refused: Sequence[RefusedRecords]) -> bool:
    """Tell whether those of a larger batch might be put aside at once as well: what was divided may be whole again."""
    return _share(refused) < _FEW


def _share(refused: Sequence[RefusedRecords]) -> float:
    """Return which share these are of what is put aside at once."""
    return max(len(ranges([one.offset for one in refused])) / _MOST_RANGES, len(refused) / _MOST_RECORDS)


def _why(place: Place, answer: ProduceAnswer, message: str | None) -> Reason:
    return Reason("AB217", f"{place.remote} never takes it ({reasons.said_of(answer, message)})")


def why_parked(
    place: Place, sent: InFlightBatch, refused: Sequence[RefusedRecords], answer: ProduceAnswer
) -> reasons.Verdict:
    """Return why a partition parks, with all refused records of a batch that was not to be put aside.

    Args:
        place: the partition.
        sent: what was sent.
        refused: its records that the target will never take; at least one.
        answer: what the target said.
    """
    found = ranges([one.offset for one in refused])
    named = [str(first) if behind == first + 1 else f"{first} to {behind - 1}" for first, behind in found[:_NAMED]]
    if more := len(refused) - sum(behind - first for first, behind in found[:_NAMED]):
        named.append(f"{more:,} more")
    *others, last = named
    listed = f"{', '.join(others)} and {last}" if others else last
    one = f"of the {sent.records:,} records" if sent.records > 1 else "the only record"
    count = f"{len(refused):,} {one}" if sent.records > 1 else one
    offsets = "offset" if len(refused) == 1 else "offsets"
    what = f"{count} in the batch at source offset {sent.base_offset} of {place.topic}/{place.partition}"
    return reasons.refused(f"{what}, at {offsets} {listed}", answer)


def ranges(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return offsets that are in order as ranges, each with the offset behind it."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1] = found[-1][0], offset + 1
        else:
            found.append((offset, offset + 1))
    return found
