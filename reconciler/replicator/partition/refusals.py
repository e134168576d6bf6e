"""Which records of a batch the target refuses, from its produce response. Pure.

`channel` calls it when a batch is refused. Brokers since 2.4 validate all records of a batch and list each that they
refuse (ProduceResponse from version 8 on); without a list the batch is divided until a single record is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reconciler.model.tasks.status import Reason
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ProduceAnswer

# Limits of what is put aside of one batch. The record of a copy holds twice as many ranges, so that those of the next
# batch do not push them out.
_MOST_RANGES, _MOST_RECORDS = 500, 100_000
_FEW = 0.2
_NAMED = 10


class RefusedRecords(NamedTuple):
    """A record that the target never accepts.

    Attributes:
        number: index in its batch, from 0.
        offset: at the source.
        reason: why.
    """

    number: int
    offset: int
    reason: Reason


def refused_records(place: Place, sent: InFlightBatch, answer: ProduceAnswer) -> tuple[RefusedRecords, ...]:
    """Return the records for which a batch was refused, in order; none where the response does not name them.

    Args:
        place: its partition.
        sent: the batch.
        answer: the target's response, with a permanent error.
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


def reduced_size(sent: InFlightBatch, refused: Sequence[RefusedRecords]) -> int | None:
    """Return the bytes of a batch that would hold only as many refused records as are put aside at once.

    Returns None when the batch already does.
    """
    parts = _share(refused)
    return int(sent.size / parts) if parts > 1 else None


def are_few(refused: Sequence[RefusedRecords]) -> bool:
    """Return whether these are so few that batches need not stay divided."""
    return _share(refused) < _FEW


def _share(refused: Sequence[RefusedRecords]) -> float:
    """Return the ratio of these to the limits of what is put aside at once."""
    return max(len(ranges([one.offset for one in refused])) / _MOST_RANGES, len(refused) / _MOST_RECORDS)


def _why(place: Place, answer: ProduceAnswer, message: str | None) -> Reason:
    return Reason("AB217", f"{place.remote} never accepts it ({reasons.detail_of(answer, message)})")


def why_parked(
    place: Place, sent: InFlightBatch, refused: Sequence[RefusedRecords], answer: ProduceAnswer
) -> reasons.Verdict:
    """Return why a partition parks, naming all refused records of a batch, where no dead letter topic is declared.

    Args:
        place: the partition.
        sent: the batch.
        refused: its records that the target never accepts; at least one.
        answer: the target's response.
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
    """Return sorted offsets as ranges: first offset, and the offset behind the last."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1] = found[-1][0], offset + 1
        else:
            found.append((offset, offset + 1))
    return found
