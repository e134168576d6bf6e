"""Record batches as kafka-python builds and reads them: a second opinion on the bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from reconciler.records.batch import HEADER_SIZE, Batch
from reconciler.records.checksum import crc32c
from reconciler.records.codecs import pack
from reconciler.records.split import split
from reconciler.records.varint import read

Headers = tuple[tuple[str, bytes | None], ...]

# Bits of a batch's attributes.
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
# Kafka's numbers of the codecs.
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
_ROOM = 1 << 24


@dataclass(frozen=True)
class Content:
    """What a record carries, whatever log it stands in."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True)
class Decoded:
    """One batch as the library reads it."""

    base_offset: int
    producer: tuple[int, int, int]
    codec: int
    attributes: int
    first_timestamp: int
    max_timestamp: int
    offset_deltas: tuple[int, ...]
    contents: tuple[Content, ...]
    crc_is_valid: bool


def some(count: int, timestamp: int = 1_000) -> tuple[Content, ...]:
    return tuple(Content(timestamp + n, b"key-%d" % n, b"value-%d" % n) for n in range(count))


def build(
    contents: Sequence[Content],
    base_offset: int = 0,
    codec: int = NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    """Return one batch of message format v2 with `contents` at consecutive offsets from `base_offset` on."""
    # The library's builder writes base offset 0, as a producer does; a log's broker puts the real one there.
    builder = MemoryRecordsBuilder(2, codec, _ROOM, 0, transactional, *producer)
    for record in contents:
        assert builder.append(record.timestamp, record.key, record.value, list(record.headers)) is not None
    builder.close()
    data = bytearray(builder.buffer())
    data[:8] = base_offset.to_bytes(8, "big")
    return bytes(data)


def build_old(magic: int, base_offset: int, contents: Sequence[Content] = (), codec: int = NONE) -> bytes:
    """Return messages of format v0 or v1 as they stand in a log, without headers, and v0's without times."""
    contents = contents or [Content(1_000, b"key", b"value" * 20)]
    # Inside a compressed message v1 counts from 0, and the message has the last one's offset.
    builder = MemoryRecordsBuilder(magic, codec, _ROOM, 0 if magic and codec else base_offset)
    for record in contents:
        assert builder.append(record.timestamp if magic else None, record.key, record.value) is not None
    builder.close()
    data = bytearray(builder.buffer())
    if codec:
        data[:8] = (base_offset + len(contents) - 1).to_bytes(8, "big")
    return bytes(data)


def marked(data: bytes, attribute: int) -> bytes:
    """Return a batch with one more bit in its attributes, and a checksum that knows."""
    changed = bytearray(data)
    changed[22] |= attribute
    return resealed(changed)


def led(data: bytes, epoch: int) -> bytes:
    """Return a batch as a leader of that epoch appended it, which its checksum does not cover."""
    return data[:12] + epoch.to_bytes(4, "big", signed=True) + data[16:]


def thinned(data: bytes, removed: int) -> bytes:
    """Return a batch as compaction leaves it: its offsets stay, and it says that it holds fewer records."""
    changed = bytearray(data)
    count = int.from_bytes(changed[57:61], "big") - removed
    changed[57:61] = count.to_bytes(4, "big")
    return resealed(changed)


def compacted(contents: Sequence[Content], gone: Collection[int], base_offset: int = 0, codec: int = NONE) -> bytes:
    """Return a batch as compaction leaves it: without the records of some numbers, the offsets of the others kept."""
    whole = build(contents, base_offset)
    body, at, left = whole[HEADER_SIZE:], 0, []
    for number in range(len(contents)):
        size, start = read(body, at)
        if number not in gone:
            left.append(body[at : start + size])
        at = start + size
    packed = pack(codec, b"".join(left))
    head = bytearray(whole[:HEADER_SIZE])
    head[22] |= codec
    head[57:61] = len(left).to_bytes(4, "big")
    return resealed(head + packed)


def damaged(data: bytes) -> bytes:
    """Return a batch with one bit of its records turned."""
    changed = bytearray(data)
    changed[-1] ^= 1
    return bytes(changed)


def resealed(data: bytes | bytearray) -> bytes:
    """Return a batch whose length and checksum fit its bytes, whatever those are."""
    data = bytearray(data)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


def in_a_row(groups: Sequence[Sequence[Content]], base_offset: int = 0, codec: int = NONE) -> list[Batch]:
    """Return one batch for each group, one behind the other."""
    found: list[Batch] = []
    for group in groups:
        found.append(batch(*group, base_offset=base_offset, codec=codec))
        base_offset += len(group)
    return found


def batch(*contents: Content, base_offset: int = 0, codec: int = NONE) -> Batch:
    (one,) = split(build(contents or some(1), base_offset, codec))
    return one


def decode(data: bytes) -> list[Decoded]:
    """Return what the library finds in `data`."""
    return [_decoded(found) for found in MemoryRecords(data)]


def _decoded(found: MemoryRecords) -> Decoded:
    # Checked first: reading the records unpacks the library's buffer in place.
    is_valid = found.validate_crc()
    header = (found.producer_id, found.producer_epoch, found.base_sequence)
    records = list(found)
    return Decoded(
        found.base_offset,
        header,
        found.compression_type,
        found.attributes,
        found.first_timestamp,
        found.max_timestamp,
        tuple(record.offset - found.base_offset for record in records),
        tuple(
            Content(
                record.timestamp,
                None if record.key is None else bytes(record.key),
                None if record.value is None else bytes(record.value),
                tuple((name, None if value is None else bytes(value)) for name, value in record.headers),
            )
            for record in records
        ),
        is_valid,
    )
