"""Partitions whose source holds records back: after how long that is said, of whom, and when it is taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import pytest

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.task import open_transactions
from reconciler.replicator.task.open_transactions import (
    ASK_IDLE_EVERY,
    EVERY,
    LONGEST_OPEN,
    OpenTransactions,
    StableEnd,
    remembered,
)
from reconciler.wire import BrokerError, ConnectionLost, Leader, Loop, ProducerState, Wire, Work

PLACE = Place("orders", 0, "east.orders")
SIDES = PartitionSides(Leader(1, 0, 0), None, Leader(9, 0, 0), None)
HANGING = ProducerState(4_711, 3, 8, open_transaction=True, opened_at=50)
LATER = ProducerState(4_712, 0, 1, open_transaction=True, opened_at=52)
OVER = ProducerState(4_713, 0, 1, open_transaction=False)
UNSUPPORTED_VERSION = 35
# When more is seen behind the offset for the first time, and when that is a quarter of an hour ago.
NOTICED = ASK_IDLE_EVERY
LATE = NOTICED + LONGEST_OPEN


class SideBySide:
    """A loop for what is done side by side."""

    async def together(self, works: Iterable[Work]) -> None:
        await asyncio.gather(*(work() for work in works))


@dataclass
class Source:
    """A source cluster with one partition: where it ends, and who writes there."""

    high: int = 70
    writing: list[ProducerState] = field(default_factory=lambda: [OVER, LATER, HANGING])
    ends_fail: Exception | None = None
    producers_fail: Exception | None = None
    asked: int = 0
    # What goes on while it looks for an answer: this channel is given the end that it has then.
    moves: Channel | None = None

    async def ends(
        self, _wire: Wire, node: int, partitions: list[tuple[str, int]], committed: bool
    ) -> dict[tuple[str, int], int]:
        assert (node, committed) == (SIDES.source.node, False)
        self.asked += 1
        if self.ends_fail is not None:
            raise self.ends_fail
        if self.moves is not None:
            self.moves.end = self.high
        return dict.fromkeys(partitions, self.high)

    async def producers(self, _node: int, _topic: str, _partition: int) -> list[ProducerState]:
        if self.producers_fail is not None:
            raise self.producers_fail
        return self.writing


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(open_transactions, "stable_ends", made.ends)
    return made


@pytest.fixture
def channel() -> Channel:
    """All that is stable is copied: up to offset 50."""
    return opened(50)


@pytest.fixture
def seen() -> dict[Place, StableEnd]:
    return {}


def opened(position: int) -> Channel:
    channel = Channel(PLACE)
    channel.open(SIDES, LogEnd(position, 1, 0, 0))
    channel.end = 50
    return channel


def made(source: Source, channel: Channel, seen: dict[Place, StableEnd]) -> OpenTransactions:
    return OpenTransactions(cast("Loop", SideBySide()), cast("Wire", source), ("east:9092",), [channel], seen)


def look(source: Source, channel: Channel, seen: dict[Place, StableEnd], *moments: float) -> Reason | None:
    for moment in moments:
        asyncio.run(made(source, channel, seen).look(moment))
    return channel.reason


def test_a_transaction_that_stays_open_is_named_with_what_ends_it(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    assert look(source, channel, seen, 0.0, NOTICED, LATE - 1) is None
    reason = look(source, channel, seen, LATE)
    assert reason is not None
    assert reason.code == "AB234"
    assert "20 offsets of orders/0 from 50 on are held back" in reason.text
    assert "open for 15 minutes or more (of producer 4711, epoch 3)" in reason.text
    command = "kafka-transactions.sh --bootstrap-server east:9092 abort --topic orders --partition 0 --start-offset 50"
    assert command in reason.text
    assert channel.state is PartitionState.RUNNING


def test_a_transaction_that_begins_in_a_log_without_traffic_is_not_old(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    source.high = 50
    look(source, channel, seen, 0.0, NOTICED, LATE)
    source.high = 70
    assert look(source, channel, seen, LATE + ASK_IDLE_EVERY) is None
    assert look(source, channel, seen, LATE + ASK_IDLE_EVERY + LONGEST_OPEN) is not None


def test_where_nothing_is_written_it_is_asked_seldom(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    source.high = 50
    assert look(source, channel, seen, 0.0, EVERY, ASK_IDLE_EVERY, ASK_IDLE_EVERY + EVERY) is None
    assert source.asked == 1


def test_where_ends_move_nothing_is_asked(source: Source, channel: Channel, seen: dict[Place, StableEnd]) -> None:
    for number in range(100):
        channel.end = channel.position = number
        assert look(source, channel, seen, number * EVERY) is None
    assert source.asked == 0


def test_a_later_round_goes_on_counting(source: Source, channel: Channel, seen: dict[Place, StableEnd]) -> None:
    look(source, channel, seen, 0.0, NOTICED)
    assert look(source, opened(50), seen, LATE) is not None


def test_what_was_seen_outlives_the_connections_of_a_flow() -> None:
    remembered("run", "flow")[PLACE] = StableEnd(50, 0.0)
    assert remembered("run", "flow") == {PLACE: StableEnd(50, 0.0)}
    assert remembered("run", "another") == {}


def test_an_opening_changes_nothing_of_what_was_counted(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    """Until the first answer its end is the high watermark."""
    look(source, channel, seen, 0.0, NOTICED)
    again = opened(50)
    again.end = 70
    assert look(source, again, seen, NOTICED + EVERY) is None
    again.end = 50
    assert look(source, again, seen, LATE) is not None


@pytest.mark.parametrize("position", [60, 70])
def test_it_is_taken_back_when_the_transaction_ends(
    source: Source, channel: Channel, seen: dict[Place, StableEnd], position: int
) -> None:
    """Whether or not all that is behind it was copied by then."""
    assert look(source, channel, seen, 0.0, NOTICED, LATE) is not None
    channel.end, channel.position = 70, position
    assert look(source, channel, seen, LATE + EVERY) is None


def test_what_goes_on_while_it_is_asked_for_is_not_held_back(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    look(source, channel, seen, 0.0, NOTICED)
    source.moves = channel
    assert look(source, channel, seen, LATE) is None


def test_a_transaction_that_has_just_ended_holds_nothing_back(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    source.writing = [OVER, LATER]
    assert look(source, channel, seen, 0.0, NOTICED, LATE) is None


def test_who_is_behind_or_reads_what_is_open_is_not_held_back(source: Source, seen: dict[Place, StableEnd]) -> None:
    behind, reader = opened(40), opened(50)
    reader.reads_committed = False
    for channel in (behind, reader):
        assert look(source, channel, seen, 0.0, NOTICED, LATE) is None
    assert source.asked == 0


@pytest.mark.parametrize("error", [ConnectionLost("gone"), BrokerError(UNSUPPORTED_VERSION)])
def test_who_does_not_tell_the_end_changes_nothing(
    source: Source, channel: Channel, seen: dict[Place, StableEnd], error: Exception
) -> None:
    said = look(source, channel, seen, 0.0, NOTICED, LATE)
    source.ends_fail = error
    assert look(source, channel, seen, LATE + EVERY) is said is not None


def test_a_broker_that_does_not_answer_whose_it_is_changes_nothing(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    said = look(source, channel, seen, 0.0, NOTICED, LATE)
    source.producers_fail = ConnectionLost("gone")
    assert look(source, channel, seen, LATE + EVERY) is said is not None


def test_a_broker_that_keeps_its_producers_to_itself_is_no_reason_for_silence(
    source: Source, channel: Channel, seen: dict[Place, StableEnd]
) -> None:
    source.producers_fail = BrokerError(UNSUPPORTED_VERSION)
    reason = look(source, channel, seen, 0.0, NOTICED, LATE)
    assert reason is not None
    assert "its producer is unknown: the broker answers UNSUPPORTED_VERSION" in reason.text
    assert "abort" not in reason.text


def test_nobody_looks_twice_at_once(source: Source, channel: Channel, seen: dict[Place, StableEnd]) -> None:
    found = made(source, channel, seen)
    assert found.is_due(0.0)
    assert not found.is_due(3_600.0)
    asyncio.run(found.look(0.0))
    assert not found.is_due(EVERY - 1)
    assert found.is_due(EVERY)
