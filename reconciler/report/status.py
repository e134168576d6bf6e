"""What running flows say, as lines for people and as JSON. `status`, `replicate` and the demo print it.

Everything here comes from `TaskStatus` values; nothing is asked of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.text import Text

from reconciler.model.flow import Flow
from reconciler.model.status import PartitionState, PartitionStatus, TaskStatus

FlowState = Literal["running", "opening", "waiting", "degraded", "paused", "stopped", "lost", "not running"]
_STYLES: dict[FlowState, str] = {
    "running": "green",
    "opening": "cyan",
    "waiting": "cyan",
    "degraded": "red",
    "paused": "yellow",
    "stopped": "dim",
    "lost": "red",
    "not running": "dim",
}


@dataclass(frozen=True)
class FlowSummary:
    """One flow, all its tasks together.

    Attributes:
        name: the flow's name.
        source: alias.
        target: alias.
        state: `degraded` when a partition is parked or a task is silent, `paused` when all partitions are, `lost` when
            all tasks fell silent without a last word.
        records_per_second: of all tasks.
        bytes_per_second: likewise.
        records: copied since its tasks' processes began.
        lag: offsets still to copy, or None while no position is known.
        troubled: partitions with a reason not to run, and those that are paused while others are not.
        waiting: what it waits for, if it has no partitions.
        silent_seconds: since its last word.
        tasks: how many tasks speak.
        silent_tasks: how many fell silent without a last word.
        partitions: all of them, with what each says.
    """

    name: str
    source: str
    target: str
    state: FlowState
    records_per_second: float
    bytes_per_second: float
    records: int
    lag: int | None
    troubled: tuple[PartitionStatus, ...]
    waiting: str | None
    silent_seconds: float | None
    tasks: int
    silent_tasks: int
    partitions: tuple[PartitionStatus, ...]


def summarise(flows: Iterable[Flow], statuses: Sequence[TaskStatus], now: float) -> list[FlowSummary]:
    """Put the tasks' words together, flow by flow, in the order of `flows`.

    Args:
        flows: the flows to tell of.
        statuses: the newest word of each task; several runs of one flow are counted together.
        now: seconds since 1970.
    """
    return [_summary(flow, [s for s in statuses if s.flow == flow.name], now) for flow in flows]


def _summary(flow: Flow, tasks: Sequence[TaskStatus], now: float) -> FlowSummary:
    partitions = tuple(partition for task in tasks for partition in task.partitions)
    lags = [partition.lag for partition in partitions if partition.lag is not None]
    silent = now - max(task.time for task in tasks) if tasks else None
    live = [task for task in tasks if task.is_live(now)]
    return FlowSummary(
        name=flow.name,
        source=flow.source,
        target=flow.target,
        state=_state(tasks, live, partitions, now),
        records_per_second=sum(task.records_per_second for task in live),
        bytes_per_second=sum(task.bytes_per_second for task in live),
        records=sum(task.records for task in tasks),
        lag=sum(lags) if lags else None,
        troubled=_troubled(partitions),
        waiting=next((task.waiting for task in tasks if task.waiting), None),
        silent_seconds=silent,
        tasks=len(live),
        silent_tasks=sum(not task.stopped and not task.is_live(now) for task in tasks),
        partitions=partitions,
    )


def _troubled(partitions: Sequence[PartitionStatus]) -> tuple[PartitionStatus, ...]:
    # A flow that is paused as a whole says so in one line.
    names_paused = any(partition.state is not PartitionState.PAUSED for partition in partitions)
    return tuple(p for p in partitions if p.reason or (names_paused and p.state is PartitionState.PAUSED))


def _state(
    tasks: Sequence[TaskStatus], live: Sequence[TaskStatus], partitions: Sequence[PartitionStatus], now: float
) -> FlowState:
    if not tasks:
        return "not running"
    if not live:
        return "stopped" if all(task.stopped for task in tasks) else "lost"
    if any(not task.stopped and not task.is_live(now) for task in tasks):
        return "degraded"
    if any(partition.state is PartitionState.PARKED for partition in partitions):
        return "degraded"
    if not partitions:
        return "waiting"
    states = {partition.state for partition in partitions}
    if states == {PartitionState.PAUSED}:
        return "paused"
    return "opening" if states <= {PartitionState.OPENING, PartitionState.PAUSED} else "running"


def status_lines(summaries: Sequence[FlowSummary]) -> list[Text]:
    """Return one line for each flow, and one below it for each partition that does not run."""
    width = max((len(_route(summary)) for summary in summaries), default=0)
    lines: list[Text] = []
    for summary in summaries:
        lines.append(_flow_line(summary, width))
        lines += [_partition_line(partition) for partition in summary.troubled]
    return lines


def _route(summary: FlowSummary) -> str:
    return f"{summary.source} → {summary.target}"


def _flow_line(summary: FlowSummary, width: int) -> Text:
    line = Text(f"{_route(summary):<{width}}   ", style="bold")
    line.append(f"{summary.state:<9}", style=_STYLES[summary.state])
    if summary.state in ("running", "degraded", "opening", "paused"):
        line.append(f"   {summary.records_per_second:,.0f} rec/s", style="none")
        line.append("   lag unknown" if summary.lag is None else f"   lag {summary.lag:,} records", style="none")
        parked = sum(partition.state is PartitionState.PARKED for partition in summary.troubled)
        line.append(f"   parked {parked}" if parked else "", style="red")
        paused = sum(partition.state is PartitionState.PAUSED for partition in summary.partitions)
        line.append(f"   paused {paused}" if paused else "", style="yellow")
        line.append(f"   silent tasks {summary.silent_tasks}" if summary.silent_tasks else "", style="red")
    elif summary.state == "waiting":
        line.append(f"   {summary.waiting}", style="none")
    elif summary.silent_seconds is not None:
        line.append(f"   last heard {_ago(summary.silent_seconds)} ago", style="none")
    return line


def _partition_line(partition: PartitionStatus) -> Text:
    line = Text(f"  {partition.remote}/{partition.partition}  ", style="none")
    line.append(f"{partition.state:<8}", style="red" if partition.state is PartitionState.PARKED else "cyan")
    line.append(f"  {partition.reason}" if partition.reason else "", style="none")
    return line


def _ago(seconds: float) -> str:
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0, seconds):.0f} s"


def status_json(summaries: Sequence[FlowSummary]) -> dict[str, Any]:
    """Return the summaries as JSON types: `{"flows": [{"name", "state", …, "partitions": [...]}]}`."""
    return {
        "flows": [
            {
                "name": summary.name,
                "source": summary.source,
                "target": summary.target,
                "state": summary.state,
                "recordsPerSecond": summary.records_per_second,
                "bytesPerSecond": summary.bytes_per_second,
                "records": summary.records,
                "lag": summary.lag,
                "waiting": summary.waiting,
                "silentSeconds": summary.silent_seconds,
                "tasks": summary.tasks,
                "silentTasks": summary.silent_tasks,
                "partitions": [_partition_json(partition) for partition in summary.partitions],
            }
            for summary in summaries
        ]
    }


def _partition_json(partition: PartitionStatus) -> dict[str, Any]:
    reason = partition.reason
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "remote": partition.remote,
        "state": partition.state.value,
        "position": partition.position,
        "end": partition.end,
        "lag": partition.lag,
        "reason": None if reason is None else {"code": reason.code, "text": reason.text},
    }
