"""Turns one reading of the status topics into samples: those of flows, tasks, partitions, groups and clusters.

A flow that does not report has `anabranch_flow_up` 0, its state and the age of its last report; its lag, rates, latency
and partitions are left out, as the last ones that it reported are true no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from reconciler.metrics import table
from reconciler.metrics.exposition import Samples, Value, cumulative, labelled, one_of_each, with_label
from reconciler.metrics.table import MetricFamily
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.tasks.process import LATENCY_BOUNDS_MS
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus, words
from reconciler.operate.watching import StatusView
from reconciler.report.status.states import FlowState
from reconciler.report.status.summary import FlowSummary

Line = tuple[str, str, Value]
FlowRow = tuple[Flow, FlowSummary, str]
FlowValue = Callable[[Flow, FlowSummary], Value | None]
_STATES: tuple[str, ...] = get_args(FlowState)
_PARTITION_STATES = tuple(state.value for state in PartitionState)
_BOUNDS = tuple(bound / 1_000 for bound in LATENCY_BOUNDS_MS)


@dataclass(frozen=True)
class PartitionRow:
    """A partition whose task reports.

    Attributes:
        task: the report of its task.
        status: its own.
        labels: those of `table.PARTITION`.
    """

    task: TaskStatus
    status: PartitionStatus
    labels: str


@dataclass(frozen=True)
class Reading:
    """One reading of the status topics, with what is computed from it once for all metrics.

    Attributes:
        topology: what is declared.
        view: what was read.
        flows: by name, each flow with its figures and its labels.
        tasks: the tasks that report, with their labels.
        partitions: those of these.
    """

    topology: Topology
    view: StatusView
    flows: Mapping[str, FlowRow]
    tasks: Sequence[tuple[TaskStatus, str]]
    partitions: Sequence[PartitionRow]

    @classmethod
    def of(cls, topology: Topology, view: StatusView) -> Reading:
        """Compute it."""
        flows = {
            flow.name: (flow, one, labelled(table.FLOW, (topology.name, flow.name, flow.source, flow.target)))
            for flow, one in zip(view.flows, view.summaries(), strict=True)
        }
        live = [one for one in view.statuses if one.flow in flows and not one.is_held and one.is_live(view.now)]
        tasks = [(one, with_label(flows[one.flow][2], "task", str(one.task))) for one in live]
        partitions = [
            PartitionRow(task, one, _of_partition(flows[task.flow][2], one)) for task, one in words(live, view.now)
        ]
        return cls(topology, view, flows, tasks, partitions)


def _of_partition(flow: str, one: PartitionStatus) -> str:
    return with_label(with_label(flow, "topic", one.topic), "partition", str(one.partition))


def samples(reading: Reading) -> Iterator[Samples]:
    """Yield all metrics of a reading but those of other products' names, each once."""
    yield from _of_flows(reading)
    yield from _of_groups(reading)
    yield from _of_tasks(reading)
    yield from _of_partitions(reading.partitions)
    yield from _of_clusters(reading)


def _of_flows(reading: Reading) -> Iterator[Samples]:
    flows = list(reading.flows.values())
    live = [one for one in flows if one[1].tasks]

    def each(family: MetricFamily, value: FlowValue, among: Sequence[FlowRow]) -> Samples:
        return Samples(family, _known((labels, value(flow, one)) for flow, one, labels in among))

    yield each(table.FLOW_UP, lambda _, one: int(one.tasks > 0), flows)
    yield Samples(
        table.FLOW_STATE,
        [line for _, one, labels in flows for line in one_of_each(_STATES, {one.state: 1}, "state", labels)],
    )
    yield each(table.FLOW_ENABLED, lambda flow, _: int(flow.enabled), flows)
    yield each(table.FLOW_FAILED_OVER, lambda _, one: int(one.is_failed_over), flows)
    yield each(table.FLOW_REPORT_AGE, lambda _, one: _rounded(one.silent_seconds), flows)
    yield each(table.FLOW_TASKS, lambda _, one: one.tasks, flows)
    yield each(table.FLOW_TASKS_WANTED, lambda _, one: one.tasks + one.silent_tasks + one.unheard_tasks, live)
    yield each(table.FLOW_TASKS_SILENT, lambda _, one: one.silent_tasks, flows)
    yield each(table.FLOW_LAG_RECORDS, lambda _, one: one.lag, live)
    yield each(table.FLOW_LAG_SECONDS, lambda _, one: _rounded(one.lag_seconds), live)
    yield each(table.FLOW_LAG_UNKNOWN, lambda _, one: one.unknown, live)
    yield each(table.FLOW_RECORD_RATE, lambda _, one: one.records_per_second, live)
    yield each(table.FLOW_BYTE_RATE, lambda _, one: one.bytes_per_second, live)
    yield Samples(
        table.FLOW_PARTITIONS,
        [line for _, one, labels in live for line in one_of_each(_PARTITION_STATES, _by_state(one), "state", labels)],
    )
    yield each(table.FLOW_GROUPS, lambda _, one: None if one.groups is None else one.groups.count, flows)
    yield each(
        table.FLOW_CHECKPOINT_AGE, lambda _, one: None if one.groups is None else _rounded(one.groups.seconds), flows
    )
    yield each(table.FLOW_CHECKPOINT_LATE, lambda _, one: None if one.groups is None else int(one.groups.late), live)


