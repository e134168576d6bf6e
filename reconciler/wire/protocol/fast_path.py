"""Requests and responses of the fast path (`replicator/transfer/fast_path`), encoded for the plain case alone.

Whatever is not plain is None here, and left to these two. Pure.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.wire.protocol import producing
from reconciler.wire.protocol.compact import NO_TAGS, read_uvarint, string, uvarint

_ANSWER = struct.Struct(">ihi")
# Partition, error, high watermark, last stable offset, log start, how many transactions were aborted, nearest replica.
_FETCHED = struct.Struct(">ihqqqBi")
# Partition, error, base offset, append time, log start; no errors of records, no message, no tags.
_PRODUCED = struct.Struct(">ihqqqBBB")
_NO_ERRORS = 1
_ASK = struct.Struct(">iiqiqix")
_TOPIC_ID = 16
_MORE = 0x80
_NONE_FORGOTTEN = b"\x01"
_NOBODY = -1
_MALFORMED = (ValueError, LookupError, struct.error)


class UnreadableAnswer(ValueError):
    """An answer is not laid out as one."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Raise UnreadableAnswer for a response with another layout, or about partitions that were not requested.

    Not for what the fast path does in each cycle: there `contextlib` itself is a part of the cost.
    """
    try:
        yield
    except _MALFORMED as error:
        raise UnreadableAnswer(str(error)) from error


class Piece(NamedTuple):
    """One partition of a fetch response: where its records stand in the response, and the last stable offset."""

    topic: bytes
    partition: int
    stable: int
    start: int
    end: int


def pieces(data: bytes, session: int) -> list[Piece] | None:
    """Return the partitions of a fetch response, topics by their ids; None for one with errors or other fields.

    Raises:
        UnreadableAnswer: the response has another layout.
    """
    try:
        return _pieces(data, session)
    except _MALFORMED as error:
        raise UnreadableAnswer(str(error)) from error


def _pieces(data: bytes, session: int) -> list[Piece] | None:
    throttle, error, of_session = _ANSWER.unpack_from(data)
    if throttle or error or of_session != session:
        return None
    found: list[Piece] = []
    topics, at = read_uvarint(data, _ANSWER.size)
    for _ in range(topics - 1):
        topic = data[at : at + _TOPIC_ID]
        partitions, at = read_uvarint(data, at + _TOPIC_ID)
        for _ in range(partitions - 1):
            index, error, _, stable, _, aborted, nearest = _FETCHED.unpack_from(data, at)
            if error or aborted > 1 or nearest != _NOBODY:
                return None
            size, start = read_uvarint(data, at + _FETCHED.size)
            end = start + size - 1 if size else start
            if data[end]:
                return None
            found.append(Piece(topic, index, stable, start, end))
            at = end + 1
        if data[at]:
            return None
        at += 1
    return found


def fetch_body(opening: bytes, asks: Mapping[bytes, Sequence[bytes]], tail: bytes) -> bytes:
    """Return a fetch request behind its header.

    Args:
        opening: all before the topics.
        asks: the changed partitions, as `ask` makes them, by topic.
        tail: all behind them, as `fetch_tail` makes it.
    """
    found = [opening, uvarint(len(asks) + 1)]
    for topic, of_topic in asks.items():
        found += (topic, uvarint(len(of_topic) + 1), *of_topic, NO_TAGS)
    found.append(tail)
    return b"".join(found)


def fetch_tail(rack: str) -> bytes:
    """Return what stands behind the topics of a fetch request: nothing is forgotten."""
    return _NONE_FORGOTTEN + string(rack) + NO_TAGS


def ask(partition: int, epoch: int, offset: int, most: int) -> bytes:
    """Return what is asked of one partition."""
    return _ASK.pack(partition, epoch, offset, -1, -1, most)


def produce_body(timeout_ms: int, batches: Iterable[tuple[bytes, bytes, bytes, bytes | memoryview]]) -> bytes:
    """Return a produce request behind its header.

    Args:
        timeout_ms: how long the broker may wait for its replicas.
        batches: topic, number of the partition, and the two pieces of the batch.
    """
    topics: dict[bytes, list[bytes | memoryview]] = {}
    for topic, index, head, body in batches:
        found = topics.get(topic)
        if found is None:
            found = topics[topic] = []
        found += (index, uvarint(len(head) + len(body) + 1), head, body, NO_TAGS)
    whole: list[bytes | memoryview] = [
        producing.opening(producing.NO_TRANSACTION, timeout_ms),
        uvarint(len(topics) + 1),
    ]
    for topic, found in topics.items():
        whole += (topic, uvarint(len(found) // 5 + 1), *found, NO_TAGS)
    whole.append(NO_TAGS)
    return b"".join(whole)


def produced(data: bytes, by_id: bool) -> dict[tuple[bytes, int], int] | None:
    """Return the offset of each batch, by topic and partition; None for a response with errors or other fields.

    Raises:
        UnreadableAnswer: the response has another layout.
    """
    try:
        return _produced(data, by_id)
    except _MALFORMED as error:
        raise UnreadableAnswer(str(error)) from error


def _produced(data: bytes, by_id: bool) -> dict[tuple[bytes, int], int] | None:
    found: dict[tuple[bytes, int], int] = {}
    topics, at = read_uvarint(data, 0)
    for _ in range(topics - 1):
        size, behind = (_TOPIC_ID, at) if by_id else read_uvarint(data, at)
        end = behind + size if by_id else behind + size - 1
        topic = data[at:end]
        partitions, at = read_uvarint(data, end)
        for _ in range(partitions - 1):
            index, error, base, _, _, errors, message, tags = _PRODUCED.unpack_from(data, at)
            if error or errors != _NO_ERRORS or message or tags:
                return None
            found[topic, index] = base
            at += _PRODUCED.size
        if data[at]:
            return None
        at += 1
    return found
