"""Rewrites batches that cannot be copied as they are; key, value and headers of each record are copied as one slice.

`intake` uses it for batches with holes, with LogAppendTime, larger than the target allows, or that begin before the
offset where reading begins. Offsets stay: missing offsets between two records become a gap. Pure.

The layout of a record is Kafka's `DefaultRecord`: length, attributes, timestamp delta, offset delta, then that slice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, cast

from reconciler.records.batch import CODEC_BITS, MAGIC, NO_CRC, Batch, Body, UnreadableBatch
from reconciler.records.codecs import NONE, pack, unpack
from reconciler.records.read_committed import Gap
from reconciler.records.renumber import renumbered
from reconciler.records.varint import SIGNED, read, signed, wrapped

_TABLE = len(SIGNED)
# Bytes of a batch where the target has no limit.
UNLIMITED = 2**31 - 1


class RawRecord(NamedTuple):
    """One record, of which only the front is decoded.

    Attributes:
        offset: in its log.
        timestamp: milliseconds.
        rest: key, value and headers, encoded; a view with `in_place`.
    """

    offset: int
    timestamp: int
    rest: bytes


def raw_records(batch: Batch, *, in_place: bool = False) -> list[RawRecord]:
    """Return the records of a batch, decompressed; under LogAppendTime all have the append time.

    Args:
        batch: the batch.
        in_place: whether records may be views of a large body, which the caller drops soon.

    Raises:
        ValueError: the records do not match its header.
        DecompressedTooLarge: it exceeds the limit decompressed.
    """
    plain = unpack(batch.attributes & CODEC_BITS, batch.body)
    # A view's slices are views, too, and a large body is not copied once more.
    body = cast("bytes", plain if in_place else bytes(plain))
    appended = batch.max_timestamp if batch.is_log_append_time else None
    base_offset, base_time = batch.base_offset, batch.base_timestamp
    found: list[RawRecord] = []
    at, before = 0, base_offset - 1
    try:
        for _ in range(batch.record_count):
            size, start = read(body, at)
            end = start + size
            delta, place = read(body, start + 1)
            number, place = read(body, place)
            offset = base_offset + number
            if not place <= end <= len(body) or not before < offset < batch.next_offset:
                raise _not_as_said(batch)
            found.append(
                RawRecord(offset, wrapped(base_time + delta) if appended is None else appended, body[place:end])
            )
            at, before = end, offset
    except (IndexError, ValueError):
        raise _not_as_said(batch) from None
    if at != len(body):
        raise _not_as_said(batch)
    return found


def first_at(batch: Batch, offset: int) -> int | None:
    """Return the offset of a batch's first record at or behind `offset`; None when it has none there.

    Raises:
        UnreadableBatch: it is damaged, or its records do not match its header.
    """
    if batch.record_count == batch.last_offset_delta + 1:
        at = max(offset, batch.base_offset)
        return at if at < batch.next_offset else None
    if not batch.is_intact:
        raise UnreadableBatch(batch.base_offset, MAGIC, "its checksum does not fit")
    try:
        records = raw_records(batch, in_place=True)
    except ValueError as error:
        raise UnreadableBatch(batch.base_offset, MAGIC, str(error)) from error
    return next((record.offset for record in records if record.offset >= offset), None)


def _not_as_said(batch: Batch) -> ValueError:
    return ValueError(f"the records of the batch at offset {batch.base_offset} do not match its header")


def rewritten(
    batch: Batch, first: int, limit: int, codec: int | None = None, without: Collection[int] = (), cut: int = 0
) -> Iterator[Batch | Gap]:
    """Yield the records of a batch from offset `first` on, as batches without holes, and gaps where there were holes.

    Each item begins where the one before ended, the first at `first`; the last ends where the batch did.

    Args:
        batch: its checksum fits.
        first: an offset in it, or its base offset.
        limit: most bytes of a new batch; a single record may have more.
        codec: to compress with, where that makes a batch smaller; by default as it was.
        without: offsets of records to leave out.
        cut: an offset at which a new batch begins.

    Raises:
        ValueError: the records do not match its header; also DecompressedTooLarge.
    """
    expected = first
    codec = batch.attributes & CODEC_BITS if codec is None else codec
    records = [one for one in raw_records(batch, in_place=True) if one.offset >= first and one.offset not in without]
    behind = sum(record.offset < cut for record in records) if cut else 0
    for one in chain(batches_of(records[:behind], codec, limit), batches_of(records[behind:], codec, limit)):
        if one.base_offset > expected:
            yield Gap(expected, one.base_offset)
        yield one
        expected = one.next_offset
    if expected < batch.next_offset:
        yield Gap(expected, batch.next_offset)


def dense(
    batch: Batch, first: int, limit: int, codec: int | None = None, without: Collection[int] = (), cut: int = 0
) -> Iterator[Batch]:
    """Yield the records of a batch from offset `first` on, in batches for a copy with translated offsets.

    Their deltas count records. Each spans the offsets from its first record up to where the next one begins, the last
    one up to where the batch ended. Yields nothing where no record is left.

    Args:
        batch: its checksum fits.
        first: an offset in it, or its base offset.
        limit: most bytes of a new batch; a single record may have more.
        codec: to compress with, where that makes a batch smaller; by default as it was.
        without: offsets of records to leave out.
        cut: an offset at which a new batch begins.

    Raises:
        ValueError: the records do not match its header; also DecompressedTooLarge.
    """
    codec = batch.attributes & CODEC_BITS if codec is None else codec
    if first <= batch.base_offset and not batch.is_log_append_time and not without:
        one = _renumbered(batch, codec)
        if one.size <= limit or one.record_count == 1:
            yield one
            return
    records = [one for one in raw_records(batch, in_place=True) if one.offset >= first and one.offset not in without]
    starts = [record.offset for record in records]
    # Offsets from 0 are indexes into `starts`.
    numbered = [record._replace(offset=number) for number, record in enumerate(records)]
    until = sum(offset < cut for offset in starts) if cut else 0
    for one in chain(batches_of(numbered[:until], codec, limit), batches_of(numbered[until:], codec, limit)):
        begin, behind = one.base_offset, one.next_offset
        end = starts[behind] if behind < len(starts) else batch.next_offset
        parts = _parts([*starts[begin:behind], end])
        spanned = one._replace(base_offset=starts[begin], last_offset_delta=end - starts[begin] - 1, parts=parts)
        yield spanned._replace(crc=spanned.checksum)


def _renumbered(batch: Batch, codec: int) -> Batch:
    """Return a batch whose deltas count its records, from its first record on."""
    span = batch.last_offset_delta + 1
    found = unpack(batch.attributes & CODEC_BITS, batch.body)
    try:
        plain, parts = renumbered(found, batch.record_count, span)
    except (IndexError, ValueError):
        raise _not_as_said(batch) from None
    missing = span - sum(parts)
    body, codec = _smallest(plain, codec)
    one = batch._replace(
        base_offset=batch.base_offset + missing,
        last_offset_delta=batch.last_offset_delta - missing,
        attributes=batch.attributes & ~CODEC_BITS | codec,
        body=body,
        parts=parts,
    )
    return one.sealed()


def _parts(offsets: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of records and of missing offsets alternately (`Batch.parts`).

    Args:
        offsets: of all records, and the end offset.
    """
    found: list[int] = []
    count = 1
    for one, following in pairwise(offsets):
        if following == one + 1 and following != offsets[-1]:
            count += 1
            continue
        found += (count, following - one - 1)
        count = 1
    return tuple(found)