def _by_state(one: FlowSummary) -> dict[str, int]:
    found: dict[str, int] = {}
    for partition in one.partitions:
        found[partition.state.value] = found.get(partition.state.value, 0) + 1
    return found


def _of_groups(reading: Reading) -> Iterator[Samples]:
    ages: list[Line] = []
    refused: list[Line] = []
    counts: list[Line] = []
    for name, (_, _, labels) in reading.flows.items():
        last = reading.view.last_looks.get(name)
        if last is None:
            continue
        counts.append(("", labels, sum(bool(group.code) for group in last.by_group)))
        for group in last.by_group:
            of_group = with_label(labels, "group", group.name)
            if group.time:
                ages.append(("", of_group, round(max(0.0, reading.view.now - group.time), 3)))
            if group.code:
                refused.append(("", with_label(of_group, "code", group.code), 1))
    yield Samples(table.FLOW_GROUPS_REFUSED, counts)
    yield Samples(table.GROUP_AGE, ages)
    yield Samples(table.GROUP_REFUSED, refused)


def _of_tasks(reading: Reading) -> Iterator[Samples]:
    tasks = reading.tasks
    yield Samples(table.TASK_START, [("", labels, task.since) for task, labels in tasks if task.since])
    yield Samples(
        table.TASK_MEMORY, [("", labels, task.process.memory) for task, labels in tasks if task.process.memory]
    )
    yield Samples(table.TASK_ROUNDS, [("", labels, task.process.rounds) for task, labels in tasks])
    yield Samples(table.TASK_RECORDS, [("", labels, task.records) for task, labels in tasks])
    yield Samples(table.TASK_BYTES, [("", labels, task.bytes) for task, labels in tasks])
    yield Samples(
        table.LATENCY,
        [
            line
            for task, labels in tasks
            if task.process.latencies
            for line in cumulative(_BOUNDS, task.process.latencies, task.process.latency_ms / 1_000, labels)
        ],
    )


_PARTITION_VALUES: tuple[tuple[MetricFamily, Callable[[PartitionStatus], Value | None]], ...] = (
    (table.PARTITION_LAG_RECORDS, lambda one: one.lag),
    (table.PARTITION_LAG_SECONDS, lambda one: _rounded(one.metrics.lag_seconds)),
    (table.PARTITION_POSITION, lambda one: one.position if one.position >= 0 else None),
    (table.PARTITION_END, lambda one: one.end if one.end >= 0 else None),
    (table.PARTITION_RECORDS, lambda one: one.metrics.records),
    (table.PARTITION_BYTES, lambda one: one.metrics.bytes),
    (table.PARTITION_FILLS, lambda one: one.metrics.fills),
    (table.PARTITION_RETRIES, lambda one: one.metrics.retries),
    (table.PARTITION_SHIFT, lambda one: one.metrics.shifted),
    (table.PARTITION_RECORD_AGE, lambda one: _seconds(one.metrics.record_age)),
)
_STATS: tuple[str, ...] = ("min", "avg", "p50", "p99", "max")


def _of_partitions(rows: Sequence[PartitionRow]) -> Iterator[Samples]:
    yield Samples(
        table.PARTITION_STATE, [("", with_label(row.labels, "state", row.status.state.value), 1) for row in rows]
    )
    for family, value in _PARTITION_VALUES:
        yield Samples(family, _known((row.labels, value(row.status)) for row in rows))
    yield Samples(
        table.PARTITION_LATENCY,
        [
            ("", with_label(row.labels, "stat", stat), getattr(row.status.metrics.latency, stat) / 1_000)
            for row in rows
            if row.status.metrics.latency is not None
            for stat in _STATS
        ],
    )
    yield Samples(
        table.PARTITION_TROUBLE,
        [
            ("", with_label(row.labels, "code", row.status.reason.code), 1)
            for row in rows
            if row.status.reason is not None
        ],
    )


def _of_clusters(reading: Reading) -> Iterator[Samples]:
    away = reading.view.failures
    targets = dict.fromkeys([*(flow.target for flow in reading.view.flows), *away])
    name = reading.topology.name
    yield Samples(
        table.CLUSTER_UP, [("", labelled(table.CLUSTER, (name, alias)), int(alias not in away)) for alias in targets]
    )


def _known(values: Iterable[tuple[str, Value | None]]) -> list[Line]:
    return [("", labels, value) for labels, value in values if value is not None]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1_000
