"""A channel's reading side: what it takes in, under which sequence numbers, and where it stops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.tasks.status import PartitionState
from reconciler.records.batch import LARGE, SEQUENCE_MODULUS, Batch
from reconciler.replicator.partition.channel import QUEUE_BYTES, Channel
from reconciler.replicator.partition.place import LogEnd
from tests.support.records.batches import CODECS, ZSTD, Content, build, damaged, decode, marked, some
from tests.support.replicator.channels import (
    AT,
    CANNOT_PASS,
    EPOCH,
    OUTAGE,
    PLACE,
    PRODUCER_ID,
    SIDES,
    answer,
    feed,
    fetched,
    land,
    log,
    opened,
    send_all,
)


def test_a_new_channel_wants_to_be_opened_and_nothing_else() -> None:
    channel = Channel(PLACE)
    assert channel.state is PartitionState.OPENING
    assert channel.wants_opening(0.0)
    assert not channel.wants_data()
    assert not channel.can_send()
    assert channel.status().lag is None


def test_an_open_channel_asks_at_the_targets_log_end() -> None:
    channel = opened(end=12)
    assert (channel.state, channel.position, channel.fetch_at) == (PartitionState.RUNNING, 12, 12)
    assert channel.wants_data()
    assert not channel.wants_opening(1e9)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 10**12), st.integers(0, 2**31 - 1))
def test_every_batch_is_sent_with_the_next_sequence(counts: list[int], start: int, sequence: int) -> None:
    channel = opened(start, sequence)
    assert feed(channel, log(start, *counts)) == len(counts)
    assert channel.fetch_at == start + sum(counts)
    assert channel.queued_bytes == len(log(start, *counts))
    base = start
    while channel.queue.items:
        (sent_batch,) = send_all(channel)[:1]
        (found,) = decode(sent_batch.head + sent_batch.body)
        assert found.producer == (PRODUCER_ID, EPOCH, (sequence + base - start) % SEQUENCE_MODULUS)
        assert (sent_batch.base_offset, sent_batch.next_offset) == (base, base + sent_batch.records)
        assert sent_batch.newest == found.max_timestamp
        land(channel, sent_batch)
        base = sent_batch.next_offset
        while channel.in_flight:
            (found,) = decode(channel.in_flight[0].head + channel.in_flight[0].body)
            assert found.producer[2] == (sequence + base - start) % SEQUENCE_MODULUS
            base = channel.in_flight[0].next_offset
            land(channel, channel.in_flight[0])
    assert channel.position == base == start + sum(counts)


def test_batches_below_the_position_are_passed_over() -> None:
    channel = opened(end=4)
    assert feed(channel, log(0, 2, 2, 3)) == 1
    assert [item.base_offset for item in channel.queue.items if isinstance(item, Batch)] == [4]


def test_an_answer_to_another_question_is_ignored() -> None:
    channel = opened()
    feed(channel, log(0, 2), stable=9)
    assert channel.receive(fetched(log(0, 2), 11), 0, channel.opening, 0.0) == 0
    assert channel.receive(fetched(log(2, 2), 11), 2, channel.opening + 1, 0.0) == 0
    assert (channel.fetch_at, channel.end, len(channel.queue.items)) == (2, 9, 1)


def test_the_end_is_the_last_stable_offset_and_gives_the_lag() -> None:
    channel = opened(end=10)
    assert channel.status().lag == 0
    feed(channel, log(10, 5), stable=40)
    assert channel.end == 40
    assert channel.status().lag == 30
    feed(channel, b"", stable=-1)
    assert channel.end == 40


def test_a_full_queue_asks_for_no_more_until_there_is_room() -> None:
    channel = opened()
    big = (Content(1_000, None, b"x" * (QUEUE_BYTES // 4)),)
    while channel.wants_data():
        feed(channel, build(big, channel.fetch_at))
    assert len(channel.queue.items) == 4
    assert channel.queued_bytes >= QUEUE_BYTES
    channel.send()
    assert channel.wants_data()


@pytest.mark.parametrize("code", CANNOT_PASS)
def test_a_batch_that_cannot_pass_parks_at_once_when_nothing_is_before_it(code: str) -> None:
    channel = opened(end=AT)
    assert feed(channel, CANNOT_PASS[code] + log(AT + 2, 1), now=100.0) == 0
    assert (channel.state, channel.position) == (PartitionState.PARKED, AT)
    assert channel.reason is not None
    assert channel.reason.code == code
    assert not channel.wants_data()
    assert not channel.wants_opening(101.9)
    assert channel.wants_opening(102.0)


@pytest.mark.parametrize("code", CANNOT_PASS)
def test_what_was_read_before_a_batch_that_cannot_pass_is_written_first(code: str) -> None:
    channel = opened(end=AT - 4)
    assert feed(channel, log(AT - 4, 1, 3) + CANNOT_PASS[code]) == 2
    assert channel.state is PartitionState.RUNNING
    assert not channel.wants_data()
    assert feed(channel, log(AT, 2)) == 0
    (first,) = send_all(channel)
    assert land(channel, first)
    assert channel.state is PartitionState.RUNNING
    (second,) = send_all(channel)
    assert land(channel, second, now=50.0)
    assert (channel.state, channel.position, channel.retry_at) == (PartitionState.PARKED, AT, 52.0)
    assert channel.reason is not None
    assert channel.reason.code == code


def test_a_break_before_the_blocking_batch_is_reached_forgets_it() -> None:
    channel = opened(end=AT - 1)
    feed(channel, log(AT - 1, 1) + CANNOT_PASS["AB216"])
    (sent_batch,) = send_all(channel)
    channel.lost(sent_batch, OUTAGE, 0.0)
    assert (channel.state, channel.reason) == (PartitionState.OPENING, OUTAGE)
    channel.open(SIDES, LogEnd(AT - 1, PRODUCER_ID, EPOCH, 0))
    assert channel.wants_data()
    assert feed(channel, log(AT - 1, 1)) == 1


def test_parking_again_takes_longer_each_time() -> None:
    pauses = []
    channel = opened(end=AT)
    for _ in range(12):
        feed(channel, CANNOT_PASS["AB216"], now=1_000.0)
        pauses.append(channel.retry_at - 1_000.0)
        channel.open(SIDES, LogEnd(AT, PRODUCER_ID, EPOCH, 0))
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert max(pauses) == pauses[-1] == 300.0


def test_parking_begins_with_a_short_pause_after_records_were_written() -> None:
    channel = opened(end=AT)
    for _ in range(5):
        feed(channel, CANNOT_PASS["AB216"])
        channel.open(SIDES, LogEnd(AT, PRODUCER_ID, EPOCH, 0))
    feed(channel, log(AT, 2) + damaged(build(some(1), AT + 2)))
    (sent_batch,) = send_all(channel)
    land(channel, sent_batch, now=10.0)
    assert channel.state is PartitionState.PARKED
    assert channel.retry_at == 12.0


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_begins_earlier_is_cut(codec: int) -> None:
    channel = opened(end=2)
    feed(channel, build(some(5), 0, codec) + log(5, 1))
    (sent_batch,) = send_all(channel)
    (found,) = decode(sent_batch.head + sent_batch.body)
    assert (sent_batch.base_offset, sent_batch.next_offset, sent_batch.landing) == (2, 5, 2)
    assert found.contents == some(5)[2:]


def test_a_batch_that_cannot_be_cut_parks() -> None:
    channel = opened(end=2)
    broken = marked(build(some(5), 0), ZSTD)
    feed(channel, broken)
    assert channel.reason is not None
    assert (channel.state, channel.reason.code) == (PartitionState.PARKED, "AB207")


@pytest.mark.parametrize("error", [2, 10, 45, 87])
def test_what_is_damaged_and_refused_is_read_again_and_told(error: int) -> None:
    """Of a large batch the target looks at the checksum; whatever it says, nothing damaged is put aside or divided."""
    refused: list[object] = []
    channel = Channel(PLACE, refused=lambda *told: refused.append(told))
    channel.open(SIDES, LogEnd(AT, PRODUCER_ID, EPOCH, 0))
    data = damaged(build([Content(1_000, b"key", b"v" * LARGE)], AT))
    feed(channel, data)
    (sent_batch,) = send_all(channel)
    assert not sent_batch.is_intact
    assert not channel.answered(sent_batch, answer(error=error), 1.0)
    assert (channel.state, channel.reason and channel.reason.code) == (PartitionState.OPENING, "AB220")
    channel.open(SIDES, LogEnd(AT, PRODUCER_ID, EPOCH, 0))
    feed(channel, data)
    assert (channel.state, channel.reason and channel.reason.code) == (PartitionState.PARKED, "AB216")
    assert (channel.position, refused) == (AT, [])


def test_what_was_damaged_on_its_way_here_goes_on_when_it_was_read_again() -> None:
    channel = opened(end=AT)
    data = build([Content(1_000, b"key", b"v" * LARGE)], AT)
    feed(channel, damaged(data))
    (sent_batch,) = send_all(channel)
    assert not channel.answered(sent_batch, answer(error=2), 1.0)
    channel.open(SIDES, LogEnd(AT, PRODUCER_ID, EPOCH, 0))
    feed(channel, data)
    (sent_batch,) = send_all(channel)
    assert sent_batch.is_intact
    land(channel, sent_batch)
    assert channel.position == AT + 1
