"""How far behind each partition is, the worst first: the table of `lag`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.status import PartitionStatus, TaskStatus, words
from reconciler.report.status.summary import STANDING, standing
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line

_TITLES = ("flow", "topic", *STANDING)
_NUMBERS = STANDING[1:]


@dataclass(frozen=True)
class LagRow:
    """One partition of one flow.

    Attributes:
        flow: name of the flow.
        is_live: whether its task runs; other reports may be old.
        partition: the last report of its task.
    """

    flow: str
    is_live: bool
    partition: PartitionStatus


def lag_rows(
    flows: Iterable[Flow], statuses: Iterable[TaskStatus], now: float, topic: str | None = None
) -> list[LagRow]:
    """Return the partitions of `flows`, those first of which most is missing.

    First those with an unknown lag, then by the age of the oldest record still to copy, then by the number of
    records.

    Args:
        flows: which flows.
        statuses: the newest word of each task.
        now: seconds since 1970.
        topic: only this original or remote topic.
    """
    names = {flow.name for flow in flows}
    rows = [
        LagRow(status.flow, status.is_live(now), one)
        for status, one in words(statuses, now)
        if status.flow in names and topic in (None, one.topic, one.remote)
    ]
    return sorted(rows, key=_worst_first)


def _worst_first(row: LagRow) -> tuple[bool, float, int, str, str, int]:
    one = row.partition
    lag, age = one.lag, one.metrics.lag_seconds
    return (lag is not None, -(age or 0.0), -(lag or 0), row.flow, one.topic, one.partition)


def lag_lines(rows: Sequence[LagRow], start: str = "") -> list[Line]:
    """Return the table, and a line for each flow that does not run.

    Args:
        rows: the partitions.
        start: the command that runs the flows, shown where no task has reported a partition.
    """
    if not rows:
        return [Line(f"no partitions: no task has reported; start: {start}" if start else "no partitions")]
    cells = [_cells(row) for row in rows]
    silent = dict.fromkeys(row.flow for row in rows if not row.is_live)
    notes = [Line(f"{flow}: a task is silent; its last report is shown", style="yellow") for flow in silent]
    return aligned(_TITLES, cells, right=_NUMBERS) + notes


def _cells(row: LagRow) -> list[str | Line]:
    state, *figures = standing(row.partition)
    name = f"{row.partition.topic}/{row.partition.partition}"
    return [row.flow, name, state if row.is_live else Line("silent", style="dim"), *figures]