def batches_of(records: Sequence[RawRecord], codec: int = NONE, limit: int = UNLIMITED) -> Iterator[Batch]:
    """Yield records as batches without holes: a new one begins where an offset is missing.

    Args:
        records: sorted by offset.
        codec: to compress with, where that makes a batch smaller.
        limit: most bytes of a batch; a single record may have more.
    """
    for run in _runs(records):
        yield from _packed(run, codec, limit)


def recoded(batch: Batch, codec: int) -> Batch:
    """Return a batch in another codec, uncompressed where compression does not make it smaller.

    Raises:
        ValueError: it cannot be decompressed.
        DecompressedTooLarge: it exceeds the limit decompressed.
    """
    plain = unpack(batch.attributes & CODEC_BITS, batch.body)
    body, codec = _smallest(plain, codec)
    one = batch._replace(attributes=batch.attributes & ~CODEC_BITS | codec, body=body)
    return one.sealed()


def _runs(records: Sequence[RawRecord]) -> Iterator[Sequence[RawRecord]]:
    """Yield runs of records without holes."""
    begin = 0
    for at in range(1, len(records) + 1):
        if at == len(records) or records[at].offset != records[at - 1].offset + 1:
            yield records[begin:at]
            begin = at


def _packed(run: Sequence[RawRecord], codec: int, limit: int) -> Iterator[Batch]:
    """Yield one batch, or several where one would have more than `limit` bytes."""
    one = packed(run, codec)
    if one.size <= limit or len(run) == 1:
        yield one
        return
    # Sizes and compression ratios differ by record, so the run is halved until each half fits.
    middle = _middle(run)
    yield from _packed(run[:middle], codec, limit)
    yield from _packed(run[middle:], codec, limit)


def _middle(run: Sequence[RawRecord]) -> int:
    """Return where to divide, so that both sides have about as many bytes and none is empty."""
    half, size = sum(len(record.rest) for record in run) // 2, 0
    for at, record in enumerate(run):
        size += len(record.rest)
        if size >= half:
            return min(at + 1, len(run) - 1)
    return len(run) // 2


def packed(run: Sequence[RawRecord], codec: int) -> Batch:
    """Return one batch with records at consecutive offsets, compressed where that makes it smaller."""
    base_offset, base_time = run[0].offset, run[0].timestamp
    pieces: list[bytes] = []
    for number, record in enumerate(run):
        moved = record.timestamp - base_time
        stamp = SIGNED[moved] if 0 <= moved < _TABLE else signed(moved)
        place = SIGNED[number] if number < _TABLE else signed(number)
        size = 1 + len(stamp) + len(place) + len(record.rest)
        pieces += (SIGNED[size] if size < _TABLE else signed(size), b"\x00", stamp, place, record.rest)
    body, codec = _smallest(b"".join(pieces), codec)
    newest = max(record.timestamp for record in run)
    one = Batch(base_offset, len(run) - 1, len(run), codec, base_time, newest, -1, -1, -1, NO_CRC, body)
    return one.sealed()


def _smallest(plain: Body, codec: int) -> tuple[Body, int]:
    """Return a body compressed, or unchanged where that is not larger, and its codec."""
    packed = pack(codec, plain)
    return (packed, codec) if len(packed) < len(plain) else (plain, NONE)
