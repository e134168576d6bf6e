"""Signed varints as records have them: zigzag, seven bits a byte, the lowest first (Kafka's `ByteUtils`).

Pure.
"""

from __future__ import annotations

from reconciler.wire.protocol.compact import read_uvarint, uvarint

_HALF = 2**63


def wrapped(value: int) -> int:
    """Return a number wrapped to 64 bits, as Java's arithmetic does."""
    return value if -_HALF <= value < _HALF else (value + _HALF) % (2 * _HALF) - _HALF


def signed(value: int) -> bytes:
    """Return the zigzag varint of a number wrapped to 64 bits."""
    value = wrapped(value)
    return uvarint(value << 1 if value >= 0 else -value * 2 - 1)


def read(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return a zigzag varint and the place behind it.

    Raises:
        IndexError: the data ends within.
        ValueError: it is too long.
    """
    value, at = read_uvarint(data, at)
    return (value >> 1) ^ -(value & 1), at


# Precomputed varints: nearly all values are this small.
SIGNED = tuple(signed(value) for value in range(4096))
