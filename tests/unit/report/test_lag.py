"""The table of `lag`: which words count, in which order partitions stand, and how they read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.latency import Latency
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, TaskStatus
from reconciler.report.status.lag import LagRow, lag_lines, lag_rows
from reconciler.report.status.to_json import lag_json

NOW = 1_000.0
EAST_WEST = Flow("east-west", "east", "west", Selection((".*",)))
QUICK = Latency(records=10, min=1, avg=3, p50=2, p99=9, max=11)


def partition(
    number: int, position: int, end: int, lag_seconds: float | None = None, topic: str = "orders"
) -> PartitionStatus:
    metrics = Metrics(lag_seconds=lag_seconds)
    return PartitionStatus(topic, number, f"east.{topic}", PartitionState.RUNNING, position, end, None, metrics)


def said(*partitions: PartitionStatus, run: str = "run", ago: float = 0.5, flow: str = "east-west") -> TaskStatus:
    return TaskStatus(flow, "east", "west", run, 0, 1, NOW - ago, False, None, 0, 0, 0.0, 0.0, partitions)


def rows(*statuses: TaskStatus, topic: str | None = None) -> list[LagRow]:
    return lag_rows([EAST_WEST], statuses, NOW, topic)


def test_the_worst_comes_first() -> None:
    unknown, caught_up = partition(0, -1, -1), partition(1, 9, 9, 0.0)
    old, many, few = partition(2, 8, 9, 60.0), partition(3, 1, 9, 2.0), partition(4, 5, 9, 2.0)
    found = rows(said(caught_up, few, many, unknown, old))
    assert [row.partition for row in found] == [unknown, old, many, few, caught_up]


def test_of_equals_the_order_is_that_of_names() -> None:
    found = rows(said(partition(10, 9, 9), partition(2, 9, 9), partition(0, 9, 9, topic="audit")))
    assert [(row.partition.topic, row.partition.partition) for row in found] == [
        ("audit", 0),
        ("orders", 2),
        ("orders", 10),
    ]


def test_of_two_runs_the_newest_word_counts() -> None:
    (row,) = rows(said(partition(0, 9, 9), run="new", ago=1.0), said(partition(0, 1, 9), run="old", ago=3.0))
    assert row.partition.lag == 0


@pytest.mark.parametrize(("topic", "count"), [(None, 2), ("orders", 1), ("east.audit", 1), ("order", 0)])
def test_one_topic_by_either_name(topic: str | None, count: int) -> None:
    assert len(rows(said(partition(0, 1, 1), partition(0, 1, 1, topic="audit")), topic=topic)) == count


def test_other_flows_are_left_out() -> None:
    assert rows(said(partition(0, 1, 1), flow="west-east")) == []


def test_the_table_lines_up() -> None:
    busy = partition(0, 1_000, 234_567, 75.0)
    busy = replace(busy, metrics=replace(busy.metrics, latency=QUICK))
    assert [line.plain for line in lag_lines(rows(said(partition(11, 5, 5, 0.0), busy)))] == [
        "flow       topic      state    position      end      lag  behind   p50   p99",
        "east-west  orders/0   running     1,000  234,567  233,567   1 min  2 ms  9 ms",
        "east-west  orders/11  running         5        5        0     0 s     -     -",
    ]


def test_old_words_are_said_to_be_old() -> None:
    _, row, note = lag_lines(rows(said(partition(0, 5, 5), ago=60)))
    assert row.plain.split()[:3] == ["east-west", "orders/0", "silent"]
    assert note.plain == "east-west: a task is silent; its last report is shown"


def test_nothing_to_show_is_said() -> None:
    assert [line.plain for line in lag_lines([])] == ["no partitions"]
    (line,) = lag_lines([], "anabranch replicate shop.yaml")
    assert line.plain == "no partitions: no task has reported; start: anabranch replicate shop.yaml"


def test_json_has_each_partition_in_order() -> None:
    value = json.loads(json.dumps(lag_json(rows(said(partition(0, 1, 5, 0.5)), said(ago=9)), NOW, ["north"])))
    assert (value["time"], value["unreachable"]) == (NOW, ["north"])
    (one,) = value["partitions"]
    expected = {"flow": "east-west", "live": True, "topic": "orders", "partition": 0, "lag": 4, "lagSeconds": 0.5}
    assert one.items() >= expected.items()
    assert one["latencyMs"] is None
