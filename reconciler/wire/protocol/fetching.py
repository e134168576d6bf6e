"""Fetch requests and answers, encoded and decoded by hand: what the data's own way cannot afford a library for.

`requests` sends them. The layouts are Kafka's FetchRequest and FetchResponse, versions 12 to 17.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from reconciler.wire.protocol.compact import (
    NO_TAGS,
    frame_head,
    read_topics,
    read_uvarint,
    skip_tags,
    string,
    uvarint,
)
from reconciler.wire.protocol.frames import RawHeader
from reconciler.wire.protocol.values import FetchAnswer, FetchAsk

API_KEY = 1
FIRST_RAW, LAST_RAW = 12, 17
# From this version on topics are named by id, so a topic made anew under the same name is an error.
FIRST_WITH_IDS = 13

_FIRST_WITHOUT_REPLICA = 15
_NO_REPLICA = b"\xff\xff\xff\xff"
_INT = struct.Struct(">i")
# Longest wait, fewest bytes, most bytes, isolation level, session id, session epoch.
_OPENING = struct.Struct(">iiibii")
# Partition, leader epoch, offset, last fetched epoch, log start, most bytes, no tags.
_ASK = struct.Struct(">iiqiqix")
# Throttle time, error, session id.
_ANSWER = struct.Struct(">ihi")
# Partition, error, high watermark, last stable offset, log start.
_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qqx")

Name = tuple[str, uuid.UUID | None]


class FetchBounds(NamedTuple):
    """The fields of a fetch request beside its partitions.

    Attributes:
        wait_ms: how long to wait for data.
        max_bytes: how many bytes.
        committed: whether only committed records.
        rack: the consumer's, so that the leader may name a replica near it; empty to have the leader's records.
        min_bytes: for how many bytes to wait.
    """

    wait_ms: int
    max_bytes: int
    committed: bool
    rack: str = ""
    min_bytes: int = 1


@dataclass(frozen=True, slots=True)
class FetchTurn:
    """One request's place in a fetch session (KIP-227).

    Attributes:
        session_id: of the session, 0 for none yet.
        epoch: of the request; 0 begins a session, -1 does without.
        asks: the partitions that are new or changed.
        forgotten: those that are to be dropped.
    """

    session_id: int
    epoch: int
    asks: Sequence[FetchAsk]
    forgotten: Sequence[FetchAsk] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response: its partitions, and the error code for the request as a whole."""

    throttle_time_ms: int
    error: int
    session_id: int
    answers: list[FetchAnswer]


class RawFetch:
    """A fetch request; it has the shape that kafka-python's connections ask of a request.

    Args:
        version: 12 names topics, 13 to 17 use their ids.
        bounds: of the whole request.
        turn: the partitions, and the session.
        names: the topics of all partitions that the answer may be about, by their ids.
    """

    def __init__(self, version: int, bounds: FetchBounds, turn: FetchTurn, names: dict[bytes, str]) -> None:
        self.API_VERSION = version
        self.header: Any = None
        self._head = b""
        self._bounds = bounds
        self._turn = turn
        self._names = names
        self._by_id = version >= FIRST_WITH_IDS

    def expect_response(self) -> bool:
        """Return whether a response comes."""
        return True

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Take the header's fields from the connection."""
        self._head = frame_head(API_KEY, self.API_VERSION, correlation_id, client_id)
        # Nothing here leads back to this request: a cycle would wait for the next collection.
        names = self._names if self._by_id else None
        self.header = RawHeader(correlation_id, partial(decode, names), self._bounds.max_bytes)

    def encode(self, framed: bool, header: bool) -> bytes:
        """Return the whole frame."""
        assert framed, "a connection always takes the frame"
        assert header, "and for the header"
        bounds, turn = self._bounds, self._turn
        pieces = [
            self._head,
            opening(self.API_VERSION, bounds, bounds.wait_ms, turn.session_id, turn.epoch),
        ]
        topics = self._by_topic(turn.asks)
        pieces.append(uvarint(len(topics) + 1))
        for topic, asks in topics:
            pieces += (self._name(topic), uvarint(len(asks) + 1))
            pieces += [_ASK.pack(a.partition, a.leader_epoch, a.offset, -1, -1, a.max_bytes) for a in asks]
            pieces.append(NO_TAGS)
        topics = self._by_topic(turn.forgotten)
        pieces.append(uvarint(len(topics) + 1))
        for topic, asks in topics:
            pieces += (self._name(topic), uvarint(len(asks) + 1), *(_INT.pack(a.partition) for a in asks), NO_TAGS)
        pieces += (string(bounds.rack), NO_TAGS)
        body = b"".join(pieces)
        return _INT.pack(len(body)) + body

    @staticmethod
    def _by_topic(asks: Iterable[FetchAsk]) -> list[tuple[Name, list[FetchAsk]]]:
        """Put neighbours of one topic together; the order counts, as a broker fills its answer in it."""
        topics: dict[Name, list[FetchAsk]] = {}
        for ask in asks:
            topics.setdefault((ask.topic, ask.topic_id), []).append(ask)
        return list(topics.items())

    def _name(self, topic: Name) -> bytes:
        name, topic_id = topic
        if not self._by_id:
            return string(name)
        assert topic_id is not None, "this version is chosen only where every topic has an id"
        return topic_id.bytes


def opening(version: int, bounds: FetchBounds, wait_ms: int, session_id: int, epoch: int) -> bytes:
    """Return what stands before the topics of a request; it waits so long for data, whatever is in `bounds`."""
    replica = b"" if version >= _FIRST_WITHOUT_REPLICA else _NO_REPLICA
    return replica + _OPENING.pack(wait_ms, bounds.min_bytes, bounds.max_bytes, bounds.committed, session_id, epoch)


def decode(names: dict[bytes, str] | None, data: memoryview) -> Fetched:
    """Read an answer; `names` are the topics by their ids, None where the answer names them itself."""
    throttle, error, session_id = _ANSWER.unpack_from(data)
    name_of = None if names is None else partial(_name_in, names)
    answers, _ = read_topics(data, _ANSWER.size, name_of, _read_partition)
    return Fetched(throttle, error, session_id, answers)


def _name_in(names: dict[bytes, str], topic_id: bytes) -> str:
    return names.get(topic_id, "")


def _read_partition(data: memoryview, at: int, topic: str, answers: list[FetchAnswer]) -> int:
    index, error, high_watermark, last_stable, log_start = _PARTITION.unpack_from(data, at)
    at += _PARTITION.size
    count, at = read_uvarint(data, at)
    aborted: tuple[tuple[int, int], ...] = ()
    if count > 1:
        found = []
        for _ in range(count - 1):
            producer_id, first = _ABORTED.unpack_from(data, at)
            found.append((producer_id, first))
            # The struct ends with the empty tags that brokers send here.
            at = skip_tags(data, at + _ABORTED.size - 1)
        aborted = tuple(found)
    (nearest,) = _INT.unpack_from(data, at)
    size, at = read_uvarint(data, at + _INT.size)
    end = at + max(0, size - 1)
    records = data[at:end]
    answers.append(FetchAnswer(topic, index, error, high_watermark, last_stable, log_start, records, aborted, nearest))
    return skip_tags(data, end)
