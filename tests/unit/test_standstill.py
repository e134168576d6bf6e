"""Partitions whose source holds records back: after how long that is said, of whom, and when it is taken back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from reconciler.model.status import PartitionState, Reason
from reconciler.replicator import standstill
from reconciler.replicator.channel import Channel
from reconciler.replicator.place import Place, Sides, Standing
from reconciler.replicator.standstill import LONGEST_OPEN, Standstill, Stood
from reconciler.replicator.wire import ConnectionLost, ErrorCode, Leader, ProducerState, Wire

PLACE = Place("orders", 0, "east.orders")
SIDES = Sides(Leader(1, 0, 0), None, Leader(9, 0, 0), None)
HANGING = ProducerState(4_711, 3, 8, open_transaction=True, opened_at=50)
LATER = ProducerState(4_712, 0, 1, open_transaction=True, opened_at=52)
OVER = ProducerState(4_713, 0, 1, open_transaction=False)
UNSUPPORTED_VERSION = 35
LATE = LONGEST_OPEN + 60.0


@dataclass
class Source:
    """A source cluster with one partition: where it ends, and who writes there."""

    high: int = 70
    producers_there: list[ProducerState] = field(default_factory=lambda: [OVER, LATER, HANGING])
    fails: Exception | None = None
    keeps_producers: bool = False
    asked: int = 0

    async def ends(
        self, _wire: Wire, node: int, partitions: list[tuple[str, int]], committed: bool
    ) -> dict[tuple[str, int], int]:
        assert (node, committed) == (SIDES.source.node, False)
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return dict.fromkeys(partitions, self.high)

    async def producers(self, _node: int, _topic: str, _partition: int) -> list[ProducerState]:
        if self.keeps_producers:
            raise ErrorCode(UNSUPPORTED_VERSION)
        return self.producers_there


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(standstill, "stable_ends", made.ends)
    return made


@pytest.fixture
def channel() -> Channel:
    """All that is stable is copied: up to offset 50."""
    return opened(50)


@pytest.fixture
def stood() -> dict[Place, Stood]:
    return {}


def opened(position: int) -> Channel:
    channel = Channel(PLACE)
    channel.open(SIDES, Standing(position, 1, 0, 0))
    channel.end = 50
    return channel


def look(source: Source, channel: Channel, stood: dict[Place, Stood], now: float) -> Reason | None:
    asyncio.run(Standstill(cast("Wire", source), [channel], stood).look(now))
    return channel.reason


def test_a_transaction_that_stays_open_is_named_with_what_ends_it(
    source: Source, channel: Channel, stood: dict[Place, Stood]
) -> None:
    assert look(source, channel, stood, 0.0) is None
    assert look(source, channel, stood, LONGEST_OPEN - 1) is None
    assert source.asked == 0
    reason = look(source, channel, stood, LATE)
    assert reason is not None
    assert reason.code == "AB234"
    assert "20 offsets of orders/0 from 50 on are held back" in reason.text
    assert "open for 16 minutes or more (producer 4711's, epoch 3)" in reason.text
    assert "kafka-transactions.sh abort --topic orders --partition 0 --start-offset 50" in reason.text
    assert channel.state is PartitionState.RUNNING


def test_a_later_round_goes_on_counting(source: Source, channel: Channel, stood: dict[Place, Stood]) -> None:
    look(source, channel, stood, 0.0)
    assert look(source, opened(50), stood, LATE) is not None


def test_it_is_taken_back_when_the_transaction_ends(
    source: Source, channel: Channel, stood: dict[Place, Stood]
) -> None:
    look(source, channel, stood, 0.0)
    assert look(source, channel, stood, LATE) is not None
    channel.end = 70
    assert look(source, channel, stood, LATE + 30) is None


def test_a_partition_without_traffic_is_asked_about_once_in_a_while(
    source: Source, channel: Channel, stood: dict[Place, Stood]
) -> None:
    source.high = 50
    look(source, channel, stood, 0.0)
    assert look(source, channel, stood, LATE) is None
    assert look(source, channel, stood, LATE + 30) is None
    assert source.asked == 1
    assert look(source, channel, stood, 2 * LATE) is None
    assert source.asked == 2


def test_who_is_behind_or_reads_what_is_open_does_not_stand_still(source: Source, stood: dict[Place, Stood]) -> None:
    behind, reader = opened(40), opened(50)
    reader.reads_committed = False
    for channel in (behind, reader):
        look(source, channel, stood, 0.0)
        assert look(source, channel, stood, LATE) is None
    assert source.asked == 0


@pytest.mark.parametrize("error", [ConnectionLost("gone"), ErrorCode(UNSUPPORTED_VERSION)])
def test_who_does_not_answer_changes_nothing(
    source: Source, channel: Channel, stood: dict[Place, Stood], error: Exception
) -> None:
    look(source, channel, stood, 0.0)
    said = look(source, channel, stood, LATE)
    source.fails = error
    assert look(source, channel, stood, LATE + 30) is said is not None


def test_a_broker_that_keeps_its_producers_to_itself_is_no_reason_for_silence(
    source: Source, channel: Channel, stood: dict[Place, Stood]
) -> None:
    source.keeps_producers = True
    look(source, channel, stood, 0.0)
    reason = look(source, channel, stood, LATE)
    assert reason is not None
    assert "which producer's the broker does not say" in reason.text
    assert "find-hanging --topic orders" in reason.text


def test_another_reason_is_left_alone(source: Source, channel: Channel, stood: dict[Place, Stood]) -> None:
    other = Reason("AB220", "something else")
    channel.reason = other
    look(source, channel, stood, 0.0)
    assert look(source, channel, stood, LATE) is other


def test_nobody_looks_twice_at_once(source: Source, channel: Channel, stood: dict[Place, Stood]) -> None:
    found = Standstill(cast("Wire", source), [channel], stood)
    assert found.is_due(0.0)
    assert not found.is_due(3_600.0)
    asyncio.run(found.look(0.0))
    assert not found.is_due(standstill.EVERY - 1)
    assert found.is_due(standstill.EVERY)
