"""In which state a flow is, by the words of its tasks and of live processes that run none of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus

FlowState = Literal[
    "running",
    "opening",
    "waiting",
    "degraded",
    "paused",
    "failed over",
    "stopped",
    "lost",
    "not running",
    "disabled",
    "destroyed",
]
STYLES: dict[FlowState, str] = {
    "running": "green",
    "opening": "cyan",
    "waiting": "cyan",
    "degraded": "red",
    "paused": "yellow",
    "failed over": "yellow",
    "stopped": "dim",
    "lost": "red",
    "not running": "dim",
    "disabled": "dim",
    "destroyed": "yellow",
}
"""Of the word for each state."""
PARTITION_STYLES = {
    PartitionState.OPENING: "cyan",
    PartitionState.RUNNING: "green",
    PartitionState.PARKED: "red",
    PartitionState.PAUSED: "yellow",
    PartitionState.WAITING: "cyan",
}
"""Likewise of a partition's."""
# Of a flow whose partitions are all in one of these nothing is copied.
_STILL = frozenset({PartitionState.OPENING, PartitionState.PAUSED, PartitionState.WAITING})


def state_of(
    held: Sequence[TaskStatus], tasks: Sequence[TaskStatus], partitions: Sequence[PartitionStatus], now: float
) -> FlowState:
    """Return a flow's state.

    Args:
        held: the words of live processes that run no task of it.
        tasks: the words of its tasks.
        partitions: their reports of these.
        now: seconds since 1970.
    """
    states = {partition.state for partition in partitions}
    live = [task for task in tasks if task.is_live(now)]
    silent = [task for task in tasks if not task.stopped and not task.is_live(now)]
    if any(word.failing for word in held):
        return "degraded"
    if not live and not {word.run for word in held} & {task.run for task in silent}:
        # Tasks of former runs do not count.
        return "waiting" if held else "not running" if not tasks else "lost" if silent else "stopped"
    if not live:
        return "lost"
    if silent or PartitionState.PARKED in states:
        return "degraded"
    if unheard(tasks, now):
        return "opening"
    if states == {PartitionState.PAUSED}:
        return "paused"
    if states <= _STILL:
        return "opening" if PartitionState.OPENING in states else "waiting"
    return "running"


def unheard(tasks: Sequence[TaskStatus], now: float) -> int:
    """Return the number of tasks of live runs that have not reported yet."""
    # Counted, and not gone through: their number comes from a journal.
    expected: dict[str, int] = {}
    for task in tasks:
        if task.is_live(now):
            expected[task.run] = max(expected.get(task.run, 0), task.tasks)
    heard = {(task.run, task.task) for task in tasks if 0 <= task.task < expected.get(task.run, 0)}
    return sum(expected.values()) - len(heard)


def waiting_for(state: FlowState, spoke: Iterable[TaskStatus], partitions: Iterable[PartitionStatus]) -> str | None:
    """Return what a flow waits for, from its tasks and processes, or from its partitions."""
    said = next((word.waiting for word in spoke if word.waiting), None)
    if said is not None or state != "waiting":
        return said
    reasons = (partition.reason for partition in partitions if partition.state is PartitionState.WAITING)
    return next((str(reason) for reason in reasons if reason is not None), "until it may copy its partitions")
