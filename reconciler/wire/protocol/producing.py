"""Produce requests and answers, encoded and decoded by hand: what the data's own way cannot afford a library for.

`requests` sends them. The layouts are Kafka's ProduceRequest and ProduceResponse, versions 9 to 13.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from reconciler.wire.protocol.compact import (
    NO_TAGS,
    frame_head,
    read_string,
    read_topics,
    read_uvarint,
    skip_tags,
    string,
    uvarint,
)
from reconciler.wire.protocol.frames import RawHeader
from reconciler.wire.protocol.values import ProduceAnswer, ProduceAsk, RecordError

API_KEY = 0
FIRST_RAW, LAST_RAW = 9, 13
# From this version on topics are named by id, so a topic made anew under the same name is an error.
FIRST_WITH_IDS = 13

_ACKS_ALL = -1
# Acks, time-out.
_OPENING = struct.Struct(">hi")
NO_TRANSACTION = b"\x00"
_INDEX = struct.Struct(">i")
# Partition, error, base offset, log append time, log start.
_PARTITION = struct.Struct(">ihqqq")
# Of an answer about one topic by its id, without anything of variable length: the count of topics (1, plus 1), where
# that of its partitions stands, bytes of all but these, and of each.
_ONE_TOPIC, _COUNT_AT, _PLAIN, _EACH = 2, 17, 24, 33
# Counts from this one on take more than a byte.
_TWO_BYTES = 128
# Smaller batches are put together with what stands around them: pieces cost, too.
_PIECE = 8 * 1024


@dataclass(frozen=True, slots=True)
class Produced:
    """A response: the result of each batch, and the throttle time."""

    throttle_time_ms: int
    answers: list[ProduceAnswer]


class RawProduce:
    """A produce request whose batches are sent from where they are.

    It has the shape that kafka-python's connections ask of a request.

    Args:
        version: 9 to 12 name topics, 13 uses their ids.
        timeout_ms: how long the broker may wait for its replicas.
        asks: at most one batch for each partition.
        transactional_id: of the producer whose transaction the batches are in, if they are in one.
    """

    def __init__(
        self, version: int, timeout_ms: int, asks: Sequence[ProduceAsk], transactional_id: str | None = None
    ) -> None:
        self.API_VERSION = version
        self.header: Any = None
        self._head = b""
        self._timeout_ms = timeout_ms
        self._transaction = NO_TRANSACTION if transactional_id is None else string(transactional_id)
        self._by_id = version >= FIRST_WITH_IDS
        # A topic made anew under its old name may be known by both ids at once: they must not be mixed.
        self._topics: dict[tuple[str, uuid.UUID | None], list[ProduceAsk]] = {}
        for ask in asks:
            self._topics.setdefault((ask.topic, ask.topic_id if self._by_id else None), []).append(ask)

    def expect_response(self) -> bool:
        """Return whether a response comes."""
        return True

    @property
    def names(self) -> dict[bytes, str] | None:
        """The topics by their ids, where the answer has ids."""
        if not self._by_id:
            return None
        return {topic_id.bytes: topic for topic, topic_id in self._topics if topic_id is not None}

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Take the header's fields from the connection."""
        self._head = frame_head(API_KEY, self.API_VERSION, correlation_id, client_id)
        # Nothing here may lead back to this request: a cycle would keep its batches until the next collection.
        self.header = RawHeader(correlation_id, partial(decode, self.names))

    def encode(self, framed: bool, header: bool) -> list[bytes | memoryview]:
        """Return the whole frame, in pieces."""
        assert framed, "a connection always takes the frame"
        assert header, "and for the header"
        pieces = self.body()
        size = len(self._head) + sum(map(len, pieces))
        pieces[0] = b"".join((_INDEX.pack(size), self._head, pieces[0]))
        return pieces

    def body(self) -> list[bytes | memoryview]:
        """Return what stands behind the header, in pieces; the first is a short one."""
        pieces: list[bytes | memoryview] = []
        small: list[bytes | memoryview] = [
            opening(self._transaction, self._timeout_ms),
            uvarint(len(self._topics) + 1),
        ]
        for (topic, topic_id), asks in self._topics.items():
            small += (self._name(topic, topic_id), uvarint(len(asks) + 1))
            for ask in asks:
                batch = ask.batch
                small += (_INDEX.pack(ask.partition), uvarint(len(ask.head) + len(batch) + 1), ask.head)
                if len(batch) < _PIECE:
                    small.append(batch)
                else:
                    pieces += (b"".join(small), batch)
                    small = []
                small.append(NO_TAGS)
            small.append(NO_TAGS)
        small.append(NO_TAGS)
        pieces.append(b"".join(small))
        return pieces

    def _name(self, topic: str, topic_id: uuid.UUID | None) -> bytes:
        if not self._by_id:
            return string(topic)
        assert topic_id is not None, "this version is chosen only where every topic has an id"
        return topic_id.bytes


def have_ids(asks: Sequence[ProduceAsk]) -> bool:
    """Return whether all topics have ids."""
    return all([ask.topic_id is not None for ask in asks])


def newest(by_id: bool) -> int:
    """Return the newest version that is supported, for topics with ids or without."""
    return LAST_RAW if by_id else FIRST_WITH_IDS - 1


def opening(transaction: bytes, timeout_ms: int) -> bytes:
    """Return what stands before the topics of a request."""
    return transaction + _OPENING.pack(_ACKS_ALL, timeout_ms)


def decode(names: dict[bytes, str] | None, data: memoryview) -> Produced:
    """Read an answer; `names` are the topics by their ids, None where the answer names them itself."""
    answers, at = read_topics(data, 0, None if names is None else names.__getitem__, _read_partition)
    (throttle,) = _INDEX.unpack_from(data, at)
    return Produced(throttle, answers)


def throttle(data: memoryview, by_id: bool) -> int:
    """Return the throttle time of a response in ms; 0 for one that cannot be read.

    Where leaders have moved tags with addresses stand behind it, of any length, so what comes before is read.

    Args:
        data: the answer behind its header.
        by_id: whether it names topics by their ids.
    """
    try:
        count = data[_COUNT_AT] if by_id and data[0] == _ONE_TOPIC else _TWO_BYTES
        if count < _TWO_BYTES and len(data) == _PLAIN + _EACH * (count - 1):
            # So short an answer about one topic has nothing that could be longer, and no tags.
            at = len(data) - _INDEX.size - 1
        else:
            _, at = read_topics(data, 0, _nameless if by_id else None, _read_partition)
        return int(_INDEX.unpack_from(data, at)[0])
    except (struct.error, IndexError, ValueError):
        # The receiver reports it.
        return 0


def _nameless(_: bytes) -> str:
    return ""


def _read_partition(data: memoryview, at: int, topic: str, answers: list[ProduceAnswer]) -> int:
    index, error, base_offset, _append_time, _log_start = _PARTITION.unpack_from(data, at)
    at += _PARTITION.size
    errors, at = read_uvarint(data, at)
    refused: list[RecordError] = []
    for _ in range(errors - 1):
        (number,) = _INDEX.unpack_from(data, at)
        reason, at = read_string(data, at + _INDEX.size)
        at = skip_tags(data, at)
        refused.append(RecordError(number, reason))
    message, at = read_string(data, at)
    answers.append(ProduceAnswer(topic, index, error, base_offset, message, tuple(refused)))
    return skip_tags(data, at)
