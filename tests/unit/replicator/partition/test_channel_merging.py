"""A channel that merges small batches: sequence numbers and offsets count records, whatever batches they travel in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import LogEnd
from tests.support.records.batches import Content, build, decode
from tests.support.replicator.channels import PLACE, SIDES, answer, feed, land, log, opened, send_all

MESSAGE_TOO_LARGE = 10
# More than any batch here has.
LARGE = 1_000_000


def merging(batch_size: int = 256 * 1024, sequence: int = 0) -> Channel:
    channel = Channel(PLACE, batch_size=batch_size)
    channel.open(SIDES, LogEnd(0, 77, 0, sequence))
    return channel


def test_what_waits_travels_together() -> None:
    channel = merging()
    feed(channel, log(0, 1))
    (first,) = send_all(channel)
    feed(channel, log(1, *(1,) * 9))
    assert land(channel, first)
    (rest,) = send_all(channel)
    assert (rest.base_offset, rest.next_offset, rest.landing, rest.records) == (1, 10, 1, 9)
    (sent,) = decode(rest.head + rest.body)
    assert (sent.producer, sent.offset_deltas, sent.crc_is_valid) == ((77, 0, 1), tuple(range(9)), True)
    assert land(channel, rest)
    assert (channel.position, channel.queued_bytes) == (10, 0)


def test_over_a_long_round_trip_larger_batches_travel_together_as_well() -> None:
    channel = merging()
    feed(channel, log(0, 62))
    land(channel, channel.send())
    feed(channel, log(62, 62, 1, 62))
    assert channel.send().records == 62
    whole = channel.send(LARGE)
    assert (whole.base_offset, whole.next_offset, whole.records) == (124, 187, 63)


def large_log(base_offset: int, count: int) -> bytes:
    """Return so many batches of 30 records and 30 KB."""
    contents = [Content(1_000, None, b"x" * 1_000)] * 30
    return b"".join(build(contents, base_offset + 30 * number) for number in range(count))


def test_a_full_window_over_a_long_line_takes_larger_batches() -> None:
    channel = merging()
    feed(channel, large_log(0, 60))
    land(channel, channel.send())
    near, far = channel.send(LARGE), channel.send(LARGE, 0.0, is_far=True)
    assert 200_000 < near.size <= 256 * 1024 < 700_000 < far.size <= 768 * 1024
    # A declared size is never exceeded.
    declared = merging(128 * 1024)
    feed(declared, large_log(0, 20))
    land(declared, declared.send())
    assert declared.send(LARGE, 0.0, is_far=True).size <= 128 * 1024


def test_a_target_that_takes_no_larger_batch_gets_the_usual_ones() -> None:
    """It may take less than a megabyte (max.message.bytes), and what the source has taken all the same."""
    channel = merging()
    feed(channel, large_log(0, 60))
    assert land(channel, channel.send())
    far = channel.send(LARGE, 0.0, is_far=True)
    assert not channel.answered(far, answer(error=MESSAGE_TOO_LARGE), 0.0)
    assert channel.status().state is PartitionState.OPENING
    channel.open(SIDES, LogEnd(30, 77, 0, 30))
    feed(channel, large_log(30, 58))
    assert land(channel, channel.send(LARGE, 0.0, is_far=True))
    usual = channel.send(LARGE, 0.0, is_far=True)
    assert 200_000 < usual.size <= 256 * 1024
    # Nothing else is divided for that.
    assert not channel.answered(usual, answer(error=MESSAGE_TOO_LARGE), 0.0)
    channel.open(SIDES, LogEnd(30, 77, 0, 30))
    feed(channel, large_log(30, 58))
    assert {item.size for item in channel.queue.items} == {len(large_log(0, 1))}


def test_a_target_that_takes_no_merged_batch_gets_the_sources_own() -> None:
    channel = merging()
    feed(channel, log(0, *(1,) * 9))
    (merged,) = send_all(channel)
    assert not channel.answered(merged, answer(error=MESSAGE_TOO_LARGE), 0.0)
    assert channel.status().state is PartitionState.OPENING
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    feed(channel, log(0, *(1,) * 9))
    fewer = channel.send()
    assert 1 < fewer.records < merged.records
    assert not channel.answered(fewer, answer(error=MESSAGE_TOO_LARGE), 0.0)
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    feed(channel, log(0, 1, 1))
    first = channel.send()
    assert first.records == 1
    # A single record that is too large needs somebody.
    assert not channel.answered(first, answer(error=MESSAGE_TOO_LARGE), 0.0)
    found = channel.status()
    assert (found.state, found.reason and found.reason.code) == (PartitionState.PARKED, "AB212")


def test_of_several_that_are_refused_together_the_first_decides() -> None:
    channel = merging(0)
    feed(channel, log(0, 8))
    assert land(channel, channel.send())
    feed(channel, log(8, 64, 8, 200))
    first, *others = send_all(channel)
    for sent_batch in (first, *others):
        assert not channel.answered(sent_batch, answer(error=MESSAGE_TOO_LARGE), 0.0)
    channel.open(SIDES, LogEnd(8, 77, 0, 8))
    feed(channel, log(8, 64, 8, 200))
    sizes = [item.size for item in channel.queue.items]
    # Half of the last one would be more, half of the second one much less.
    assert first.size // 4 < max(sizes) <= first.size // 2


def test_a_batch_that_is_too_large_is_divided() -> None:
    channel = merging(0)
    whole = log(0, 64)
    feed(channel, whole)
    (first,) = send_all(channel)
    assert not channel.answered(first, answer(error=MESSAGE_TOO_LARGE), 0.0)
    assert (channel.state, channel.reason and channel.reason.code) == (PartitionState.OPENING, "AB220")
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    feed(channel, whole)
    found: list[int] = []
    while channel.queue.items:
        sent_batch = channel.send()
        assert sent_batch.size <= first.size // 2
        found.append(sent_batch.records)
        assert land(channel, sent_batch)
    assert (sum(found), channel.position) == (64, 64)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(0, 3_000), st.data())
@settings(deadline=None)
def test_everything_arrives_once_in_order_whatever_is_merged(
    counts: list[int], batch_size: int, data: st.DataObject
) -> None:
    whole, channel = log(0, *counts), merging(batch_size, 2**31 - 3)
    feed(channel, whole)
    contents: list[Content] = []
    sequence, position = 2**31 - 3, 0
    while channel.queue.items or channel.in_flight:
        if channel.can_send() and (not channel.in_flight or data.draw(st.booleans())):
            sent_batch = channel.send(data.draw(st.sampled_from((0, 100, LARGE))))
            (sent,) = decode(sent_batch.head + sent_batch.body)
            assert sent.producer == (77, 0, sequence)
            assert sent_batch.base_offset == sent_batch.landing == position
            sequence, position = (sequence + sent_batch.records) % 2**31, sent_batch.next_offset
            contents += sent.contents
        else:
            assert land(channel, channel.in_flight[0])
    assert contents == [content for batch in decode(whole) for content in batch.contents]
    assert (channel.position, channel.queued_bytes) == (sum(counts), 0)


def test_nothing_is_merged_unless_told() -> None:
    channel = opened()
    feed(channel, log(0, 1, 1))
    assert [sent_batch.records for sent_batch in send_all(channel)] == [1]
