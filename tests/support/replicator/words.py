"""Words of tasks made up, for tests of what is told of them: one flow from east to west, half a second ago."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus

NOW = 1_000.0
RUNNING, PARKED, OPENING = PartitionState.RUNNING, PartitionState.PARKED, PartitionState.OPENING
PAUSED, WAITING = PartitionState.PAUSED, PartitionState.WAITING
TOO_LARGE = Reason("AB212", "the batch at offset 4 has 2,000,000 bytes")


def flow(name: str = "east-west") -> Flow:
    source, target = name.split("-")
    return Flow(name, source, target, Selection((".*",)))


def partition(
    number: int, position: int, end: int, state: PartitionState = RUNNING, reason: Reason | None = None
) -> PartitionStatus:
    return PartitionStatus("orders", number, "east.orders", state, position, end, reason)


def said(
    *partitions: PartitionStatus,
    flow: str = "east-west",
    task: int = 0,
    ago: float = 0.5,
    stopped: bool = False,
    waiting: str | None = None,
    tasks: int = 1,
) -> TaskStatus:
    tasks = max(tasks, task + 1)
    return TaskStatus(
        flow, "east", "west", "run", task, tasks, NOW - ago, stopped, waiting, 100, 5_000, 10.5, 525.0, partitions
    )


def of_process(run: str, waiting: str) -> TaskStatus:
    """Return what a process says while no task can."""
    return replace(TaskStatus.of_process(flow(), run, "", waiting=waiting), time=NOW - 0.5)


def with_groups(interval: float = 60.0) -> Flow:
    return replace(flow(), groups=GroupRules(("readers",), interval=interval))
