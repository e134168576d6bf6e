"""Takes the rest of a record apart: key, value and headers, as bytes. Pure.

The layout is Kafka's `DefaultRecord`: each is its size as a signed varint, -1 for none, and then its bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.records.varint import read


class Parts(NamedTuple):
    """What a record holds.

    Attributes:
        key: bytes or None.
        value: bytes or None.
        headers: names and values in order; names may repeat, and not every producer's are UTF-8.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes | None, bytes | None], ...]


def parts(rest: bytes) -> Parts:
    """Return what a record holds.

    Args:
        rest: key, value and headers, as they are.

    Raises:
        ValueError: they are not laid out as a record's.
    """
    try:
        key, at = part(rest, 0)
        value, at = part(rest, at)
        count, at = read(rest, at)
        headers: list[tuple[bytes | None, bytes | None]] = []
        for _ in range(count):
            name, at = part(rest, at)
            said, at = part(rest, at)
            headers.append((name, said))
    except IndexError:
        message = "a record ends within a field"
        raise ValueError(message) from None
    return Parts(key, value, tuple(headers))


def part(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the bytes that stand at a place, and the place behind them.

    Raises:
        IndexError: the data ends within.
        ValueError: their size is no number.
    """
    size, at = read(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise IndexError
    return bytes(data[at : at + size]), at + size
