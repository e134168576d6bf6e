"""Where the source ends for partitions that nobody reads: whom is asked, and what is told of a later round's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.pauses import Pauses, PauseScope
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.shares import Assignment, Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.task import source_ends as ends
from reconciler.replicator.task.commands import PartitionCommands
from reconciler.replicator.task.metrics import TaskMetrics
from reconciler.replicator.task.source_ends import SourceEnds
from reconciler.state.listener import Listener
from reconciler.wire import BrokerError, ConnectionLost, Leader, TopicInfo, Wire

NOT_LEADER = 6
PLACE = Place("orders", 0, "east.orders")
EAST, WEST = (Cluster(alias, ("127.0.0.1:9",)) for alias in ("east", "west"))
SPEC = FlowSpec("shop", "run", Flow("f", "east", "west", Selection(("orders",))), EAST, WEST, ("east", "west"))
SIDES = PartitionSides(Leader(1, 0, 0), None, Leader(9, 0, 0), None)
GONE = ConnectionLost("the connection broke")
LOST = Reason("AB209", "the source has lost records")


@dataclass
class Source:
    """A source cluster: who leads its only partition, and where that ends for whom."""

    leader: int = 1
    stable: int = 70
    high: int = 90
    gone: set[int] = field(default_factory=set)
    asked: list[int] = field(default_factory=list)

    async def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, None, 0, {0: Leader(self.leader, 0, 0)}) for name in names}

    async def ends(
        self, _wire: Wire, node: int, partitions: list[tuple[str, int]], committed: bool
    ) -> dict[tuple[str, int], int]:
        self.asked.append(node)
        if node in self.gone:
            raise GONE
        end = self.stable if committed else self.high
        return dict.fromkeys(partitions, end) if node == self.leader else {}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(ends, "stable_ends", made.ends)
    return made


def look(source: Source, *channels: Channel) -> None:
    asyncio.run(SourceEnds(cast("Wire", source), channels).look(0.0))


def opened(position: int = 50) -> Channel:
    channel = Channel(PLACE)
    channel.open(SIDES, LogEnd(position, 1, 0, 0))
    return channel


def test_a_partition_that_is_paused_or_parked_is_looked_after(source: Source) -> None:
    paused, parked = opened(), Channel(PLACE)
    paused.pause()
    parked.park(LOST, 0.0)
    for channel in (paused, parked):
        look(source, channel)
        assert channel.end == 70


def test_who_has_become_the_leader_is_asked(source: Source) -> None:
    channel = opened()
    channel.pause()
    source.leader = 2
    known = SourceEnds(cast("Wire", source), [channel])
    asyncio.run(known.look(0.0))
    assert (channel.end, source.asked) == (70, [1, 2])
    source.stable = 80
    asyncio.run(known.look(5.0))
    assert (channel.end, source.asked) == (80, [1, 2, 2])
    source.gone, source.leader, source.stable = {2}, 3, 85
    asyncio.run(known.look(10.0))
    assert channel.end == 85


def test_nobody_asks_for_what_runs_or_is_about_to(source: Source) -> None:
    look(source, opened(), Channel(PLACE))
    assert source.asked == []


def test_whoever_reads_open_transactions_stops_at_the_high_watermark(source: Source) -> None:
    place = PLACE._replace(offsets="translated")
    channel = TranslatedChannel(place, lambda _: None, reads_committed=False)
    channel.pause()
    look(source, channel)
    assert channel.end == 90


class Ear:
    """A listener to whom nobody says anything but pauses."""

    def __init__(self) -> None:
        self.pauses = Pauses()
        self.shares = None
        self.stopped = False

    def listen(self) -> bool:
        return False

    def take_restarts(self) -> list[object]:
        return []


def test_lag_goes_on_being_told_in_later_rounds(source: Source) -> None:
    ear, meters = Ear(), TaskMetrics()

    def round_begins() -> Channel:
        steering = PartitionCommands(SPEC, Assignment(0, 1, (PLACE,)), cast("Listener", ear), Channel)
        steering.listen()
        return steering.channels[0]

    def told(channel: Channel) -> tuple[PartitionState, int | None]:
        look(source, channel)
        said: PartitionStatus = meters.status(channel)
        return said.state, said.lag

    first = round_begins()
    first.open(SIDES, LogEnd(50, 1, 0, 0))
    first.end = 60
    assert told(first) == (PartitionState.RUNNING, 10)
    ear.pauses = Pauses({PauseScope("f"): True})
    for stable in (70, 80):
        source.stable = stable
        assert told(round_begins()) == (PartitionState.PAUSED, stable - 50)
    ear.pauses = Pauses()
    parked = round_begins()
    assert told(parked) == (PartitionState.OPENING, 30)
    parked.park(LOST, time.monotonic())
    source.stable = 85
    assert told(parked) == (PartitionState.PARKED, 35)
    parked.open(SIDES, LogEnd(84, 1, 0, 0))
    parked.end = 85
    assert told(parked) == (PartitionState.RUNNING, 1)


def test_a_topic_that_is_gone_changes_nothing(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(names: Iterable[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, None, 3, {}) for name in names}

    async def lost(_names: Iterable[str]) -> dict[str, TopicInfo]:
        raise GONE

    async def refuses(*_: object) -> dict[tuple[str, int], int]:
        raise BrokerError(NOT_LEADER)

    channel = opened()
    channel.pause()
    for topics in (gone, lost):
        monkeypatch.setattr(source, "topics", topics)
        look(source, Channel(PLACE), channel)
        monkeypatch.setattr(ends, "stable_ends", refuses)
        look(source, channel)
    assert channel.end == 70
