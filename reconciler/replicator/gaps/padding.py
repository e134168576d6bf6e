"""Pads an empty remote partition, so that its log begins at the source's log start.

`identical` calls it before anything is written to a copy whose source lost its beginning to retention. Batches of empty
records use up the offsets and are deleted one after the other, so that a consumer reads at most one. Their timestamp is
0 and they are in no transaction: a lookup by timestamp never stops at those left in the first segment, as it would at a
transaction marker, which has the broker's time. A restart continues from the log end.
"""

from __future__ import annotations

from functools import lru_cache

import zstandard

from reconciler.records import decompression
from reconciler.records.batch import NO_CRC, SEQUENCE_MODULUS, Batch
from reconciler.records.split import split
from reconciler.records.varint import signed
from reconciler.replicator.copy.log_reading import read
from reconciler.replicator.gaps.fill import FillRefused
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.shares import Place
from reconciler.wire import EARLIEST, BrokerError, ErrorCode, Leader, ProduceAnswer, ProduceAsk, TopicInfo, Wire
from reconciler.wire.requests.delete_records import delete_records

# About 400 KB; brokers allow 1 MB by default.
RECORDS_AT_ONCE = 500_000

_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

_TO_DELETE = "DELETE"
_ZSTD = 4


class CannotPad(Exception):
    """The partition cannot be padded: it holds records, another producer writes to it, or it is compacted only."""


async def pad(wire: Wire, place: Place, target: TopicInfo, log_end: LogEnd, until: int) -> int:
    """Advance the log start and end of an empty remote partition to `until`; return the end, which equals it.

    Nothing is written unless records may be deleted. Each sequence number is its offset, modulo 2^31.

    Args:
        wire: to the target.
        place: the partition; nothing else may be writing to it.
        target: its remote topic, with its leader.
        log_end: the producer id and epoch that the padding carries, which are those of the data to come.
        until: where the source's log begins.

    Raises:
        ConnectionLost: no answer: a batch may be in the log or arrive later; take over and call again.
        BrokerError: the leader refuses.
        FillRefused: a permission is missing.
        CannotPad: the partition is not suited for it.
    """
    leader = target.partitions[place.partition]
    log = f"{place.remote}/{place.partition}"
    start = await wire.offset(leader.node, place.remote, place.partition, EARLIEST)
    await _delete(wire, place, leader, start)
    end = await wire.log_end(leader.node, place.remote, place.partition, leader.epoch)
    if end is None or end > until:
        message = f"{log} ends at {'an unknown offset' if end is None else end}, expected at most {until}"
        raise CannotPad(message)
    if start < end:
        if not await is_padding(wire, place, target, start, end):
            message = f"{log} holds records from offset {start} on; padding would delete them"
            raise CannotPad(message)
        await _delete(wire, place, leader, end)
    largest = RECORDS_AT_ONCE
    while end < until:
        count = min(largest, until - end)
        answer = await _write(wire, place, target, _batch(end, count, log_end))
        if answer.error in _TOO_LARGE and count > 1:
            largest = count // 2
            continue
        if answer.error:
            raise BrokerError(answer.error, answer.message)
        if answer.base_offset != end:
            message = f"padding of {log} landed at {answer.base_offset}, not {end}: another producer writes to it"
            raise CannotPad(message)
        end += count
        await _delete(wire, place, leader, end)
    return end


async def is_padding(wire: Wire, place: Place, target: TopicInfo, start: int, end: int) -> bool:
    """Return whether a remote partition holds only padding from `start` to `end`, left by a task that died.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the leader refuses.
    """
    at = start
    while at < end:
        answer = await read(wire, target, place.partition, at)
        found = list(split(answer.records))
        if not found or not all(_is_ours(batch) for batch in found):
            return False
        at = found[-1].next_offset
    return True


def _is_ours(batch: Batch) -> bool:
    if batch.attributes != _ZSTD or batch.max_timestamp != 0 or batch.record_count > RECORDS_AT_ONCE:
        return False
    if batch.body == _body(batch.record_count):
        return True
    # Another release of zstandard may have compressed it.
    raw = empty_records(batch.record_count)
    try:
        return decompression.zstd(bytes(batch.body), len(raw)) == raw
    except (*decompression.UNREADABLE, ValueError):
        return False


async def _delete(wire: Wire, place: Place, leader: Leader, before: int) -> None:
    try:
        await delete_records(wire, leader.node, place.remote, place.partition, before)
    except BrokerError as error:
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise FillRefused(_TO_DELETE, f"topic {place.remote}", error.name) from None
        if error.code == ErrorCode.POLICY_VIOLATION:
            message = f"topic {place.remote} is compacted only, so nothing can be deleted at its beginning"
            raise CannotPad(message) from None
        # The leader has deleted the records, and its followers will; consumers read from the leader.
        if error.code != ErrorCode.REQUEST_TIMED_OUT:
            raise


async def _write(wire: Wire, place: Place, target: TopicInfo, batch: bytes) -> ProduceAnswer:
    ask = ProduceAsk(place.remote, target.topic_id, place.partition, batch)
    return await wire.write_one(target.partitions[place.partition].node, ask)


def _batch(offset: int, count: int, log_end: LogEnd) -> bytes:
    padding = Batch(offset, count - 1, count, _ZSTD, 0, 0, -1, -1, -1, NO_CRC, _body(count))
    return padding.rewritten(log_end.producer_id, log_end.producer_epoch, offset % SEQUENCE_MODULUS)


@lru_cache(maxsize=2)
def _body(count: int) -> bytes:
    return zstandard.ZstdCompressor().compress(empty_records(count))


def empty_records(count: int) -> bytes:
    """Return `count` records with an empty key, which compaction demands, and no value (KIP-98's layout)."""
    out = bytearray()
    for number in range(count):
        # Attributes and timestamp delta, offset delta, key of length 0, value of length -1, no headers.
        record = b"\x00\x00" + signed(number) + b"\x00\x01\x00"
        out.append(2 * len(record))
        out += record
    return bytes(out)
