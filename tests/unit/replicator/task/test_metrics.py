"""Meters: what is told of a partition's speed and age, from batch headers and clocks handed in."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.tasks.latency import Latency
from reconciler.model.tasks.status import Metrics
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.task.metrics import LatencyWindow, PartitionMetrics, TaskMetrics
from tests.support.records.batches import DELETE_HORIZON, Content, build, marked
from tests.support.replicator.channels import OUTAGE, PLACE, SIDES, feed, opened, send_all

NOW = 1_800_000_000.0
NOW_MS = int(NOW * 1_000)
WEEK_MS = 7 * 24 * 3_600 * 1_000


def sent_batch(records: int, newest: int, size: int = 100) -> InFlightBatch:
    return InFlightBatch(0, 0, records, 0, records, newest, newest, size, b"", b"")


def timed(timestamp: int) -> Content:
    return Content(timestamp, b"key", b"value")


def told(meter: PartitionMetrics, channel: Channel | None = None, now: float = NOW, monotonic: float = 0.0) -> Metrics:
    return meter.metrics(channel or Channel(PLACE), now, monotonic)


def behind(end: int, *batches: tuple[int, int]) -> Channel:
    """Return a channel at offset 5 with an `end`, that has read batches of some records with a timestamp."""
    channel = opened(5)
    at = 5
    for count, timestamp in batches:
        feed(channel, build([timed(timestamp)] * count, at), end)
        at += count
    channel.end = end
    return channel


def test_a_new_meter_has_nothing_to_say() -> None:
    found = told(PartitionMetrics())
    assert found == Metrics()
    assert found.to_json() == {}


def test_it_counts_what_was_written() -> None:
    meter = PartitionMetrics()
    assert meter.wrote(sent_batch(3, NOW_MS - 20, 300), NOW) == 20
    assert meter.wrote(sent_batch(1, NOW_MS - 10, 100), NOW) == 10
    found = told(meter)
    assert (found.records, found.bytes) == (4, 400)
    assert found.latency == Latency(records=4, min=10, avg=18, p50=20, p99=20, max=20)


def test_what_an_open_transaction_holds_is_still_to_be_copied() -> None:
    channel = TranslatedChannel(PLACE, lambda _: None)
    channel.begin(SIDES, 100, (77, 0), OffsetMetadata())
    channel.position, channel.end = 200, 200
    channel.written = [sent_batch(100, NOW_MS - 9_000)]
    meter = PartitionMetrics()
    assert (channel.status().lag, told(meter, channel).lag_seconds) == (100, 9.0)
    channel.remember(200)
    channel.settled()
    assert (channel.status().lag, told(meter, channel).lag_seconds) == (0, 0.0)


def test_latencies_are_forgotten_after_half_a_minute_and_counts_are_not() -> None:
    meter = PartitionMetrics()
    meter.wrote(sent_batch(3, NOW_MS - 20), NOW)
    assert told(meter, now=NOW + 24.9).latency is not None
    assert told(meter, now=NOW + 30).latency is None
    assert told(meter, now=NOW + 30).records == 3


@given(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 10**6), st.integers(1, 9)), max_size=60))
def test_a_window_forgets_whole_slots_and_nothing_else(added: list[tuple[int, int, int]]) -> None:
    window = LatencyWindow()
    asked = NOW + 120
    for second, latency_ms, records in sorted(added):
        window.add(latency_ms, records, NOW + second)
        window.histogram(NOW + second)
    kept = [(latency_ms, records) for second, latency_ms, records in added if second >= 95]
    found = window.histogram(asked)
    if not kept:
        assert found is None
        return
    assert found is not None
    latencies = [latency_ms for latency_ms, _ in kept]
    assert (found.min, found.max) == (min(latencies), max(latencies))
    assert found.sum == sum(latency_ms * records for latency_ms, records in kept)
    assert sum(count for _, count in found.buckets) == sum(records for _, records in kept)
    assert window.latency(asked) == found.summary()
    assert window.histogram(asked + 30) is None


def test_the_window_slides() -> None:
    window = LatencyWindow()
    for second in range(100):
        window.add(second, 1, NOW + second)
    found = window.latency(NOW + 99)
    assert found is not None
    assert (found.min, found.max, found.records) == (70, 99, 30)


def test_a_clock_that_is_set_back_leaves_no_trace() -> None:
    meter = PartitionMetrics()
    meter.wrote(sent_batch(3, NOW_MS - 20), NOW)
    assert told(meter, now=NOW - 3_600).latency is None
    meter.wrote(sent_batch(1, NOW_MS - 3_600_000 - 7), NOW - 3_600)
    found = told(meter, now=NOW - 3_600).latency
    assert found is not None
    assert (found.records, found.max) == (1, 7)


@pytest.mark.parametrize(("age", "counted"), [(WEEK_MS, WEEK_MS), (-WEEK_MS, 0), (0, 0)])
def test_week_old_and_future_timestamps(age: int, counted: int) -> None:
    meter = PartitionMetrics()
    assert meter.wrote(sent_batch(1, NOW_MS - age), NOW) == counted
    found = told(meter, behind(9, (1, NOW_MS - age)))
    assert found.latency is not None
    assert found.latency.p99 == found.latency.max == counted
    assert (found.record_age, found.lag_seconds) == (counted, counted / 1_000)


def test_records_without_timestamps_count_but_have_no_age() -> None:
    meter = PartitionMetrics()
    assert meter.wrote(sent_batch(5, -1), NOW) is None
    found = told(meter, behind(9, (1, -1)))
    assert (found.records, found.latency, found.record_age, found.lag_seconds) == (5, None, None, None)


def test_the_record_age_is_that_of_the_moment_of_reading() -> None:
    channel = opened()
    feed(channel, build([timed(NOW_MS - 40)], 0), now=100.0)
    assert told(PartitionMetrics(), channel, NOW + 7, monotonic=107.0).record_age == 40


def test_a_partition_that_has_caught_up_is_not_behind() -> None:
    meter = PartitionMetrics()
    meter.wrote(sent_batch(1, NOW_MS - WEEK_MS), NOW)
    assert told(meter, behind(5)).lag_seconds == 0
    assert told(meter, behind(4)).lag_seconds == 0


def test_the_lag_in_seconds_is_the_age_of_what_comes_next() -> None:
    meter = PartitionMetrics()
    assert told(meter, behind(9)).lag_seconds is None, "nothing was read and nothing copied yet"
    channel = behind(9, (1, NOW_MS - 1_500), (1, NOW_MS - 200))
    assert told(meter, channel).lag_seconds == 1.5
    (first,) = send_all(channel)
    assert told(meter, channel).lag_seconds == 1.5, "in flight is not copied"
    channel.lost(first, OUTAGE, 0.0)
    assert told(meter, channel, NOW + 10).lag_seconds == 11.5, "its queue is gone, but its age is remembered"
    channel.position += 1
    assert told(meter, channel, NOW + 10).lag_seconds is None, "of another record"


def test_of_a_batch_in_the_queue_the_first_record_counts() -> None:
    channel = opened(5)
    feed(channel, build([timed(NOW_MS - 900), timed(NOW_MS - 100)], 5), 9)
    assert told(PartitionMetrics(), channel).lag_seconds == 0.9


def test_where_the_cleaner_has_put_its_horizon_the_newest_record_counts() -> None:
    channel = opened(5)
    feed(channel, marked(build([timed(NOW_MS - 900), timed(NOW_MS - 100)], 5), DELETE_HORIZON), 9)
    assert told(PartitionMetrics(), channel).lag_seconds == 0.1


def test_before_it_is_read_the_last_copied_record_tells() -> None:
    meter = PartitionMetrics()
    meter.wrote(sent_batch(1, NOW_MS - 4_000), NOW)
    assert told(meter, behind(9)).lag_seconds == 4.0
    assert told(meter, behind(9, (1, NOW_MS - 3_000))).lag_seconds == 3.0


@pytest.mark.parametrize(("position", "end"), [(-1, 5), (5, -1), (-1, -1)])
def test_an_unknown_position_is_an_unknown_lag(position: int, end: int) -> None:
    channel = Channel(PLACE)
    channel.position, channel.end = position, end
    assert told(PartitionMetrics(), channel).lag_seconds is None


def test_while_nothing_changes_a_status_is_made_once() -> None:
    """Of thousands of partitions, those that wait to be opened among them."""

    def ends(channel: Channel) -> None:
        channel.end = 7

    def parks(channel: Channel) -> None:
        channel.park(OUTAGE, 0.0)

    for channel, change in ((opened(5), ends), (Channel(PLACE), parks), (Channel(PLACE), Channel.pause)):
        channel.end = channel.position
        meter = PartitionMetrics()
        first = [meter.status(channel, NOW + at, float(at)) for at in range(3)]
        assert first[1] is first[2]
        assert first[2] == replace(channel.status(), metrics=first[0].metrics)
        change(channel)
        changed = meter.status(channel, NOW + 3, 3.0)
        assert (changed.state, changed.end, changed.reason) == (channel.state, channel.end, channel.reason)
        assert changed != first[2]


def test_retries_and_fills_are_counted_over_rounds() -> None:
    meter = PartitionMetrics()
    first = opened()
    first.reopen(OUTAGE, 0.0)
    first.park(OUTAGE, 0.0)
    first.filled_offsets = 7
    assert (told(meter, first).retries, told(meter, first).fills) == (2, 7)
    second = opened()
    assert (told(meter, second).retries, told(meter, second).fills) == (2, 7)
    second.reopen(OUTAGE, 0.0)
    second.filled_offsets = 1
    assert (told(meter, second).retries, told(meter, second).fills) == (3, 8)


def test_a_shifted_partition_says_how_far() -> None:
    channel = Channel(PLACE)
    channel.open(SIDES, LogEnd(12, 1, 0, 0, shift=2))
    assert told(PartitionMetrics(), channel).shifted == 2


def test_the_meters_of_a_task_add_up() -> None:
    meters = TaskMetrics()
    assert meters.latency() is None
    now_ms = int(time.time() * 1_000)
    for partition, age in ((0, 5_000), (1, 9_000), (1, 9_000)):
        latency = meters.wrote(Place("orders", partition, "east.orders"), sent_batch(2, now_ms - age), time.time())
        assert latency is not None
        assert latency >= age
    histogram = meters.latency()
    assert histogram is not None
    assert histogram.summary().records == 6
    found = meters.status(Channel(Place("orders", 1, "east.orders")))
    assert (found.topic, found.partition, found.metrics.records) == ("orders", 1, 4)
    assert found.metrics.latency is not None
    assert found.metrics.latency.min >= 9_000


@given(st.lists(st.tuples(st.floats(0, 120), st.integers(-(10**13), 10**13)), max_size=200))
def test_no_timestamp_breaks_it(written: list[tuple[float, int]]) -> None:
    meter = PartitionMetrics()
    for second, age in written:
        meter.wrote(sent_batch(1, NOW_MS - age), NOW + second)
    found = told(meter, now=NOW + 120)
    if found.latency is not None:
        assert 0 <= found.latency.min <= found.latency.p50 <= found.latency.p99 <= found.latency.max
    assert found.records == len(written)
