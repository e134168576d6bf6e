"""Reads messages of the old formats v0 and v1, which logs from before Kafka 0.11 hold, as batches of format v2.

`split` comes here when it meets one. Each comes out with the offset, the time and the codec that it had, v0's without a
time. Pure.

The layout is Kafka's `LegacyRecord`: offset, size, CRC-32 over what follows, magic, attributes, from v1 on a timestamp,
key, value. A compressed message holds others in its value. Those of v1 count from 0, and it has the last one's offset;
where its time is that of the append, so is theirs.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import xxhash

from reconciler.records.batch import CODEC_BITS, LOG_OVERHEAD, Batch, UnreadableBatch
from reconciler.records.codecs import LZ4, NONE, unpack
from reconciler.records.rewrite import Kept, batches_of
from reconciler.records.varint import signed

_FRONT = struct.Struct(">qiIb")
# Offset, size, checksum, magic, attributes, and a timestamp.
_MESSAGES = struct.Struct(">qiIbb"), struct.Struct(">qiIbbq")
_SIZE = struct.Struct(">i")
_LOG_APPEND_TIME = 0x08
_CHECKED_AT, _ATTRIBUTES_AT = 16, 17
# Where an lz4 frame has its flags, which of them says that the content's size follows, and how many bytes that has.
_LZ4_FLAGS_AT, _LZ4_HAS_SIZE, _LZ4_SIZE = 4, 0x08, 8
_LZ4_FRONT = 6
# What Kafka says of a record without a time.
_NO_TIME = -1
_NULL = signed(-1)
_NO_HEADERS = signed(0)
# Up to the length of a key without a timestamp.
_LEAST = 22
_NOT_SO = "its messages are not laid out as they say"


def read_old(view: memoryview, at: int) -> tuple[list[Batch], int] | None:
    """Return the message that begins at a place of a fetch response's records, as batches, and the place behind.

    There are several batches where a compressed message was compacted, and none where all of it was; None says that it
    is incomplete.

    Raises:
        UnreadableBatch: its checksum does not fit, or it cannot be decoded.
    """
    offset, size, checksum, magic = _FRONT.unpack_from(view, at)
    end = at + LOG_OVERHEAD + size
    if end > len(view):
        return None
    data = bytes(view[at:end])
    if size < _LEAST - LOG_OVERHEAD or checksum != zlib.crc32(data[_CHECKED_AT:]):
        raise UnreadableBatch(offset, magic, "its checksum does not fit")
    try:
        records = _records(data)
    except (ValueError, struct.error) as error:
        raise UnreadableBatch(offset, magic, str(error)) from error
    return list(batches_of(records, data[_ATTRIBUTES_AT] & CODEC_BITS)), end


class _Message(NamedTuple):
    """One message: its offset and its time as it has them itself, its attributes, key and value."""

    offset: int
    timestamp: int
    attributes: int
    key: bytes | None
    value: bytes | None


def _records(data: bytes) -> list[Kept]:
    """Return the records of a whole message.

    Raises:
        ValueError: it is not laid out so, or has more bytes decompressed than it may have (TooMuch).
        struct.error: likewise.
    """
    magic = data[_CHECKED_AT]
    (message,) = _messages(memoryview(data), magic)
    codec = message.attributes & CODEC_BITS
    if codec == NONE:
        return [_kept(message, message.offset, message.timestamp)]
    if message.value is None or codec > LZ4:
        raise ValueError(_NOT_SO)
    packed = _repaired(message.value) if codec == LZ4 and not magic else message.value
    inside = list(_messages(memoryview(unpack(codec, packed)), magic))
    base = message.offset - inside[-1].offset if magic and inside else 0
    if any(one.attributes & CODEC_BITS for one in inside):
        raise ValueError(_NOT_SO)
    appended = message.timestamp if magic and message.attributes & _LOG_APPEND_TIME else None
    # Some producers wrote offsets as they are in v1, too.
    base = max(base, 0)
    return [_kept(one, base + one.offset, one.timestamp if appended is None else appended) for one in inside]


def _messages(data: memoryview, magic: int) -> Iterator[_Message]:
    """Yield messages of one format that follow each other.

    Raises:
        ValueError, struct.error: they are not laid out so.
    """
    layout, at = _MESSAGES[magic], 0
    while at < len(data):
        offset, size, _, own, attributes, *times = layout.unpack_from(data, at)
        end = at + LOG_OVERHEAD + size
        key, behind = _part(data, at + layout.size, end)
        value, behind = _part(data, behind, end)
        # So each ends behind its beginning.
        if own != magic or behind != end or end > len(data):
            raise ValueError(_NOT_SO)
        yield _Message(offset, times[0] if times else _NO_TIME, attributes, key, value)
        at = end


def _part(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    """Return a key or a value, and the place behind it."""
    (size,) = _SIZE.unpack_from(data, at)
    at += _SIZE.size
    if size == -1:
        return None, at
    if not 0 <= size <= end - at:
        raise ValueError(_NOT_SO)
    return bytes(data[at : at + size]), at + size


def _repaired(frame: bytes) -> bytes:
    """Return an lz4 frame with the checksum of its header that fits: in v0 Kafka's is of other bytes (KAFKA-3160)."""
    flags = frame[_LZ4_FLAGS_AT] if len(frame) > _LZ4_FLAGS_AT else 0
    at = _LZ4_FRONT + (_LZ4_SIZE if flags & _LZ4_HAS_SIZE else 0)
    return frame[:at] + xxhash.xxh32(frame[_LZ4_FLAGS_AT:at]).digest()[-2:-1] + frame[at + 1 :]


def _kept(message: _Message, offset: int, timestamp: int) -> Kept:
    return Kept(offset, timestamp, b"".join((*_sized(message.key), *_sized(message.value), _NO_HEADERS)))


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if data is None else (signed(len(data)), data)
