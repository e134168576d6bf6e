"""Variable-length integers as records have them: zigzag, seven bits a byte, the lowest first (Kafka's `ByteUtils`).

Pure.
"""

from __future__ import annotations

_MORE = 0x80
_BITS = 0x7F
_HALF = 2**63
# More bytes than that are not one.
_LONGEST = 10


def signed(value: int) -> bytes:
    """Return a zigzag varint of a 64-bit number, which wraps as Java's does."""
    if not -_HALF <= value < _HALF:
        value = (value + _HALF) % (2 * _HALF) - _HALF
    value = value << 1 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while value >= _MORE:
        out.append((value & _BITS) | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def read(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint and the place behind it.

    Raises:
        IndexError: the data ends within.
        ValueError: it is too long.
    """
    value = data[at]
    at += 1
    if value >= _MORE:
        value &= _BITS
        for shift in range(7, 7 * _LONGEST, 7):
            byte = data[at]
            at += 1
            value |= (byte & _BITS) << shift
            if byte < _MORE:
                break
        else:
            message = "a varint of more than ten bytes"
            raise ValueError(message)
    return (value >> 1) ^ -(value & 1), at
