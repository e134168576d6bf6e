"""What is said between an express and both of its ends, and ends that only pretend to speak."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple

from reconciler.wire.protocol.compact import uvarint
from reconciler.wire.protocol.producing import FIRST_WITH_IDS

SESSION = 7
TOPIC, COPY = uuid.UUID(int=1), uuid.UUID(int=2)
_TAGS = b"\x00"
_NOBODY = -1


class Fetched(NamedTuple):
    """What a fetch answer says of one partition."""

    partition: int
    records: bytes = b""
    stable: int = 0
    error: int = 0
    aborted: tuple[tuple[int, int], ...] = ()
    nearest: int = _NOBODY

    def encoded(self) -> bytes:
        head = struct.pack(">ihqqq", self.partition, self.error, self.stable, self.stable, 0)
        aborted = b"".join(struct.pack(">qqx", *one) for one in self.aborted)
        told = uvarint(len(self.aborted) + 1) + aborted + struct.pack(">i", self.nearest)
        return head + told + uvarint(len(self.records) + 1) + self.records + _TAGS


def fetch_answer(
    *partitions: Fetched, topic: uuid.UUID = TOPIC, throttle: int = 0, error: int = 0, session: int = SESSION
) -> bytes:
    """Return a fetch answer behind its header."""
    of_topic = topic.bytes + uvarint(len(partitions) + 1) + b"".join(one.encoded() for one in partitions) + _TAGS
    topics = uvarint(2) + of_topic if partitions else uvarint(1)
    return struct.pack(">ihi", throttle, error, session) + topics + _TAGS


class Landed(NamedTuple):
    """What a produce answer says of one partition."""

    partition: int
    base: int
    error: int = 0
    message: str | None = None

    def encoded(self) -> bytes:
        text = b"" if self.message is None else self.message.encode()
        told = uvarint(0) if self.message is None else uvarint(len(text) + 1) + text
        return struct.pack(">ihqqq", self.partition, self.error, self.base, -1, 0) + uvarint(1) + told + _TAGS


def produce_answer(*partitions: Landed, topic: bytes = COPY.bytes, throttle: int = 0) -> bytes:
    """Return a produce answer behind its header; `topic` as the request named it."""
    of_topic = topic + uvarint(len(partitions) + 1) + b"".join(one.encoded() for one in partitions) + _TAGS
    topics = uvarint(2) + of_topic if partitions else uvarint(1)
    return topics + struct.pack(">i", throttle) + _TAGS


class FakeDirect:
    """Takes requests and answers them when it is told to, in order; it notes who holds it.

    Attributes:
        version: of its requests.
        is_open: as the real one's.
        bodies: of the requests.
        holders: how many hold it now.
        heard: how often somebody took in what had come.
        work: what is done when an answer begins to arrive.
        refused: why it was closed.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.is_open = True
        self.bodies: list[bytes] = []
        self.holders = self.heard = 0
        self.work: Callable[[], None] | None = None
        self.refused: BaseException | None = None
        self._waiting: list[tuple[Callable[[memoryview], None], Callable[[BaseException], None]]] = []

    @property
    def by_id(self) -> bool:
        return self.version >= FIRST_WITH_IDS

    @property
    def on_their_way(self) -> int:
        """How many requests have no answer."""
        return len(self._waiting)

    def send(self, body: bytes, answered: Callable[[memoryview], None], lost: Callable[[BaseException], None]) -> None:
        assert self.is_open
        self.bodies.append(body)
        self._waiting.append((answered, lost))

    def send_pieces(
        self,
        pieces: Sequence[bytes | memoryview],
        answered: Callable[[memoryview], None],
        lost: Callable[[BaseException], None],
    ) -> None:
        self.send(b"".join(pieces), answered, lost)

    def answer(self, data: bytes) -> None:
        """Answer the oldest request."""
        if self.work is not None:
            self.work()
        answered, _ = self._waiting.pop(0)
        answered(memoryview(data))

    def fall(self, error: BaseException) -> None:
        """Lose the connection."""
        self.is_open = False
        waiting, self._waiting = self._waiting, []
        for _, lost in waiting:
            lost(error)

    def refuse(self, why: BaseException) -> Exception:
        self.refused = why
        error = OSError(f"it cannot be read: {why}")
        self.fall(error)
        return error

    def hold(self) -> None:
        self.holders += 1

    def release(self) -> None:
        self.holders -= 1
        self.hear()

    def hear(self) -> None:
        self.heard += 1

    def meanwhile(self, work: Callable[[], None]) -> None:
        self.work = work

    def no_more(self, work: Callable[[], None]) -> None:
        if self.work == work:
            self.work = None
