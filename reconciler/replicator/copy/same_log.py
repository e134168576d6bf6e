"""Compares the newest records that two partitions still hold at one offset, to decide whether they are the same log.

`agreement` calls it before records are written behind existing ones. Batch bounds may differ between the logs, so
records are compared; batches that are equal byte for byte are not decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.records.batch import Batch
from reconciler.records.record import parts
from reconciler.records.rewrite import RawRecord, raw_records
from reconciler.records.split import split
from reconciler.replicator.copy.log_reading import read
from reconciler.wire import TopicInfo, Wire


@dataclass(frozen=True, slots=True)
class LogDifference:
    """The first offset at which two logs hold different records."""

    offset: int
    what: str


async def batch_at(wire: Wire, topic: TopicInfo, partition: int, offset: int) -> Batch | None:
    """Return the batch that holds `offset`, or the next one where that was removed; None when none is visible yet.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the broker refuses.
        UnreadableBatch: a batch cannot be read.
    """
    answer = await read(wire, topic, partition, offset)
    # A broker returns the first batch whole, however large it is.
    for batch in split(answer.records):
        if batch.next_offset > offset:
            return batch
    return None


def first_difference(source: Batch, target: Batch, shift: int = 0) -> LogDifference | None:
    """Return where two batches differ at the offsets that both hold, or None.

    Args:
        source: a batch of the original.
        target: a batch of the copy.
        shift: target offset minus source offset of the same record.

    Raises:
        ValueError: one of them cannot be decoded.
    """
    if _is_copy(source, target, shift):
        return None
    theirs = {record.offset + shift: record for record in raw_records(source)}
    for ours in raw_records(target):
        record = theirs.get(ours.offset)
        if record is not None and record[1:] != ours[1:] and (what := _what_differs(record, ours)):
            return LogDifference(ours.offset, what)
    return None


def share_records(source: Batch, target: Batch, shift: int = 0) -> bool:
    """Return whether two batches hold a record at one offset; compaction may have removed them all.

    Raises:
        ValueError: one of them cannot be decoded.
    """
    if _is_copy(source, target, shift):
        return True
    offsets = {record.offset + shift for record in raw_records(source)}
    return any(record.offset in offsets for record in raw_records(target))


def _is_copy(source: Batch, target: Batch, shift: int) -> bool:
    """Return whether a batch was copied unchanged, without decoding it."""
    return (
        source.base_offset + shift == target.base_offset
        and source.record_count == target.record_count
        and source.base_timestamp == target.base_timestamp
        and source.body == target.body
        and not source.is_log_append_time
        and not target.is_log_append_time
    )


def _what_differs(source: RawRecord, target: RawRecord) -> str:
    """Return the names of the fields that differ; empty where only the encoding does."""
    theirs, ours = parts(source.rest), parts(target.rest)
    differs = {
        "timestamp": source.timestamp != target.timestamp,
        "key": theirs.key != ours.key,
        "value": theirs.value != ours.value,
        "headers": theirs.headers != ours.headers,
    }
    return ", ".join(name for name, is_so in differs.items() if is_so)
