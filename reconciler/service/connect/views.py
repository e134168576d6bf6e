"""What flows report, as Kafka Connect has it: states of connectors and tasks, and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.metrics.collect import Reading
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.report.status.states import FlowState
from reconciler.report.status.summary import FlowSummary
from reconciler.service.connect.hosting import ConnectorView, TaskState, TaskView

_MOST_SHOWN = 20
_STATES: Mapping[FlowState, TaskState] = {
    "running": "RUNNING",
    "degraded": "RUNNING",
    "opening": "RUNNING",
    "waiting": "RUNNING",
    "paused": "PAUSED",
    "lost": "FAILED",
}


def view(record: ConnectorRecord, flows: Sequence[str], reading: Reading | None) -> ConnectorView | None:
    """Return what a connector does; None while nothing was read of its flows.

    Args:
        record: the connector.
        flows: names of those that it copies, or goes with.
        reading: what was read last.
    """
    there = [reading.flows[name][1] for name in flows if reading is not None and name in reading.flows]
    if not there or reading is None:
        # What only goes with a flow has nothing to do before there is one.
        return ConnectorView("UNASSIGNED") if not flows else None
    (one, *_) = there
    state: TaskState = "PAUSED" if record.state == "PAUSED" else _STATES.get(one.state, "UNASSIGNED")
    tasks = [
        TaskView(number, _of_task(state, parked), run, _trace(parked))
        for number, run, parked in _tasks(reading, one.name)
    ]
    return ConnectorView(state, tasks, one.failing or "")


def _tasks(reading: Reading, flow: str) -> Iterable[tuple[int, str, list[PartitionStatus]]]:
    """Yield the number of each task of a flow that reports, its run, and what of it is parked."""
    newest = {task.task: task for task, _ in reading.tasks if task.flow == flow}
    for number, task in sorted(newest.items()):
        yield number, task.run, [one for one in task.partitions if one.state is PartitionState.PARKED]


def _of_task(state: TaskState, parked: Sequence[PartitionStatus]) -> TaskState:
    return "FAILED" if parked and state == "RUNNING" else state


def _trace(parked: Sequence[PartitionStatus]) -> str:
    return "\n".join(f"{one.topic}/{one.partition}: {one.reason}" for one in parked[:_MOST_SHOWN])


def offsets(flow: FlowSummary) -> list[dict[str, Any]]:
    """Return the offset of the last record that a flow has copied, by partition; Connect has no next one."""
    return [
        {
            "partition": {"cluster": flow.source, "partition": one.partition, "topic": one.topic},
            "offset": {"offset": one.position - 1},
        }
        for one in flow.partitions
        if one.position > 0
    ]


def heartbeat_offset(source: str, target: str) -> dict[str, Any]:
    """Return what Connect has for a connector of heartbeats, which never comes further."""
    return {"partition": {"sourceClusterAlias": source, "targetClusterAlias": target}, "offset": {"offset": 0}}
