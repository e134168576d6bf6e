"""A channel's gaps: filled when nothing is in flight, in pieces, and what a filling that came out too long means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.tasks.status import PartitionState
from reconciler.records.read_committed import Gap
from reconciler.replicator.partition.channel import QUEUE_BYTES, SLOW_BYTES
from reconciler.replicator.partition.place import LogEnd
from tests.support.records.batches import Content, build, compacted, damaged
from tests.support.replicator.channels import (
    EPOCH,
    OUTAGE,
    PRODUCER_ID,
    SIDES,
    Gapped,
    answer,
    feed,
    fetched,
    land,
    log,
    opened,
    send_all,
)


def test_a_gap_is_asked_for_when_all_before_it_is_answered() -> None:
    asked = Gapped()
    channel = opened(at_gap=asked)
    feed(channel, log(0, 1, 2) + log(8, 2))
    (first,) = send_all(channel)
    land(channel, first)
    (second,) = send_all(channel)
    assert not asked.asked
    assert not channel.can_send(), "a gap is not sent"
    land(channel, second)
    assert asked.asked == [channel]
    assert channel.filling
    assert not channel.wants_opening(1e9)
    gap, log_end = channel.gap()
    assert (gap, log_end.end) == (Gap(3, 8), 3)
    channel.filled(channel.opening, 8, 8, 0.0)
    assert (channel.position, channel.filled_offsets, channel.shift, channel.filling) == (8, 5, 0, False)
    (third,) = send_all(channel)
    assert (third.base_offset, third.landing) == (8, 8)


def test_a_gap_at_the_start_is_asked_for_at_once_and_others_join_it() -> None:
    asked = Gapped()
    channel = opened(at_gap=asked)
    feed(channel, log(4, 1))
    assert asked.asked == [channel]
    assert channel.gap()[0] == Gap(0, 4)


def test_behind_a_gap_little_is_kept_and_the_rest_is_read_again() -> None:
    """Many partitions whose gaps take long would leave no room for the others."""
    asked = Gapped()
    channel = opened(at_gap=asked)
    large = [build([Content(1_000, None, b"x" * (SLOW_BYTES // 2))], at) for at in range(5, 13)]
    feed(channel, log(0, 1) + b"".join(large))
    assert channel.queued_bytes > 3 * SLOW_BYTES
    assert (channel.fetch_at, channel.is_slow) == (13, False)
    land(channel, channel.send())
    assert asked.asked == [channel]
    assert (channel.fetch_at, channel.is_slow, channel.wants_data()) == (6, True, False)
    assert channel.queued_bytes < SLOW_BYTES
    # An answer to what was asked before is let in and changes nothing.
    assert channel.receive(fetched(log(13, 1)), 13, channel.opening, 0.0) == 0
    feed(channel, large[1])
    assert (channel.fetch_at, channel.wants_data()) == (7, False)
    channel.filled(channel.opening, 5, 5, 0.0)
    landed = []
    while channel.position < 13:
        if channel.wants_data() and channel.fetch_at < 13:
            feed(channel, large[channel.fetch_at - 5])
        landed.append(channel.send())
        land(channel, landed[-1])
    assert [sent_batch.landing for sent_batch in landed] == list(range(5, 13))
    assert channel.is_slow
    for at in range(13, 13 + 2 * QUEUE_BYTES // SLOW_BYTES):
        feed(channel, build([Content(1_000, None, b"x" * (SLOW_BYTES // 2))], at))
        land(channel, channel.send())
    assert not channel.is_slow


def test_a_batch_with_many_holes_is_not_read_again_for_each() -> None:
    """The broker sends it whole again, and it is rewritten again."""
    contents = [Content(1_000, None, b"x" * 3_000)] * 400
    whole = compacted(contents, range(0, 400, 4))
    channel = opened(at_gap=Gapped())
    read = filled = 0
    while channel.position < 400:
        if channel.wants_data() and channel.fetch_at < 400:
            feed(channel, whole)
            read += 1
        elif channel.filling:
            gap, log_end = channel.gap()
            channel.filled(channel.opening, gap.next, log_end.end + gap.size, 0.0)
            filled += 1
        else:
            land(channel, channel.send())
    assert (filled, channel.shift) == (100, 0)
    assert read < 10


def test_a_batch_that_cannot_pass_is_found_again_when_it_was_forgotten() -> None:
    channel = opened(at_gap=Gapped())
    large = [build([Content(1_000, None, b"x" * SLOW_BYTES)], at) for at in (3, 4)]
    feed(channel, b"".join(large) + damaged(log(5, 1)))
    assert (channel.fetch_at, channel.wants_data()) == (4, False)
    channel.filled(channel.opening, 3, 3, 0.0)
    land(channel, channel.send())
    feed(channel, large[1] + damaged(log(5, 1)))
    land(channel, channel.send())
    assert (channel.state, channel.position) == (PartitionState.PARKED, 5)


def test_a_piece_leaves_the_rest_to_be_asked_for_again() -> None:
    asked = Gapped()
    channel = opened(at_gap=asked)
    feed(channel, log(9, 1))
    channel.filled(channel.opening, 5, 5, 0.0)
    assert asked.asked == [channel, channel]
    assert channel.gap()[0] == Gap(5, 9)
    assert (channel.position, channel.shift) == (5, 0)


def test_a_filling_that_came_out_too_long_shifts_what_follows() -> None:
    channel = opened(at_gap=Gapped())
    feed(channel, log(3, 2, 1))
    channel.filled(channel.opening, 3, 5, 0.0)
    assert (channel.position, channel.shift) == (3, 2)
    (first,) = send_all(channel)
    assert (first.base_offset, first.next_offset, first.landing) == (3, 5, 5)
    assert channel.answered(first, answer(5), 0.0)
    (second,) = send_all(channel)
    assert (second.base_offset, second.landing) == (5, 7)
    assert not channel.answered(second, answer(5), 0.0), "its source offset is not where it must land"
    assert channel.state is PartitionState.OPENING


def test_a_result_of_an_older_opening_changes_nothing() -> None:
    channel = opened(at_gap=Gapped())
    feed(channel, log(3, 2))
    opening = channel.opening
    channel.reopen(OUTAGE, 0.0)
    assert not channel.wants_opening(1e9), "somebody still fills"
    channel.filled(opening, 3, 3, 0.0)
    assert (channel.state, channel.position, channel.filled_offsets) == (PartitionState.OPENING, 0, 0)
    assert channel.wants_opening(1e9)


def test_a_result_while_paused_changes_nothing() -> None:
    channel = opened(at_gap=Gapped())
    feed(channel, log(3, 2))
    channel.pause()
    channel.filled(channel.opening, 3, 3, 0.0)
    assert (channel.state, channel.position) == (PartitionState.PAUSED, 0)


def test_lost_records_are_a_gap_to_begin_with() -> None:
    asked = Gapped()
    channel = opened(at_gap=asked)
    channel.reopen(OUTAGE, 0.0)
    channel.open(SIDES, LogEnd(10, PRODUCER_ID, EPOCH, 10), Gap(10, 25))
    assert channel.gap()[0] == Gap(10, 25)
    assert channel.fetch_at == 25
    assert asked.asked == [channel]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=12))
def test_every_batch_lands_at_the_end_of_what_was_written_before(stretches: list[tuple[int, int, int]]) -> None:
    """Batches and gaps in any order, fillings too long at will: each batch must land at the target's log end."""
    data, source = b"", 0
    overruns = []
    for count, missing, overrun in stretches:
        data += log(source, count)
        source += count + missing
        if missing:
            overruns.append(overrun)
    data += log(source, 1)
    channel = opened(at_gap=Gapped())
    feed(channel, data, stable=source + 1)
    end = 0
    while channel.position < source + 1:
        if channel.filling:
            gap, log_end = channel.gap()
            assert log_end.end == end
            overrun = overruns.pop(0)
            end = gap.next + overrun if end < gap.next else end
            channel.filled(channel.opening, gap.next, end, 0.0)
        for sent_batch in send_all(channel):
            assert sent_batch.landing == end
            end += sent_batch.records
            assert land(channel, sent_batch)
    assert channel.state is PartitionState.RUNNING
