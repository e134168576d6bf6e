"""Latency histograms: within the stated resolution of exact figures, bounded, merged without loss."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.tasks.latency import BUCKETS, Histogram, bucket_of, merged, middle_of, percentiles

# Some milliseconds, some minutes, a backlog of years; a batch counts with all its records.
milliseconds = st.integers(0, 100) | st.integers(0, 10**6) | st.integers(0, 2**41)
batches = st.lists(st.tuples(milliseconds, st.integers(1, 5_000)), min_size=1, max_size=60)
RESOLUTION = 1 / 32


def histogram(measured: Sequence[tuple[int, int]]) -> Histogram:
    counts: dict[int, int] = {}
    for latency, records in measured:
        counts[bucket_of(latency)] = counts.get(bucket_of(latency), 0) + records
    latencies = [latency for latency, _ in measured]
    total = sum(latency * records for latency, records in measured)
    return Histogram.of(counts, total, min(latencies), max(latencies))


def exact(measured: Sequence[tuple[int, int]], percent: int) -> int:
    """The nearest rank among all records, in whole numbers."""
    rank = max(1, -(-sum(records for _, records in measured) * percent // 100))
    for latency, records in sorted(measured):
        rank -= records
        if rank <= 0:
            return latency
    raise AssertionError


@given(batches, st.integers(0, 100))
def test_percentiles_are_as_near_as_stated(measured: list[tuple[int, int]], percent: int) -> None:
    (told,), true = percentiles(dict(histogram(measured).buckets), [percent]), exact(measured, percent)
    assert abs(told - true) <= true * RESOLUTION
    if true < 32:
        assert told == true


@given(batches)
def test_the_other_figures_are_exact(measured: list[tuple[int, int]]) -> None:
    found = histogram(measured).summary()
    records = sum(count for _, count in measured)
    assert (found.records, found.min, found.max) == (records, min(measured)[0], max(measured)[0])
    assert found.avg == round(sum(latency * count for latency, count in measured) / records)
    assert found.min <= found.p50 <= found.p99 <= found.max


@given(st.lists(batches, min_size=1, max_size=5))
def test_merging_is_counting_together(parts: list[list[tuple[int, int]]]) -> None:
    whole = histogram([one for part in parts for one in part])
    assert merged([None, *map(histogram, parts)]) == whole


def test_nothing_merged_is_nothing() -> None:
    assert merged([]) is None
    assert merged([None, None]) is None


@given(st.integers(-(2**50), 2**62))
def test_there_are_few_buckets(latency: int) -> None:
    assert 0 <= bucket_of(latency) < BUCKETS < 700


def test_every_bucket_is_reached_and_none_goes_back() -> None:
    middles = [middle_of(bucket) for bucket in range(BUCKETS)]
    assert middles == sorted(set(middles))
    assert [bucket_of(middle) for middle in middles] == list(range(BUCKETS))


@pytest.mark.parametrize(("latency", "told"), [(-5, 0), (0, 0), (31, 31), (32, 32), (64, 65), (1_000, 1_007)])
def test_some_middles(latency: int, told: int) -> None:
    assert middle_of(bucket_of(latency)) == told


@given(batches)
def test_it_is_made_of_json_types(measured: list[tuple[int, int]]) -> None:
    one = histogram(measured)
    back = json.loads(json.dumps([one.buckets, one.sum, one.min, one.max]))
    assert Histogram(tuple(map(tuple, back[0])), *back[1:]) == one
