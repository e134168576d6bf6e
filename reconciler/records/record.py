"""Decodes key, value and headers of a record, as bytes. Pure.

The layout is Kafka's `DefaultRecord`: each field is its size as a signed varint, -1 for null, and then its bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.records.varint import read


class Parts(NamedTuple):
    """Key, value and headers of a record.

    Attributes:
        key: bytes or None.
        value: bytes or None.
        headers: names and values in order; names may repeat, and are not always UTF-8.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes | None, bytes | None], ...]


def parts(rest: bytes) -> Parts:
    """Return key, value and headers of a record.

    Args:
        rest: their bytes, encoded.

    Raises:
        ValueError: the layout is wrong.
    """
    try:
        key, at = part(rest, 0)
        value, at = part(rest, at)
        count, at = read(rest, at)
        headers: list[tuple[bytes | None, bytes | None]] = []
        for _ in range(count):
            name, at = part(rest, at)
            value_of, at = part(rest, at)
            headers.append((name, value_of))
    except IndexError:
        message = "a record ends within a field"
        raise ValueError(message) from None
    return Parts(key, value, tuple(headers))


def part(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the field at a place, and the place behind it.

    Raises:
        IndexError: the data ends within the field.
        ValueError: its size is not a valid varint.
    """
    size, at = read(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise IndexError
    return bytes(data[at : at + size]), at + size
