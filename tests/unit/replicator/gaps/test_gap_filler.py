"""Filling gaps in pieces: one filling at a time, whatever arrives or ends meanwhile; only owners store runs."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import pytest

from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.gaps.fill import Filler, NotFilled
from reconciler.replicator.gaps.gap_filler import GapFiller
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ConnectionLost, TopicInfo
from tests.support.replicator.channels import OUTAGE, feed, log, opened, send_all


class Log:
    """A remote partition's end, what is stored of it, and what happens while it is filled."""

    def __init__(self, way: str = "markers") -> None:
        self.end = 0
        self.way = way
        self.fillings: list[int] = []
        self.stored: list[CopyRecord] = []
        self.overrun = 0
        self.trouble: deque[BaseException] = deque()
        self.meanwhile: list[object] = []

    def describe(self) -> str:
        return self.way

    async def fill(self, place: Place, target: TopicInfo, start: int, count: int) -> int:
        assert start == self.end
        self.fillings.append(count)
        for event in self.meanwhile:
            cast("type", event)()
        if self.trouble:
            raise self.trouble.popleft()
        self.end = start + count + self.overrun
        return self.end

    def get(self, place: Place) -> CopyRecord | None:
        return self.stored[-1] if self.stored else None

    async def put(self, place: Place, record: CopyRecord) -> None:
        self.stored.append(record)


class Task:
    """Runs fillings one after the other, as they are asked for."""

    def __init__(self, copy: Log) -> None:
        self.asked: deque[Channel] = deque()
        self.gaps = GapFiller(cast("Filler", copy), cast("Any", copy))

    def __call__(self, channel: Channel) -> None:
        self.asked.append(channel)

    def step(self) -> None:
        work = self.gaps.fill(self.asked.popleft())
        with pytest.raises(StopIteration):
            work.send(None)


def test_a_long_gap_is_filled_in_pieces_one_at_a_time() -> None:
    copy = Log()
    task = Task(copy)
    channel = opened(at_gap=task)
    feed(channel, log(3_500, 1))
    while task.asked:
        assert len(task.asked) == 1
        assert channel.filling
        task.step()
        # What arrives between two pieces asks for no second filling.
        feed(channel, log(channel.fetch_at, 1))
    assert copy.fillings == [1_000, 1_000, 1_000, 500]
    assert (channel.position, channel.shift, channel.filling, copy.end) == (3_500, 0, False, 3_500)
    assert copy.stored == []
    assert send_all(channel)[0].landing == 3_500


def test_transactions_come_in_small_pieces() -> None:
    copy = Log("transactions")
    task = Task(copy)
    feed(opened(at_gap=task), log(120, 1))
    while task.asked:
        task.step()
    assert copy.fillings == [50, 50, 20]


def before_a_gap(copy: Log) -> tuple[Task, Channel]:
    """Return a task that is asked to fill offsets 0 to 2, and the channel that asks."""
    task = Task(copy)
    channel = opened(at_gap=task)
    feed(channel, log(3, 2))
    return task, channel


def test_a_run_is_stored_before_anything_is_sent() -> None:
    copy = Log()
    copy.overrun = 2
    task, channel = before_a_gap(copy)
    task.step()
    assert [record.runs for record in copy.stored] == [Runs((Run(3, 2),))]
    assert send_all(channel)[0].landing == 5


@pytest.mark.parametrize("length", [20, 120])
def test_a_run_that_a_gap_heals_is_over_however_many_pieces_that_took(length: int) -> None:
    copy = Log("transactions")
    copy.end = 1
    copy.stored.append(CopyRecord(None, None, 0, Runs((Run(0, 1),))))
    task = Task(copy)
    channel = opened(1, shift=1, at_gap=task)
    feed(channel, log(length, 1))
    while task.asked:
        task.step()
    assert copy.stored[-1].runs == Runs((Run(0, 1), Run(length, 0)))
    assert (channel.shift, send_all(channel)[0].landing) == (0, length)


def test_who_is_not_the_owner_any_more_stores_nothing() -> None:
    copy = Log()
    copy.overrun = 2
    task, channel = before_a_gap(copy)
    copy.meanwhile.append(lambda: channel.reopen(OUTAGE, 0.0))
    task.step()
    assert copy.stored == []
    assert (channel.state, channel.position, channel.filling) == (PartitionState.OPENING, 0, False)


def test_a_record_of_another_topic_is_not_extended() -> None:
    copy = Log()
    copy.overrun = 1
    copy.stored.append(CopyRecord("old", "old", 50, Runs((Run(7, 50),))))
    task, _ = before_a_gap(copy)
    task.step()
    assert copy.stored[-1] == CopyRecord(None, None, 0, Runs((Run(3, 1),)))


@pytest.mark.parametrize(
    ("trouble", "state", "code"),
    [
        (ConnectionLost("cut"), PartitionState.OPENING, "AB220"),
        (NotFilled("somebody wrote"), PartitionState.OPENING, "AB220"),
        (KeyError("what nobody foresaw"), PartitionState.PARKED, "AB200"),
    ],
)
def test_whatever_fails_ends_this_opening_alone(trouble: Exception, state: PartitionState, code: str) -> None:
    copy = Log()
    copy.trouble.append(trouble)
    task, channel = before_a_gap(copy)
    task.step()
    assert channel.reason is not None
    assert (channel.state, channel.reason.code, channel.filling) == (state, code, False)
    assert channel.wants_opening(1e9)
