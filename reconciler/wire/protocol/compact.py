"""Kafka's compact encodings (KIP-482) as our own requests and answers use them: varints, strings, tagged fields.

`fetching`, `producing` and `connection` use it, and `records.varint` for what records share with it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# The bit of a varint's byte that is set when another follows.
_MORE = 0x80
# Of the bytes behind the first one: more than ten in all are no varint.
_SHIFTS = range(7, 70, 7)
_TOPIC_ID = 16
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


def read_uvarint(data: memoryview | bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint and the place behind it.

    Raises:
        IndexError: the data ends within.
        ValueError: it is too long.
    """
    value = data[at]
    at += 1
    if value < _MORE:
        return value, at
    value &= 0x7F
    for shift in _SHIFTS:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value, at
    message = "a varint of more than ten bytes"
    raise ValueError(message)


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


def read_topics(
    data: memoryview,
    at: int,
    name_of: Callable[[bytes], str] | None,
    read_partition: Callable[[memoryview, int, str, list[T]], int],
) -> tuple[list[T], int]:
    """Return the partitions of each topic in a response, and the place behind them.

    Args:
        data: the answer.
        at: where its topics begin.
        name_of: the name of a topic by its id; None where the answer names topics itself.
        read_partition: reads one partition of the given topic, appends it, returns the place behind it.
    """
    answers: list[T] = []
    topics, at = read_uvarint(data, at)
    for _ in range(topics - 1):
        if name_of is not None:
            topic = name_of(bytes(data[at : at + _TOPIC_ID]))
            at += _TOPIC_ID
        else:
            name, at = read_string(data, at)
            topic = name or ""
        partitions, at = read_uvarint(data, at)
        for _ in range(partitions - 1):
            at = read_partition(data, at, topic, answers)
        at = skip_tags(data, at)
    return answers, at


def skip_tags(data: memoryview, at: int) -> int:
    """Return the place behind tagged fields, which are skipped."""
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
