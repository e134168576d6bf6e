"""Merges small consecutive batches of one partition into one, so that a produce request carries more records.

`channel` takes its next batch to send from here. Only the front of each record is encoded anew (length, timestamp delta
and offset delta); key, value and headers are copied as one slice. Compressed batches of one codec are decompressed for
that, and compressed again. Pure.

The layout of a record is Kafka's `DefaultRecord`: length, attributes, timestamp delta, offset delta, then that slice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from reconciler.records.batch import CODEC_BITS, LARGE, NO_CRC, Batch
from reconciler.records.codecs import GZIP, pack, unpack
from reconciler.records.varint import SIGNED, read, signed

# Batches of more records than this cost more to merge than they cost to send one by one, over a quick line; in gzip,
# which takes 30 ms for a megabyte, over any.
FEW_RECORDS = 16
# The most bytes of records that are merged at once, decompressed: some milliseconds of work.
PLAIN_BYTES = 2**20
_MORE = 0x80
_BITS = 0x7F
_TABLE = len(SIGNED)


class MergedBatch(NamedTuple):
    """One batch taken out of a queue, and how many bytes it had there."""

    batch: Batch
    size: int


def take(queue: deque[Any], limit: int, small: int = 0) -> MergedBatch:
    """Take the first batch out of `queue`, merged with the following ones where possible.

    Args:
        queue: batches and gaps; a batch is first.
        limit: most bytes of a merged batch; 0 merges nothing. Batches that the target refused as too large are sent
            again in smaller ones, which must not be merged beyond that size.
        small: a batch of more than `FEW_RECORDS` records is merged only if it has fewer bytes than this, and is not in
            gzip.
    """
    first: Batch = queue.popleft()
    alone = MergedBatch(first, first.size)
    if not queue or not _may_merge(first, limit, small):
        return alone
    run = [first]
    size, expected, codec = first.size, first.next_offset, first.attributes & CODEC_BITS
    while queue:
        batch = queue[0]
        if not isinstance(batch, Batch) or batch.base_offset != expected or not _may_merge(batch, limit, small):
            break
        size += len(batch.body)
        if size > limit or batch.attributes & CODEC_BITS != codec:
            break
        run.append(queue.popleft())
        expected = batch.next_offset
    while len(run) > 1:
        try:
            one, count = _compressed(run, codec) if codec else (merged(run), len(run))
        except (ValueError, IndexError):
            # The records or the checksum are wrong: send the batch as it is, and the target refuses it with an error.
            queue.extendleft(reversed(run[1:]))
            return alone
        queue.extendleft(reversed(run[count:]))
        del run[count:]
        if one.size <= limit:
            return MergedBatch(one, sum([batch.size for batch in run]))
        # Deltas grow with the distance from the first record, so the result can exceed the sum of the sizes.
        half = len(run) // 2
        queue.extendleft(reversed(run[half:]))
        del run[half:]
    return alone


def _compressed(run: Sequence[Batch], codec: int) -> tuple[Batch, int]:
    """Return the first batches of `run` as one, compressed again, and how many they are: 1 for the first as it is.

    Raises:
        ValueError: a batch cannot be decompressed, or is damaged.
        IndexError: as for `merged`.
    """
    plain: list[Batch] = []
    size = 0
    for batch in run:
        _check_large(batch)
        body = unpack(codec, batch.body)
        size += len(body)
        if plain and size > PLAIN_BYTES:
            break
        plain.append(batch._replace(attributes=0, crc=NO_CRC, body=bytes(body)))
    if len(plain) == 1:
        return run[0], 1
    one = _joined(plain)
    return one._replace(attributes=codec, body=pack(codec, one.body)), len(plain)


def _may_merge(batch: Batch, limit: int, small: int) -> bool:
    return (
        (batch.record_count <= FEW_RECORDS or (batch.size < small and batch.attributes & CODEC_BITS != GZIP))
        and not batch.is_control
        and not batch.is_log_append_time
        and batch.record_count == batch.last_offset_delta + 1
        and batch.size < limit
    )


def merged(batches: Sequence[Batch]) -> Batch:
    """Return one batch with the records of `batches`, which are uncompressed, without holes, and consecutive.

    Raises:
        ValueError: a batch's records do not match its header, or it is large and damaged.
        IndexError: the body ends within a record.
    """
    for batch in batches:
        _check_large(batch)
    return _joined(batches)


def _joined(batches: Sequence[Batch]) -> Batch:
    """Return what `merged` does, of batches whose checksums were verified."""
    first = batches[0]
    base_offset, base_time = first.base_offset, first.base_timestamp
    pieces: list[bytes] = []
    for batch in batches:
        _append(pieces, batch, batch.base_offset - base_offset, batch.base_timestamp - base_time)
    last = batches[-1]
    return Batch(
        base_offset,
        last.next_offset - base_offset - 1,
        sum([batch.record_count for batch in batches]),
        first.attributes & CODEC_BITS,
        base_time,
        max([batch.max_timestamp for batch in batches]),
        first.producer_id,
        first.producer_epoch,
        first.base_sequence,
        NO_CRC,
        b"".join(pieces),
    )


def _check_large(batch: Batch) -> None:
    """Verify the checksum of a large batch: that of smaller ones was verified when they were read.

    Raises:
        ValueError: it does not fit.
    """
    if len(batch.body) >= LARGE and not batch.is_intact:
        message = f"the checksum of the batch at offset {batch.base_offset} does not fit"
        raise ValueError(message)


def _append(pieces: list[bytes], batch: Batch, offset: int, time: int) -> None:
    """Append the records of `batch`, with `offset` and `time` added to their deltas.

    The loop runs once a record: short varints, which nearly all are, are read and written without a call.
    """
    body, at, total = bytes(batch.body), 0, len(batch.body)
    for expected in range(batch.record_count):
        size, start = body[at], at + 2
        if size >= _MORE and body[at + 1] < _MORE and not size & 1:
            end = start + ((size & _BITS | body[at + 1] << 7) >> 1)
        else:
            size, start = read(body, at)
            end = start + size
        moved = body[start + 1]
        if moved < _MORE and not moved & 1:
            moved, at = time + (moved >> 1), start + 2
        else:
            moved, at = read(body, start + 1)
            moved += time
        delta = body[at]
        if delta < _MORE:
            at += 1
            delta = delta >> 1 if not delta & 1 else -1
        else:
            delta, at = read(body, at)
        if delta != expected or not at <= end <= total:
            message = f"the records of the batch at offset {batch.base_offset} do not match its header"
            raise ValueError(message)
        delta += offset
        stamp = SIGNED[moved] if 0 <= moved < _TABLE else signed(moved)
        place = SIGNED[delta] if delta < _TABLE else signed(delta)
        size = 1 + len(stamp) + len(place) + end - at
        pieces += (
            SIGNED[size] if size < _TABLE else signed(size),
            body[start : start + 1],
            stamp,
            place,
            body[at:end],
        )
        at = end
    if at != total:
        message = f"the batch at offset {batch.base_offset} has bytes behind its last record"
        raise ValueError(message)
