"""Records out of a batch, and into one, by kafka-python: for comparing logs and for the rare batch that must be cut.

Never on the way of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

_BASE_OFFSET = slice(0, 8)
# What one record's fields may take beside its key, value and headers; for a limit, not a size.
_OVERHEAD = 128


@dataclass(frozen=True, slots=True)
class Record:
    """One record with all that a copy must keep.

    Attributes:
        offset: in its log.
        timestamp: milliseconds.
        key: bytes or None.
        value: bytes or None.
        headers: in order, names may repeat.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def decode(batch: bytes) -> list[Record]:
    """Return the records of one whole batch, decompressed.

    Raises:
        ValueError: the bytes are not a batch that can be decoded.
    """
    try:
        return [
            Record(r.offset, r.timestamp, _bytes(r.key), _bytes(r.value), tuple((k, _bytes(v)) for k, v in r.headers))
            for found in MemoryRecords(batch)
            for r in found
        ]
    except Exception as error:
        # Codecs raise errors of their own libraries; to the caller they all mean the same.
        message = f"cannot decode: {error}"
        raise ValueError(message) from error


def encode(records: Sequence[Record], codec: int) -> bytes:
    """Return one batch of message format v2 with `records`, which must be at consecutive offsets.

    Raises:
        ValueError: the codec is not known.
    """
    room = sum(
        _OVERHEAD
        + len(r.key or b"")
        + len(r.value or b"")
        + sum(len(k) + len(v or b"") + _OVERHEAD for k, v in r.headers)
        for r in records
    )
    try:
        builder = MemoryRecordsBuilder(2, codec, room)
        for record in records:
            builder.append(record.timestamp, record.key, record.value, list(record.headers))
        builder.close()
    except Exception as error:
        message = f"cannot encode: {error}"
        raise ValueError(message) from error
    data = bytearray(builder.buffer())
    data[_BASE_OFFSET] = records[0].offset.to_bytes(8, "big")
    return bytes(data)


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)
