"""What tasks say of themselves: lag, liveness, JSON and back, and which runs are the newest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.base.shape import Misfit
from reconciler.model.tasks.latency import BUCKETS, Histogram, Latency
from reconciler.model.tasks.status import (
    NO_METRICS,
    STALE_SECONDS,
    Metrics,
    PartitionState,
    PartitionStatus,
    Reason,
    TaskStatus,
)
from reconciler.state.status import newest_runs

names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=10)
offsets = st.integers(-1, 2**62)
numbers = st.floats(0, 1e9)
counts = st.integers(0, 2**50)
metrics = st.builds(
    Metrics,
    *(counts, counts, st.none() | st.builds(Latency, *[counts] * 6), st.none() | counts, st.none() | numbers),
    *(counts, counts, counts),
)
histograms = st.builds(
    Histogram,
    st.lists(st.tuples(st.integers(0, BUCKETS - 1), st.integers(1, 2**50)), min_size=1, max_size=5).map(tuple),
    *(counts, counts, counts),
)
partitions = st.builds(
    PartitionStatus,
    names,
    st.integers(0, 1_000),
    names,
    st.sampled_from(PartitionState),
    offsets,
    offsets,
    st.none() | st.builds(Reason, names, names),
    metrics,
)
statuses = st.builds(
    TaskStatus,
    *(names, names, names, names, st.integers(0, 9), st.integers(1, 9), numbers, st.booleans()),
    *(st.none() | names, counts, counts, numbers, numbers),
    st.lists(partitions, max_size=4).map(tuple),
    st.none() | histograms,
)


@given(statuses)
def test_json_and_back_is_the_same(status: TaskStatus) -> None:
    assert TaskStatus.from_json(json.loads(json.dumps(status.to_json()))) == status


def test_what_an_older_task_does_not_say_is_unknown() -> None:
    row = {"topic": "t", "partition": 0, "remote": "e.t", "state": "running", "position": 1, "end": 2, "reason": None}
    value = {**status("r", 1.0).to_json(), "partitions": [row]}
    del value["latency"]
    found = TaskStatus.from_json(value)
    assert (found.latency, found.partitions[0].metrics) == (None, NO_METRICS)


def test_what_a_newer_task_says_more_is_not_heard() -> None:
    row = {"topic": "t", "partition": 0, "remote": "e.t", "state": "running", "position": 1, "end": 2, "mood": "good"}
    value = {**status("r", 1.0).to_json(), "weather": "fine", "partitions": [{**row, "metrics": {"karma": 5}}]}
    assert TaskStatus.from_json(value).partitions[0].metrics == NO_METRICS


def test_a_quiet_partition_says_little() -> None:
    quiet = PartitionStatus("t", 0, "e.t", PartitionState.RUNNING, 5, 5, None, Metrics(lag_seconds=0.0))
    assert quiet.to_json().keys() == {"topic", "partition", "remote", "state", "position", "end", "metrics"}
    assert quiet.to_json()["metrics"] == {"lag_seconds": 0.0}


def test_thousands_of_busy_partitions_fit_into_one_message() -> None:
    """Journals pack it to a fifth, but it would fit into what a broker takes by default even as it is."""
    figures = Latency(1_234_567, 12, 1_234, 1_055, 98_303, 104_857)
    measured = Metrics(12_345_678, 1_234_567_890, figures, 1_234, 123.456, 1_234, 12, 3)
    outage = Reason("AB220", "fetching from cluster us-east (b1.use.example:9092), node 3: the connection broke")
    busy = tuple(
        PartitionStatus(
            f"shop.orders-{n // 8:04}", n % 8, f"us-east.shop.orders-{n // 8:04}", PartitionState.OPENING,
            1_234_567_890, 1_234_567_999, outage if n % 4 == 0 else None, measured,
        )
        for n in range(2_000)
    )  # fmt: skip
    word = replace(status("20261121T124316-host-23435", 1.0), partitions=busy)
    assert len(json.dumps(word.to_json(), separators=(",", ":"))) < 1_000_000


@pytest.mark.parametrize("value", [{}, {"partitions": []}, {"partitions": [{"state": "asleep"}]}])
def test_another_shape_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(Misfit):
        TaskStatus.from_json(value)


@pytest.mark.parametrize(
    ("position", "end", "lag"), [(-1, 10, None), (5, -1, None), (5, 12, 7), (12, 12, 0), (13, 12, 0), (0, 0, 0)]
)
def test_lag_is_known_when_both_ends_are(position: int, end: int, lag: int | None) -> None:
    assert PartitionStatus("t", 0, "east.t", PartitionState.RUNNING, position, end).lag == lag


def test_a_reason_ends_with_its_code() -> None:
    assert str(Reason("AB212", "the batch is too large")) == "the batch is too large [AB212]"


def status(run: str, time: float, stopped: bool = False, flow: str = "f", task: int = 0) -> TaskStatus:
    return TaskStatus(flow, "a", "b", run, task, 1, time, stopped, None, 0, 0, 0.0, 0.0, ())


def test_a_task_lives_until_it_says_goodbye_or_falls_silent() -> None:
    one = status("r", 100.0)
    assert one.is_live(100.0 + STALE_SECONDS - 0.1)
    assert not one.is_live(100.0 + STALE_SECONDS)
    assert not replace(one, stopped=True).is_live(100.0)


def test_all_live_runs_are_shown_and_dead_ones_only_when_nobody_lives() -> None:
    dead, one, two = status("dead", 99.0, stopped=True), status("one", 100.0), status("two", 99.5)
    assert newest_runs([dead, one, two], now=100.0) == [one, two]
    assert newest_runs([dead, one, two], now=500.0) == [one]


def test_of_the_dead_the_run_that_spoke_last_is_shown_whole() -> None:
    old = [status("old", 10.0), status("old", 11.0, task=1)]
    last = [replace(one, tasks=2) for one in (status("last", 20.0, stopped=True), status("last", 9.0, task=1))]
    assert newest_runs([*old, *last], now=500.0) == last


def test_a_silent_task_of_a_living_run_is_part_of_the_picture() -> None:
    speaks, silent = (replace(one, tasks=2) for one in (status("r", 100.0), status("r", 50.0, task=1)))
    assert newest_runs([speaks, silent], now=101.0) == [speaks, silent]


def test_a_task_that_its_run_has_no_more_is_not_shown() -> None:
    speaks, former = status("r", 100.0), status("r", 50.0, task=1)
    assert newest_runs([speaks, former], now=101.0) == [speaks]


def test_flows_are_judged_each_for_itself() -> None:
    live, dead = status("r", 100.0, flow="f"), status("r", 10.0, flow="g")
    assert newest_runs([live, dead], now=100.0) == [live, dead]
