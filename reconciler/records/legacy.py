"""Reads messages of formats v0 and v1, which logs from before Kafka 0.11 hold, as batches of format v2.

`split` calls it. Offset, timestamp and codec stay; v0 has no timestamp. Pure.

The layout is Kafka's `LegacyRecord`: offset, size, CRC-32 over what follows, magic, attributes, timestamp (v1), key,
value. A compressed message holds other messages in its value. In v1 their offsets count from 0, the outer message has
the offset of the last one, and with LogAppendTime its timestamp is theirs, too.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import xxhash

from reconciler.records.batch import CODEC_BITS, LOG_OVERHEAD, Batch, UnreadableBatch
from reconciler.records.codecs import LZ4, NONE, unpack
from reconciler.records.rewrite import RawRecord, batches_of
from reconciler.records.varint import signed

_FRONT = struct.Struct(">qiIb")
# Offset, size, checksum, magic, attributes, and a timestamp.
_MESSAGES = struct.Struct(">qiIbb"), struct.Struct(">qiIbbq")
_SIZE = struct.Struct(">i")
_LOG_APPEND_TIME = 0x08
_CHECKED_AT, _ATTRIBUTES_AT = 16, 17
# Of an lz4 frame: place of the flags, the flag for a content size, and the bytes that this takes.
_LZ4_FLAGS_AT, _LZ4_HAS_SIZE, _LZ4_SIZE = 4, 0x08, 8
_LZ4_FRONT = 6
# Kafka's value for a record without a timestamp.
_NO_TIME = -1
_NULL = signed(-1)
_NO_HEADERS = signed(0)
# Bytes of a message without timestamp, up to and with the length of its key.
_LEAST = 22
_NOT_SO = "its messages do not have the layout of their format"


def read_legacy(view: memoryview, at: int) -> tuple[list[Batch], int] | None:
    """Return the message that begins at a place of a fetch response's records, as batches, and the place behind it.

    A compressed message with holes becomes several batches, one without records none. Returns None for an incomplete
    message.

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
    """One message: offset and timestamp from its own header, attributes, key and value."""

    offset: int
    timestamp: int
    attributes: int
    key: bytes | None
    value: bytes | None


def _records(data: bytes) -> list[RawRecord]:
    """Return the records of a whole message.

    Raises:
        ValueError: its layout is wrong, or it is too large decompressed (DecompressedTooLarge).
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
    # Some producers wrote absolute offsets in v1, too.
    base = max(base, 0)
    return [_kept(one, base + one.offset, one.timestamp if appended is None else appended) for one in inside]


def _messages(data: memoryview, magic: int) -> Iterator[_Message]:
    """Yield consecutive messages of one format.

    Raises:
        ValueError, struct.error: their layout is wrong.
    """
    layout, at = _MESSAGES[magic], 0
    while at < len(data):
        offset, size, _, own, attributes, *times = layout.unpack_from(data, at)
        end = at + LOG_OVERHEAD + size
        key, behind = _part(data, at + layout.size, end)
        value, behind = _part(data, behind, end)
        # `behind` exceeds `at`, so the loop advances with every message.
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
    """Return an lz4 frame with a correct header checksum: in v0 Kafka computes it over other bytes (KAFKA-3160)."""
    flags = frame[_LZ4_FLAGS_AT] if len(frame) > _LZ4_FLAGS_AT else 0
    at = _LZ4_FRONT + (_LZ4_SIZE if flags & _LZ4_HAS_SIZE else 0)
    return frame[:at] + xxhash.xxh32(frame[_LZ4_FLAGS_AT:at]).digest()[-2:-1] + frame[at + 1 :]


def _kept(message: _Message, offset: int, timestamp: int) -> RawRecord:
    return RawRecord(offset, timestamp, b"".join((*_sized(message.key), *_sized(message.value), _NO_HEADERS)))


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if data is None else (signed(len(data)), data)
