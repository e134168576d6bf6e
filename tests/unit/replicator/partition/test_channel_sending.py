"""A channel's sending side: the window, what the answers mean, and how a break is survived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.read_committed import Gap
from reconciler.replicator.partition.channel import WINDOW, Channel
from reconciler.replicator.partition.place import LogEnd
from reconciler.wire import ProduceAnswer
from tests.support.records.batches import decode
from tests.support.replicator.channels import (
    EPOCH,
    OUTAGE,
    PRODUCER_ID,
    SIDES,
    answer,
    feed,
    land,
    log,
    opened,
    send_all,
)

ONE_EACH = (1,) * 12


def running(start: int = 0) -> Channel:
    """Return a channel with twelve batches of one record, the first of them written."""
    channel = opened(start)
    feed(channel, log(start, *ONE_EACH))
    (first,) = send_all(channel)
    land(channel, first)
    return channel


def code(channel: Channel) -> str | None:
    return channel.reason.code if channel.reason else None


def test_the_first_batch_travels_alone() -> None:
    channel = opened()
    feed(channel, log(0, *ONE_EACH))
    (first,) = send_all(channel)
    assert len(channel.in_flight) == 1
    assert land(channel, first)
    assert channel.position == 1


def test_then_five_are_on_their_way_in_the_order_of_the_log() -> None:
    channel = running()
    sent = send_all(channel)
    assert [sent_batch.base_offset for sent_batch in sent] == [1, 2, 3, 4, 5]
    assert len(sent) == WINDOW == 5
    assert land(channel, sent[0])
    assert [sent_batch.base_offset for sent_batch in send_all(channel)] == [6]


def test_who_was_quiet_sends_one_alone_as_brokers_forget() -> None:
    channel = opened()
    feed(channel, log(0, *ONE_EACH))
    land(channel, channel.send(0, 100.0), now=100.0)
    channel.send(0, 104.0)
    assert channel.can_send()
    land(channel, channel.in_flight[0], now=104.0)
    # Anything may be in flight for long.
    first = channel.send(0, 110.0)
    assert not channel.can_send()
    land(channel, first, now=110.0)
    assert len(send_all(channel)) == WINDOW


def test_behind_a_gap_one_travels_alone() -> None:
    channel = opened(at_gap=lambda _: None)
    feed(channel, log(0, 1, 1))
    land(channel, channel.send())
    land(channel, channel.send())
    channel.queue.push(Gap(2, 5))
    channel.filled(channel.opening, 5, 5, 0.0)
    channel.fetch_at = 5
    feed(channel, log(5, *ONE_EACH))
    assert [sent_batch.base_offset for sent_batch in send_all(channel)] == [5]


def test_after_every_opening_the_first_travels_alone_again() -> None:
    channel = running()
    for sent_batch in send_all(channel):
        channel.lost(sent_batch, OUTAGE, 0.0)
    channel.open(SIDES, LogEnd(3, PRODUCER_ID, EPOCH, 3))
    feed(channel, log(3, *ONE_EACH))
    assert [sent_batch.base_offset for sent_batch in send_all(channel)] == [3]


def test_sending_makes_room_in_the_queue() -> None:
    channel = opened()
    feed(channel, log(0, 1, 2))
    before = channel.queued_bytes
    sent_batch = channel.send()
    assert channel.queued_bytes == before - sent_batch.size


@pytest.mark.parametrize("landed", [0, 2, 10**9])
def test_another_offset_than_its_own_ends_the_opening(landed: int) -> None:
    channel = running()
    sent_batch = channel.send()
    assert not channel.answered(sent_batch, answer(landed), 0.0)
    assert (channel.state, code(channel), channel.position) == (PartitionState.OPENING, "AB211", 1)
    assert not channel.queue.items
    assert channel.queued_bytes == 0
    assert not channel.can_send()
    assert not channel.wants_data()


@pytest.mark.parametrize(("error", "expected"), [(45, "AB221"), (47, "AB221"), (6, "AB220"), (7, "AB220")])
def test_errors_that_pass_open_anew(error: int, expected: str) -> None:
    channel = running()
    sent_batch = channel.send()
    assert not channel.answered(sent_batch, answer(error=error), 7.0)
    assert (channel.state, code(channel)) == (PartitionState.OPENING, expected)
    assert channel.retry_at == 7.0 + 0.05


@pytest.mark.parametrize(
    ("error", "expected"),
    [(10, "AB212"), (18, "AB212"), (29, "AB213"), (31, "AB213"), (32, "AB217"), (44, "AB217"), (87, "AB217")],
)
def test_errors_that_need_somebody_park(error: int, expected: str) -> None:
    channel = running()
    sent_batch = channel.send()
    assert not channel.answered(sent_batch, answer(error=error), 7.0)
    assert (channel.state, code(channel)) == (PartitionState.PARKED, expected)
    assert channel.retry_at == 7.0 + 2.0


def test_a_batch_that_is_too_large_is_told_with_its_size() -> None:
    channel = running()
    sent_batch = channel.send()
    channel.answered(sent_batch, answer(error=10), 0.0)
    assert f"{sent_batch.size:,} bytes" in str(channel.reason)


def test_nothing_is_opened_before_all_answers_are_in() -> None:
    channel = running()
    first, *others = send_all(channel)
    channel.answered(first, answer(error=45), 0.0)
    for sent_batch in others:
        assert not channel.wants_opening(1e9)
        channel.answered(sent_batch, answer(error=45), 0.0)
    assert channel.wants_opening(1e9)
    channel.busy = True
    assert not channel.wants_opening(1e9)


@pytest.mark.parametrize("late", [answer(2), answer(99), answer(error=10), answer(error=29), answer(error=45)])
def test_answers_of_an_older_opening_change_nothing(late: ProduceAnswer) -> None:
    channel = running()
    first, second, *_ = send_all(channel)
    channel.lost(first, OUTAGE, 3.0)
    before = (channel.state, channel.reason, channel.position, channel.retry_at, channel.opening)
    landed = late.error == 0 and late.base_offset == second.base_offset
    assert channel.answered(second, late, 4.0) == landed, "what landed is counted, and nothing else happens"
    assert (channel.state, channel.reason, channel.position, channel.retry_at, channel.opening) == before
    assert second not in channel.in_flight


def test_losing_a_batch_of_an_older_opening_changes_nothing() -> None:
    channel = running()
    first, second, *_ = send_all(channel)
    channel.answered(first, answer(error=29), 0.0)
    channel.lost(second, OUTAGE, 0.0)
    assert (channel.state, code(channel)) == (PartitionState.PARKED, "AB213")


def test_pauses_grow_and_begin_small_again_after_a_success() -> None:
    channel = opened()
    pauses = []
    for _ in range(10):
        channel.reopen(OUTAGE, 100.0)
        pauses.append(round(channel.retry_at - 100.0, 6))
        channel.open(SIDES, LogEnd(0, PRODUCER_ID, EPOCH, 0))
    assert pauses[:4] == [0.05, 0.1, 0.2, 0.4]
    assert pauses[-1] == 5.0
    feed(channel, log(0, 1))
    (sent_batch,) = send_all(channel)
    land(channel, sent_batch)
    channel.reopen(OUTAGE, 100.0)
    assert channel.retry_at == 100.05


def test_parking_after_an_outage_begins_with_its_own_short_pause() -> None:
    channel = opened()
    for _ in range(10):
        channel.reopen(OUTAGE, 0.0)
    channel.park(Reason("AB214", "topic east.orders does not exist at the target"), 100.0)
    assert channel.retry_at == 102.0
    channel.park(Reason("AB214", "topic east.orders does not exist at the target"), 200.0)
    assert channel.retry_at == 204.0


def test_opening_clears_the_reason_and_goes_on_from_the_log() -> None:
    channel = running()
    channel.park(Reason("AB213", "WRITE is refused"), 0.0)
    channel.open(SIDES, LogEnd(7, 78, 2, 500))
    assert (channel.state, channel.reason, channel.position) == (PartitionState.RUNNING, None, 7)
    feed(channel, log(7, 2))
    sent = channel.send()
    (found,) = decode(sent.head + sent.body)
    assert found.producer == (78, 2, 500)


class _Target:
    """A target's log of one partition as a broker keeps it: sequences checked, repeats recognised."""

    def __init__(self) -> None:
        self.end = 0
        self.sequence = 0
        self.recent: dict[int, int] = {}

    def append(self, data: bytes) -> int | None:
        """Return the base offset, or None for a sequence out of order."""
        (found,) = decode(data)
        sequence, count = found.producer[2], len(found.contents)
        if sequence in self.recent:
            return self.recent[sequence]
        if sequence != self.sequence:
            return None
        base = self.end
        self.recent = dict(list({**self.recent, sequence: base}.items())[-WINDOW:])
        self.end, self.sequence = base + count, sequence + count
        return base


