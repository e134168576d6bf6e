"""What clients of one broker say to it: their requests, heard on the line between them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reconciler.wire.protocol.compact import read_string, read_topics, read_uvarint, skip_tags

PRODUCE, FETCH, METADATA = 0, 1, 3
_HEAD = struct.Struct(">hhih")
_SIZE = struct.Struct(">i")
# Longest wait, fewest bytes, most bytes, isolation level, session id, session epoch.
_FETCH = struct.Struct(">iiibii")
# Partition, leader epoch, offset, last fetched epoch, log start, most bytes.
_ASK = struct.Struct(">iiqiqi")
# Acks, time-out.
_PRODUCE = struct.Struct(">hi")
_FIRST_FETCH, _FIRST_PRODUCE = 15, 13


class Request(NamedTuple):
    """One request: its kind, version and client id, and what stands behind its header."""

    api: int
    version: int
    client: str
    body: memoryview


class Fetch(NamedTuple):
    """What a fetch asks for: for how long, how much, and how much of each partition that is new or changed."""

    wait_ms: int
    most: int
    of_each: Mapping[int, int]


class Produce(NamedTuple):
    """What a request writes: how long replicas may take, and the bytes of each partition's batch."""

    timeout_ms: int
    sizes: Mapping[int, int]


class Tap:
    """Hears requests; `hear` goes into `Relay.heard`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._begun: dict[int, bytearray] = {}

    def hear(self, connection: int, data: bytes) -> None:
        begun = self._begun.setdefault(connection, bytearray())
        begun += data
        while len(begun) >= _SIZE.size and len(begun) >= _SIZE.size + (size := _SIZE.unpack_from(begun)[0]):
            frame = memoryview(bytes(begun[_SIZE.size : _SIZE.size + size]))
            del begun[: _SIZE.size + size]
            api, version, _, length = _HEAD.unpack_from(frame)
            end = _HEAD.size + max(length, 0)
            self.requests.append(Request(api, version, str(frame[_HEAD.size : end], "utf-8"), frame[end:]))

    def of(self, api: int, client: str) -> list[Request]:
        return [one for one in self.requests if (one.api, one.client) == (api, client)]

    def fetches(self, client: str) -> Iterator[Fetch]:
        for one in self.of(FETCH, client):
            assert one.version >= _FIRST_FETCH
            at = skip_tags(one.body, 0)
            wait_ms, _, most, *_ = _FETCH.unpack_from(one.body, at)
            found, _ = read_topics(one.body, at + _FETCH.size, _hex, _read_ask)
            yield Fetch(wait_ms, most, dict(found))

    def produces(self, client: str) -> Iterator[Produce]:
        for one in self.of(PRODUCE, client):
            assert one.version >= _FIRST_PRODUCE
            _, at = read_string(one.body, skip_tags(one.body, 0))
            _, timeout_ms = _PRODUCE.unpack_from(one.body, at)
            found, _ = read_topics(one.body, at + _PRODUCE.size, _hex, _read_batch)
            yield Produce(timeout_ms, dict(found))


def _hex(topic_id: bytes) -> str:
    return topic_id.hex()


def _read_ask(data: memoryview, at: int, topic: str, found: list[tuple[int, int]]) -> int:
    partition, *_, most = _ASK.unpack_from(data, at)
    found.append((partition, most))
    return skip_tags(data, at + _ASK.size)


def _read_batch(data: memoryview, at: int, topic: str, found: list[tuple[int, int]]) -> int:
    (partition,) = _SIZE.unpack_from(data, at)
    size, at = read_uvarint(data, at + _SIZE.size)
    found.append((partition, size - 1))
    return skip_tags(data, at + size - 1)
