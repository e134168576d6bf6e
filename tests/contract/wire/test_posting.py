"""Produce requests that nobody awaits, against a real broker: order, large bodies, and what a lost connection says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.records.batch import LARGE
from reconciler.wire import ConnectionLost, Loop, ProduceAnswer, ProduceAsk, TopicInfo, Wire, Work, post
from tests.support.clusters.kafka import create, declared
from tests.support.records.batches import Content, build, some
from tests.support.replicator.copying import log_end

NODE = 1
_DEADLINE = 15.0


class Line:
    """A wire to a topic, and what became of what was sent over it."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, may_send: Callable[[], bool] = lambda: True) -> None:
        create(cluster, topic)
        self.loop = Loop()
        self.wire = Wire(self.loop, declared("east", cluster), "tests", 5.0, may_send)
        self.topic = topic
        self.answers: list[ProduceAnswer] = []
        self.losses: list[ConnectionLost] = []
        self.info: TopicInfo | None = None

    def run(self, work: Work) -> None:
        """Do some work over it, and close it."""
        try:
            self.loop.run(work)
        finally:
            self.wire.close()
            self.loop.close()

    async def connect(self) -> None:
        self.info = (await self.wire.topics([self.topic]))[self.topic]
        await self.wire.reach(NODE)
        direct = self.wire.direct_produce(NODE, by_id=True)
        assert direct is not None and direct.is_open, "this is about direct connections"

    def post(self, data: bytes) -> None:
        assert self.info is not None
        ask = ProduceAsk(self.topic, self.info.topic_id, 0, data)
        post(self.wire, NODE, [ask], self.losses.append, self._answered)

    def _answered(self, answers: Sequence[ProduceAnswer]) -> None:
        self.answers += answers

    async def until(self, count: int) -> None:
        deadline = time.monotonic() + _DEADLINE
        while len(self.answers) + len(self.losses) < count:
            assert time.monotonic() < deadline, "nobody said what became of it"
            await self.loop.sleep(0.01)


@pytest.fixture
def large() -> bytes:
    return build([Content(1_000, None, b"x" * 900_000)])


def test_requests_land_in_the_order_of_the_calls_whoever_sends_them(
    source_cluster: EmbeddedCluster, topic_name: str, large: bytes
) -> None:
    line = Line(source_cluster, topic_name)
    assert len(large) > LARGE

    async def send() -> None:
        await line.connect()
        line.post(large)
        line.post(build(some(3)))
        assert line.info is not None
        pending = line.wire.produce(NODE, [ProduceAsk(topic_name, line.info.topic_id, 0, large)], line.losses.append)
        line.post(build(some(2)))
        (between,) = await pending
        await line.until(3)
        assert between.base_offset == 4
        assert [(one.error, one.base_offset) for one in line.answers] == [(0, 0), (0, 1), (0, 5)]
        assert not line.losses

    line.run(send)
    assert log_end(declared("east", source_cluster), topic_name) == 7


def test_what_is_under_way_when_the_connection_is_dropped_is_lost_once(
    source_cluster: EmbeddedCluster, topic_name: str, large: bytes
) -> None:
    line = Line(source_cluster, topic_name)

    async def send() -> None:
        await line.connect()
        line.post(large)
        line.post(large)
        line.wire.drop("the test wants it")
        assert len(line.losses) == 2, "at once, before anybody could send over a new connection"
        # Over a new one it goes on.
        await line.connect()
        line.post(build(some(1)))
        await line.until(3)
        assert len(line.losses) == 2
        assert [one.error for one in line.answers] == [0]

    line.run(send)


def test_what_may_not_be_sent_any_more_is_not_sent(
    source_cluster: EmbeddedCluster, topic_name: str, large: bytes
) -> None:
    allowed = True
    line = Line(source_cluster, topic_name, lambda: allowed)

    async def send() -> None:
        nonlocal allowed
        await line.connect()
        line.post(build(some(3)))
        await line.until(1)
        allowed = False
        line.post(large)
        await line.until(2)
        assert "nothing may be sent" in str(line.losses[0])

    line.run(send)
    assert log_end(declared("east", source_cluster), topic_name) == 3