fates = st.lists(st.sampled_from(["landed", "landed", "lost before", "lost behind"]), max_size=40)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=15), fates)
def test_whatever_breaks_each_record_stands_at_its_own_offset_once(counts: list[int], fates: list[str]) -> None:
    """Batches and answers are lost at will; what the target takes always begins at the source's own offset."""
    source = [(sum(counts[:n]), count) for n, count in enumerate(counts)]
    target, channel, left = _Target(), opened(), iter(fates)
    rounds = 0
    while channel.position < sum(counts):
        rounds += 1
        assert rounds <= len(counts) + 2 * len(fates) + 1, "no progress"
        if channel.wants_opening(1e9):
            channel.open(SIDES, LogEnd(target.end, PRODUCER_ID, EPOCH, target.sequence))
        if channel.wants_data():
            feed(channel, b"".join(log(*batch) for batch in source if sum(batch) > channel.fetch_at), sum(counts))
        for sent_batch in send_all(channel):
            fate = next(left, "landed")
            landed = None if fate == "lost before" else target.append(sent_batch.head + sent_batch.body)
            assert landed in (None, sent_batch.base_offset)
            if fate == "landed":
                channel.answered(sent_batch, answer(error=45) if landed is None else answer(landed), 0.0)
            else:
                channel.lost(sent_batch, OUTAGE, 0.0)
    assert target.end == sum(counts)
