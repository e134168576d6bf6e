"""Fillers on real brokers, and a wire that loses what it is told to lose."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.records.batch import Batch
from reconciler.records.split import split
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.gaps.fill import Filler
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ConnectionLost, FetchAsk, Loop, ProduceAsk, TopicInfo, Wire
from reconciler.wire.requests.transactions import Markers, write_markers
from tests.support.records.batches import Content, build

T = TypeVar("T")
IDENTITY = ProducerNames("tests", "east-west")
MARKERS, BEGIN, END, SETTLE, DELETE = (
    "WriteTxnMarkersRequest",
    "AddPartitionsToTxnRequest",
    "EndTxnRequest",
    "InitProducerIdRequest",
    "DeleteRecordsRequest",
)


class LossyWire(Wire):
    """Loses answers, or requests, of one kind; whoever waits hears what a broken connection says."""

    def __init__(self, loop: Loop, cluster: Cluster) -> None:
        super().__init__(loop, cluster, "tests", 10.0)
        self.lose: dict[str, deque[str | None]] = {}
        self.late: list[tuple[Any, int | None]] = []
        self.doubled = ""

    async def ask(self, request: Any, node: int | None) -> Any:
        fates = self.lose.get(type(request).__name__)
        fate = fates.popleft() if fates else None
        if fate == "twice":
            await self.twice(request)
            fate = None
        if fate == "late":
            self.late.append((request, node))
        elif fate != "request":
            answer = await super().ask(request, node)
            if fate is None:
                return answer
        message = f"lost the {fate}"
        raise ConnectionLost(message)

    async def twice(self, request: Any) -> None:
        """Write the marker of a transaction once more, as a coordinator does that did not hear of the first."""
        ours = Markers(self.doubled, 0, request.producer_id, request.producer_epoch, 0, 1)
        await write_markers(self, (await self.topics([self.doubled]))[self.doubled].partitions[0].node, ours)

    async def deliver(self) -> list[Any]:
        """Let the broker have what was late."""
        late, self.late = self.late, []
        return [await super(LossyWire, self).ask(*one) for one in late]


class Desk:
    """A loop, a wire and as many fillers as owners are needed."""

    def __init__(self, cluster: Cluster) -> None:
        self.loop = Loop()
        self.wire = LossyWire(self.loop, cluster)

    def filler(self, how: str) -> Filler:
        return Filler(self.loop, self.wire, IDENTITY, how)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        found: list[T] = []

        async def put() -> None:
            await self.wire.connect()
            found.append(await work())

        self.loop.run(put)
        return found[0]

    async def topic(self, name: str) -> TopicInfo:
        return (await self.wire.topics([name]))[name]

    async def end(self, name: str, partition: int = 0) -> int:
        leader = (await self.topic(name)).partitions[partition]
        end = await self.wire.log_end(leader.node, name, partition, leader.epoch)
        assert end is not None
        return end

    async def fill(self, filler: Filler, name: str, count: int, partition: int = 0) -> int:
        """Fill `count` offsets from the end on; return how many it became."""
        start = await self.end(name, partition)
        return await filler.fill(place(name, partition), await self.topic(name), start, count) - start

    async def write(
        self, name: str, producer: tuple[int, int, int], records: int = 1, timestamp: int = 0, size: int = 10
    ) -> tuple[int, int]:
        """Write a batch as a replicator does, with the time of now or another; return the error and the base offset."""
        at = timestamp or int(time.time() * 1_000)
        data = build([Content(at + number, b"key", b"x" * size) for number in range(records)], producer=producer)
        info = await self.topic(name)
        ask = ProduceAsk(name, info.topic_id, 0, data)
        (answer,) = await self.wire.produce(info.partitions[0].node, [ask], lambda error: None)
        return answer.error, answer.base_offset

    async def batches(self, name: str) -> list[Batch]:
        """Return all that one partition holds."""
        info = await self.topic(name)
        leader, found = info.partitions[0], list[Batch]()
        end, at = await self.end(name), 0
        while at < end:
            ask = FetchAsk(name, info.topic_id, 0, at, leader.epoch, 2**20)
            (answer,) = await self.wire.fetch(leader.node, [ask], 500, 2**20, committed=False)
            answer.raise_error()
            found += split(answer.records)
            at = found[-1].next_offset if found else at
        return found

    def close(self) -> None:
        self.wire.close()
        self.loop.close()


def place(name: str, partition: int = 0) -> Place:
    return Place(name, partition, name)


@contextmanager
def desk(cluster: Cluster) -> Iterator[Desk]:
    """Open a desk for the length of a block."""
    opened = Desk(cluster)
    try:
        yield opened
    finally:
        opened.close()


def fill_in_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Let each filling write all but one offset, then lose its connection; returns a count of how often it did."""
    whole, lost = Filler.fill, itertools.count()

    async def in_part(self: Filler, place: Place, info: TopicInfo, start: int, count: int) -> int:
        if count > 1:
            await whole(self, place, info, start, count - 1)
            next(lost)
            message = "cut off"
            raise ConnectionLost(message)
        return await whole(self, place, info, start, count)

    monkeypatch.setattr(Filler, "fill", in_part)
    return lost
