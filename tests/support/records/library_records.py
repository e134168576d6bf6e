"""Records out of a batch by kafka-python: a second opinion on what was made of them."""

from __future__ import annotations

from dataclasses import dataclass

from kafka.record.memory_records import MemoryRecords


@dataclass(frozen=True, slots=True)
class Record:
    """One record with all that a copy must keep.

    Attributes:
        offset: in its log.
        timestamp: milliseconds; None in message format v0, which has none.
        key: bytes or None.
        value: bytes or None.
        headers: in order, names may repeat.
    """

    offset: int
    timestamp: int | None
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


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)
