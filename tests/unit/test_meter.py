"""Meters: what is told of a partition's speed and age, from batch headers and clocks handed in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.latency import Latency
from reconciler.replicator.meter import Meter, Window

NOW = 1_800_000_000.0
NOW_MS = int(NOW * 1_000)
WEEK_MS = 7 * 24 * 3_600 * 1_000


def latency(meter: Meter, now: float = NOW) -> Latency | None:
    return meter.metrics(0, 0, None, now).latency


def behind(meter: Meter, position: int, end: int, oldest: int | None = None, now: float = NOW) -> float | None:
    return meter.metrics(position, end, oldest, now).lag_seconds


def test_a_new_meter_has_nothing_to_say() -> None:
    found = Meter().metrics(-1, -1, None, NOW)
    assert (found.records, found.bytes, found.latency, found.record_age, found.lag_seconds) == (0, 0, None, None, None)
    assert found.to_json() == {}


def test_it_counts_what_was_written() -> None:
    meter = Meter()
    assert meter.wrote(3, 300, NOW_MS - 20, NOW) == 20
    assert meter.wrote(1, 100, NOW_MS - 10, NOW) == 10
    found = meter.metrics(4, 4, None, NOW)
    assert (found.records, found.bytes) == (4, 400)
    assert found.latency == Latency(records=4, min=10, avg=18, p50=20, p99=20, max=20)


def test_latencies_are_forgotten_after_half_a_minute_and_counts_are_not() -> None:
    meter = Meter()
    meter.wrote(3, 300, NOW_MS - 20, NOW)
    assert latency(meter, NOW + 24.9) is not None
    assert latency(meter, NOW + 30) is None
    assert meter.records == 3


@given(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 10**6), st.integers(1, 9)), max_size=60))
def test_a_window_forgets_whole_slots_and_nothing_else(added: list[tuple[int, int, int]]) -> None:
    window = Window()
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
    window = Window()
    for second in range(100):
        window.add(second, 1, NOW + second)
    found = window.latency(NOW + 99)
    assert found is not None
    assert (found.min, found.max, found.records) == (70, 99, 30)


def test_a_clock_that_is_set_back_leaves_no_trace() -> None:
    meter = Meter()
    meter.wrote(3, 300, NOW_MS - 20, NOW)
    assert latency(meter, NOW - 3_600) is None
    meter.wrote(1, 100, NOW_MS - 3_600_000 - 7, NOW - 3_600)
    found = latency(meter, NOW - 3_600)
    assert found is not None
    assert (found.records, found.max) == (1, 7)


@pytest.mark.parametrize(("age", "told"), [(WEEK_MS, WEEK_MS), (-WEEK_MS, 0), (0, 0)])
def test_week_old_and_future_timestamps(age: int, told: int) -> None:
    meter = Meter()
    meter.read(NOW_MS - age, NOW)
    assert meter.wrote(1, 1, NOW_MS - age, NOW) == told
    found = meter.metrics(1, 2, NOW_MS - age, NOW)
    assert found.latency is not None
    assert found.latency.p99 == found.latency.max == told
    assert (found.record_age, found.lag_seconds) == (told, told / 1_000)


def test_records_without_timestamps_count_but_have_no_age() -> None:
    meter = Meter()
    meter.read(-1, NOW)
    assert meter.wrote(5, 50, -1, NOW) is None
    found = meter.metrics(5, 9, -1, NOW)
    assert (found.records, found.latency, found.record_age, found.lag_seconds) == (5, None, None, None)


def test_a_partition_that_has_caught_up_is_not_behind() -> None:
    meter = Meter()
    meter.wrote(1, 1, NOW_MS - WEEK_MS, NOW)
    assert behind(meter, 5, 5) == 0
    assert behind(meter, 6, 5) == 0


def test_the_lag_in_seconds_is_the_age_of_what_comes_next() -> None:
    meter = Meter()
    assert behind(meter, 5, 9) is None, "nothing was read and nothing copied yet"
    assert behind(meter, 5, 9, NOW_MS - 1_500) == 1.5
    assert behind(meter, 5, 9, None, NOW + 10) == 11.5, "its queue is gone, but its age is remembered"
    assert behind(meter, 6, 9, None, NOW + 10) is None, "of another record"


def test_before_it_is_read_the_last_copied_record_tells() -> None:
    meter = Meter()
    meter.wrote(1, 1, NOW_MS - 4_000, NOW)
    assert behind(meter, 5, 9) == 4.0
    assert behind(meter, 5, 9, NOW_MS - 3_000) == 3.0


@pytest.mark.parametrize(("position", "end"), [(-1, 5), (5, -1), (-1, -1)])
def test_an_unknown_position_is_an_unknown_lag(position: int, end: int) -> None:
    assert behind(Meter(), position, end, NOW_MS) is None


@given(st.lists(st.tuples(st.floats(0, 120), st.integers(-(10**13), 10**13)), max_size=200))
def test_its_memory_is_bounded_and_nothing_breaks_it(written: list[tuple[float, int]]) -> None:
    meter = Meter()
    for second, age in written:
        meter.wrote(1, 1, NOW_MS - age, NOW + second)
    found = latency(meter, NOW + 120)
    if found is not None:
        assert 0 <= found.min <= found.p50 <= found.p99 <= found.max
    assert meter.records == len(written)
