"""The fast path: copies low traffic from one broker of the source straight to the leaders of its copies.

`fetcher` starts one while so few records come in that each would be fetched on its own. The source's broker gathers
records for some milliseconds; what its answer holds is sent where it arrives, without a queue, task or turn of the loop
in between, and the target's answers to the last request are read at the same time: one wake-up for each answer. The
rules stay those of `channel`, which decides for each partition (`pass_on`). Whatever is not plain ends the fast path,
and is left to the fetcher.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch, FastPathPartition
from reconciler.replicator.transfer.pace import FetchRest
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import (
    Direct,
    FetchAnswer,
    FetchAsk,
    FetchBounds,
    FetchSession,
    Loop,
    Piece,
    UnreadableAnswer,
    Wire,
    fetch_opening,
)
from reconciler.wire.protocol import fast_path

# Larger answers (bytes) end the fast path.
MUCH = 16 * 1024
# While the source sends nothing, answers of the target are read this often (seconds).
_HEAR_EVERY = 0.5


class FastPathRoutes(NamedTuple):
    """The connections of a fast path.

    Attributes:
        source: for requests to the source's broker.
        targets: the sender of each target broker, and its connection.
    """

    source: Direct
    targets: Mapping[int, tuple[Sender, Direct]]


class FastPathTerms(NamedTuple):
    """How a fast path runs.

    Attributes:
        bounds: of each fetch request; its wait comes from `rest`.
        rest: how long each fetch waits.
        goes_on: called after each answer (monotonic seconds): whether to continue.
        is_stopped: called before anything is sent: whether nothing may be sent any more.
    """

    bounds: FetchBounds
    rest: FetchRest
    goes_on: Callable[[float], bool]
    is_stopped: Callable[[], bool]


def routes(
    wire: Wire, session: FetchSession, channels: Iterable[Channel], sender_of: Callable[[int], Sender | None]
) -> FastPathRoutes | None:
    """Return the connections of a fast path for some channels; None where one of them cannot use it.

    Args:
        wire: to the source cluster.
        session: with the broker that leads them.
        channels: all channels of the session.
        sender_of: returns the sender of a target broker; None where there is none.
    """
    source = wire.direct_fetch(session.node)
    if source is None or not source.is_open or not session.by_id:
        return None
    targets: dict[int, tuple[Sender, Direct]] = {}
    by_id: set[bool] = set()
    for channel in channels:
        if type(channel) is not Channel or channel.sides is None:
            return None
        node = channel.sides.target.node
        by_id.add(channel.sides.target_id is not None)
        if node not in targets:
            sender = sender_of(node)
            direct = None if sender is None else sender.direct(by_id=True in by_id)
            if sender is None or direct is None:
                return None
            targets[node] = sender, direct
    return FastPathRoutes(source, targets) if len(by_id) == 1 else None


class FastPath:
    """Copies the channels that one broker of the source leads, until an answer is not plain or is empty.

    Args:
        loop: the task's loop.
        wire: to the source cluster.
        session: with the broker; the fast path continues it.
        over: its connections.
        terms: how it runs.

    Attributes:
        seats: the channels in it.
        left: answers that it has not processed.
    """

    def __init__(
        self, loop: Loop, wire: Wire, session: FetchSession, over: FastPathRoutes, terms: FastPathTerms
    ) -> None:
        self._wire = wire
        self._session = session
        self._over = over
        self._terms = terms
        self._tail = fast_path.fetch_tail(terms.bounds.rack)
        self._bell = loop.bell()
        self._by_place: dict[tuple[bytes, int], FastPathPartition] = {}
        self.left: list[FetchAnswer] = []
        self._is_over = False
        self._failure: BaseException | None = None

    @property
    def entries(self) -> Iterable[FastPathPartition]:
        """The channels in it."""
        return self._by_place.values()

    async def run(self, channels: Mapping[Channel, FetchAsk], changed: Sequence[FetchAsk]) -> None:
        """Copy until the fast path is over.

        Args:
            channels: all channels of the session.
            changed: the requests among them that the broker's session does not hold yet.

        Raises:
            ConnectionLost: the source does not answer.
            BrokerError: it refused a whole request.
        """
        for channel, wanted in channels.items():
            assert channel.sides is not None, "a running channel has its sides"
            _, direct = self._over.targets[channel.sides.target.node]
            entry = FastPathPartition(channel, wanted, direct.by_id)
            self._by_place[entry.source, entry.partition] = entry
        asks: dict[bytes, list[bytes]] = {}
        for ask in changed:
            assert ask.topic_id is not None, "sessions that go on use ids"
            one = fast_path.ask(ask.partition, ask.leader_epoch, ask.offset, ask.max_bytes)
            asks.setdefault(ask.topic_id.bytes, []).append(one)
        with self._at_work():
            self._ask(asks)
            while not self._is_over:
                await self._bell.wait(_HEAR_EVERY)
                self._hear()
        if self._failure is not None:
            self._session.broken()
            raise self._failure

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Read the target's answers together with the source's, so that the thread wakes up once for both."""
        for _, direct in self._over.targets.values():
            direct.hold()
        self._over.source.meanwhile(self._hear)
        try:
            yield
        finally:
            # A fast path of the next round may have registered there by now.
            self._over.source.no_more(self._hear)
            for _, direct in self._over.targets.values():
                direct.release()

    def _hear(self) -> None:
        for _, direct in self._over.targets.values():
            direct.hear()

    def _ask(self, asks: Mapping[bytes, Sequence[bytes]]) -> None:
        way, session = self._over.source, self._session
        wait_ms = max(1, round(self._terms.rest.seconds(time.thread_time()) * 1000))
        opening = fetch_opening(way.version, self._terms.bounds, wait_ms, session.number, session.epoch)
        way.send(fast_path.fetch_body(opening, asks, self._tail), self._answered, self._lost)

    def _lost(self, error: BaseException) -> None:
        self._end(self._wire.lost(error))

    def _end(self, failure: BaseException | None = None) -> None:
        self._failure = self._failure or failure
        self._is_over = True
        self._bell.ring()

    def _answered(self, data: memoryview) -> None:
        """Process an answer; an exception would be lost in the library's callback, so it is kept for `run`."""
        try:
            if self._terms.is_stopped() or not self._take(bytes(data)):
                self._end()
        except UnreadableAnswer as failure:
            self._end(self._wire.lost(self._over.source.refuse(failure)))
        except BaseException as failure:
            self._end(failure)

    def _take(self, data: bytes) -> bool:
        """Send what an answer holds and fetch more; return whether the fast path continues."""
        now = time.monotonic()
        pieces = fast_path.pieces(data, self._session.number)
        # The fast path uses a sender's first lane, and must not run beside requests in flight over the second.
        over = self._over.targets.values()
        if pieces is None or not all([direct.is_open and not sender.lanes.are_two for sender, direct in over]):
            self.left = self._wire.fetched(self._session, data)
            return False
        entries = self._entries_of(pieces)
        self._session.stepped()
        sent: dict[int, list[FastPathBatch]] = {}
        asks: dict[bytes, list[bytes]] = {}
        others: list[Piece] = []
        for piece, entry in zip(pieces, entries, strict=True):
            if piece.start == piece.end:
                nothing = FetchAnswer("", entry.partition, 0, piece.stable, piece.stable, -1, b"")
                entry.channel.receive(nothing, entry.asked, entry.opening, now)
                continue
            sent_batch = entry.channel.pass_on(data, piece, entry.asked, entry.opening, now)
            if sent_batch is None:
                others.append(piece)
                continue
            entry.asked = sent_batch.next_offset
            one = fast_path.ask(entry.partition, entry.epoch, entry.asked, entry.most)
            if (of_topic := asks.get(entry.source)) is None:
                asks[entry.source] = [one]
            else:
                of_topic.append(one)
            if (of_node := sent.get(entry.node)) is None:
                sent[entry.node] = [(entry, sent_batch)]
            else:
                of_node.append((entry, sent_batch))
        for node, sent_batches in sent.items():
            sender, direct = self._over.targets[node]
            sender.send_fast(direct, sent_batches, now)
        if others:
            self.left = self._answers(data, others)
            return False
        if not sent or len(data) > MUCH or not self._terms.goes_on(now) or not self._over.source.is_open:
            return False
        self._ask(asks)
        return True

    def _entries_of(self, pieces: Iterable[Piece]) -> list[FastPathPartition]:
        by_place = self._by_place
        try:
            return [by_place[piece.topic, piece.partition] for piece in pieces]
        except KeyError as unknown:
            message = f"it is about partition {unknown.args[0][1]} of a topic that was not asked for"
            raise UnreadableAnswer(message) from None

    def _answers(self, data: bytes, pieces: Iterable[Piece]) -> list[FetchAnswer]:
        names = {entry.source: entry.channel.place.topic for entry in self.entries}
        wanted = {(names[piece.topic], piece.partition) for piece in pieces}
        return [one for one in self._wire.decoded(self._session, data).answers if (one.topic, one.partition) in wanted]
