"""Reads messages of the old formats v0 and v1, which logs from before Kafka 0.11 hold, as batches of format v2.

`split` comes here when it meets one. kafka-python's decoder reads them; each comes out with the offset, the time and
the codec that it had, v0's without a time. Pure.

The layout is Kafka's `LegacyRecord`: offset, size, CRC-32 over what follows, magic, attributes, from v1 on a timestamp,
key, value; a compressed message holds others in its value.
"""

from __future__ import annotations

import struct
import zlib

from reconciler.replicator.batch import CODEC_BITS, LOG_OVERHEAD, Batch, UnreadableBatch
from reconciler.replicator.rewrite import Kept, batches_of
from reconciler.replicator.varint import signed
from reconciler.replicator.wire import Record, decode

_FRONT = struct.Struct(">qiIb")
_CHECKED_AT, _ATTRIBUTES_AT = 16, 17
# What Kafka says of a record without a time.
_NO_TIME = -1
_NULL = signed(-1)
_NO_HEADERS = signed(0)
# Up to the length of a key without a timestamp.
_LEAST = 22


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
        records = decode(data)
    except ValueError as error:
        raise UnreadableBatch(offset, magic, str(error)) from error
    return list(batches_of([_kept(record) for record in records], data[_ATTRIBUTES_AT] & CODEC_BITS)), end


def _kept(record: Record) -> Kept:
    time = _NO_TIME if record.timestamp is None else record.timestamp
    return Kept(record.offset, time, b"".join((*_sized(record.key), *_sized(record.value), _NO_HEADERS)))


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if data is None else (signed(len(data)), data)
