"""Kafka's compact encodings (KIP-482) as our own requests and answers use them: varints, strings, tagged fields.

`fetching`, `producing` and `connection` use it. Pure.
"""

from __future__ import annotations

# The bit of a varint's byte that says that another follows.
_MORE = 0x80
_SHORT = tuple(bytes((value,)) for value in range(_MORE))
NO_TAGS = b"\x00"


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    if value < _MORE:
        return _SHORT[value]
    out = bytearray()
    while value >= _MORE:
        out.append((value & 0x7F) | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """Return an unsigned varint and the place behind it.

    Raises:
        IndexError: the data ends within.
    """
    value = data[at]
    at += 1
    if value < _MORE:
        return value, at
    value &= 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value, at
        shift += 7


def string(text: str) -> bytes:
    """Return a compact string."""
    data = text.encode()
    return uvarint(len(data) + 1) + data


def read_string(data: memoryview, at: int) -> tuple[str | None, int]:
    """Return a compact nullable string and the place behind it."""
    size, at = read_uvarint(data, at)
    if size == 0:
        return None, at
    end = at + size - 1
    return str(data[at:end], "utf-8"), end


def skip_tags(data: memoryview, at: int) -> int:
    """Return the place behind tagged fields, which nobody here reads."""
    if not data[at]:
        return at + 1
    count, at = read_uvarint(data, at)
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
    return at


def frame_head(api_key: int, version: int, correlation_id: int, client_id: str) -> bytes:
    """Return the header (version 2) of a request; the frame's size goes before it."""
    name = client_id.encode()
    return b"".join(
        (
            api_key.to_bytes(2, "big"),
            version.to_bytes(2, "big"),
            correlation_id.to_bytes(4, "big"),
            len(name).to_bytes(2, "big"),
            name,
            NO_TAGS,
        )
    )
