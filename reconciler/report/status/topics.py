"""The topics of flows as their tasks report them, those that are furthest behind first: the table of `topics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.report.status.summary import FlowSummary
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line
from reconciler.report.text.measures import count, seconds

_TITLES = ("flow", "topic", "remote", "partitions", "lag", "behind", "parked", "paused")
_NUMBERS = _TITLES[3:]


@dataclass(frozen=True)
class TopicRow:
    """One topic of one flow.

    Attributes:
        flow: name of the flow.
        topic: at the source.
        remote: at the target.
        partitions: how many are reported.
        lag: records still to copy; None where that is not known of each of them.
        lag_seconds: the age of the oldest of these.
        parked: partitions that are.
        paused: likewise.
    """

    flow: str
    topic: str
    remote: str
    partitions: int = 0
    lag: int | None = 0
    lag_seconds: float = 0.0
    parked: int = 0
    paused: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types, without the flow."""
        return {
            "topic": self.topic,
            "remote": self.remote,
            "partitions": self.partitions,
            "lag": self.lag,
            "lagSeconds": self.lag_seconds,
            "parked": self.parked,
            "paused": self.paused,
        }


def topic_rows(summaries: Iterable[FlowSummary]) -> list[TopicRow]:
    """Return the topics of some flows: first those with an unknown lag, then by lag."""
    found: dict[tuple[str, str], TopicRow] = {}
    for flow in summaries:
        for one in flow.partitions:
            row = found.get((flow.name, one.topic)) or TopicRow(flow.name, one.topic, one.remote)
            found[flow.name, one.topic] = _with(row, one)
    return sorted(found.values(), key=lambda row: (row.lag is not None, -(row.lag or 0), row.flow, row.topic))


def _with(row: TopicRow, one: PartitionStatus) -> TopicRow:
    return replace(
        row,
        partitions=row.partitions + 1,
        # The sum of what is known would pass for all of it.
        lag=None if row.lag is None or one.lag is None else row.lag + one.lag,
        lag_seconds=max(row.lag_seconds, one.metrics.lag_seconds or 0.0),
        parked=row.parked + (one.state is PartitionState.PARKED),
        paused=row.paused + (one.state is PartitionState.PAUSED),
    )


def topic_lines(rows: Sequence[TopicRow], start: str = "", indent: int = 0) -> list[Line]:
    """Return the table.

    Args:
        rows: the topics.
        start: the command that runs the flows, shown where no task has reported one.
        indent: spaces before each line.
    """
    if not rows:
        return [Line(f"{' ' * indent}no topics: no task has reported{f'; start: {start}' if start else ''}")]
    return aligned(_TITLES, [_cells(row) for row in rows], right=_NUMBERS, indent=indent)


def _cells(row: TopicRow) -> list[str | Line]:
    figures = [f"{row.partitions:,}", count(row.lag), seconds(row.lag_seconds)]
    parked = Line(f"{row.parked:,}", style="red") if row.parked else ""
    return [row.flow, row.topic, row.remote, *figures, parked, f"{row.paused:,}" if row.paused else ""]


def topics_json(rows: Iterable[TopicRow], now: float, unreachable: Sequence[str] = ()) -> dict[str, Any]:
    """Return `time`, `topics` (each with its `flow`) and `unreachable`, as JSON types."""
    return {
        "time": now,
        "topics": [{"flow": row.flow, **row.to_json()} for row in rows],
        "unreachable": list(unreachable),
    }
