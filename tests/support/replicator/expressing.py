"""An express between ends that only pretend to speak: real channels, a real session and real writers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.transfer.fast_path import MUCH, FastPath, FastPathRoutes, FastPathTerms, routes
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch
from reconciler.replicator.transfer.pace import FetchRest, Quota
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import Direct, FetchAnswer, FetchAsk, FetchBounds, FetchSession, Leader, Loop, Wire
from reconciler.wire.protocol import fetching
from tests.support.wire.direct_ends import COPY, SESSION, TOPIC, FakeDirect

SOURCE = 1
MOST = 1_000
PRODUCER_ID = 77


class Ends(Wire):
    """Both clusters, of which only direct requests are known."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop, Cluster("east", ("127.0.0.1:1",)), "tests", 5.0)
        self.source: Any = FakeDirect(17)
        self.targets: dict[int, Any] = {}

    def direct_fetch(self, node: int) -> Direct | None:
        found: Direct | None = self.source if node == SOURCE else None
        return found

    def direct_produce(self, node: int, by_id: bool) -> Direct | None:
        found: Direct | None = self.targets.get(node)
        return found


class Scene:
    """Partitions of one topic, whose copies are led by some brokers in turn.

    Args:
        nodes: who leads the copies of partition 0, 1 and so on.
    """

    def __init__(self, nodes: Sequence[int] = (2, 2), batch_size: int = 0) -> None:
        self.loop = Loop()
        self.ends = Ends(self.loop)
        self.source: FakeDirect = self.ends.source
        self.ends.targets = {node: FakeDirect(13) for node in nodes}
        self.targets: dict[int, FakeDirect] = self.ends.targets
        self.written: list[tuple[int, int, int]] = []
        self.writers = {node: self._writer(node) for node in nodes}
        self.session = FetchSession(SOURCE, committed=True)
        self.asks: dict[Channel, FetchAsk] = {}
        self.channels = [self._channel(number, node, batch_size) for number, node in enumerate(nodes)]
        self.goes_on = True
        self.is_stopped = False
        # What an express behind this one has done when the source has spoken, if there is one by then.
        self.next_round: Callable[[], None] | None = None
        self.express: FastPath | None = None

    def _writer(self, node: int) -> Sender:
        writer = Sender(self.loop, (self.ends, None), node, Quota(None), self._written, lambda: None)
        writer.on_fast_written = self._note_fast
        return writer

    def _written(self, channel: Channel, sent_batch: InFlightBatch) -> None:
        self.written.append((channel.place.partition, sent_batch.base_offset, sent_batch.next_offset))

    def _note_fast(self, sent: Sequence[FastPathBatch]) -> None:
        for entry, sent_batch in sent:
            self._written(entry.channel, sent_batch)

    def _channel(self, number: int, node: int, batch_size: int) -> Channel:
        channel = Channel(Place("orders", number, "east.orders"), batch_size=batch_size)
        channel.open(
            PartitionSides(Leader(SOURCE, 5, 0), TOPIC, Leader(node, 7, 0), COPY), LogEnd(0, PRODUCER_ID, 0, 0)
        )
        # As after its first answer: it does not travel alone any more.
        channel._alone = False
        channel._answered_at = float("inf")
        self.asks[channel] = FetchAsk("orders", TOPIC, number, 0, 5, MOST)
        self.session.want(self.asks[channel])
        return channel

    def begin_session(self) -> None:
        self.session.turn()
        self.session.answered(fetching.Fetched(0, 0, SESSION, []))

    def routes(self) -> FastPathRoutes | None:
        return routes(self.ends, self.session, self.channels, self.writers.get)

    def play(self, story: Callable[[], Awaitable[None] | None]) -> list[FetchAnswer]:
        """Go by express while a story happens; return what it left.

        Raises:
            Exception: what the express raised.
        """
        self.begin_session()
        over = self.routes()
        assert over is not None
        terms = FastPathTerms(
            FetchBounds(0, MOST, True, "", MUCH), FetchRest(0.05, 0.0), lambda _: self.goes_on, lambda: self.is_stopped
        )
        express = self.express = FastPath(self.loop, self.ends, self.session, over, terms)
        changed = self.session.turn_on()
        assert changed is not None

        async def go() -> None:
            job = self.loop.spawn(partial(express.run, self.asks, changed))
            await self.loop.sleep(0)
            assert [one.holders for one in self.targets.values()] == [1] * len(self.targets)
            assert self.source.on_their_way == 1
            if (told := story()) is not None:
                await told
            for _ in range(1_000):
                if job.is_done:
                    break
                await self.loop.sleep(0.001)
            assert job.is_done
            job.raise_failure()

        try:
            self.loop.run(go)
        finally:
            # Whatever has happened, nobody is held or looked for any more, and the source owes nothing.
            assert [one.holders for one in self.targets.values()] == [0] * len(self.targets)
            assert self.source.work is self.next_round
            assert self.source.on_their_way == 0
        return express.left

    def close(self) -> None:
        self.ends.close()
        self.loop.close()
