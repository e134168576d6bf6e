"""Finds the newest record of a log in front of trailing transaction markers, and the next visible record.

`identical` uses both: markers at the end of a copy fill a gap of the original, or exceed it.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.records.batch import Batch
from reconciler.records.read_committed import Gap, sift
from reconciler.records.rewrite import first_at
from reconciler.records.split import split
from reconciler.replicator.copy.log_reading import read
from reconciler.wire import TopicInfo, Wire


@dataclass(frozen=True, slots=True)
class LogTail:
    """How a log ends.

    Attributes:
        last: the newest batch of records, or None when the log holds markers at most.
        markers: where the markers behind it begin; the log end when there are none.
    """

    last: Batch | None
    markers: int


async def tail(wire: Wire, topic: TopicInfo, partition: int, start: int, end: int) -> LogTail | None:
    """Return how the log that reaches from `start` to `end` ends; None while that is not readable yet.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the broker refuses.
        UnreadableBatch: a batch cannot be read.
    """
    step = 1
    until = end
    while until > start:
        # The number of markers is unknown: doubling the step reads at most twice the log.
        at = max(start, until - step)
        last, reached = await _last_between(wire, topic, partition, at, end)
        if reached < end:
            return None
        if last is not None:
            return LogTail(last, last.next_offset)
        until, step = at, step * 2
    return LogTail(None, start)


async def _last_between(wire: Wire, topic: TopicInfo, partition: int, at: int, end: int) -> tuple[Batch | None, int]:
    """Return the newest batch of records that ends behind `at`, and how far the log was readable."""
    last: Batch | None = None
    while at < end:
        answer = await read(wire, topic, partition, at)
        before = at
        for batch in split(answer.records):
            if batch.next_offset > at:
                at = batch.next_offset
                last = last if batch.is_control else batch
        if at == before:
            break
    return last, at


async def next_visible(wire: Wire, topic: TopicInfo, partition: int, offset: int) -> tuple[int, bool]:
    """Return the offset of the first record at or behind `offset` under read_committed, and True.

    Without one, return the offset up to which there is none, and False.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the broker refuses.
        UnreadableBatch: a batch cannot be read.
    """
    while True:
        # A source that has nothing more answers at once.
        answer = await read(wire, topic, partition, offset, committed=True, wait_ms=0)
        before = offset
        for item in sift(split(answer.records), offset, answer.aborted):
            if isinstance(item, Gap):
                offset = item.next
                continue
            # Compaction also removes records from the middle of a batch.
            at = first_at(item, offset)
            if at is not None:
                return at, True
            offset = item.next_offset
        if offset == before:
            return offset, False
