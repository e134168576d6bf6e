"""What is shown again and again: in place on a terminal, elsewhere as plain lines one behind the other.

`LiveView` is the demo's table; `Screen` shows the lines of `status --watch` and `lag --watch`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from reconciler.model.flow import Flow
from reconciler.model.status import PartitionStatus, TaskStatus
from reconciler.report.line import Line, shown_in_place
from reconciler.report.measures import UNKNOWN, milliseconds, seconds
from reconciler.report.status import FlowSummary, status_lines, summarise

_PLAIN_EVERY = 3.0


class Screen:
    """Shows some lines, and later others instead of them. Use it as a context manager around the time of watching.

    On a terminal they stay in place, and what does not fit is cut off; elsewhere they follow each other, with a line
    between them.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._known = ExitStack()

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
            self._known.enter_context(shown_in_place(self._console))
        return self

    def __exit__(self, *_: object) -> None:
        self._known.close()
        if self._live is not None:
            self._live.stop()

    def show(self, lines: Sequence[Line]) -> None:
        """Show `lines`."""
        if self._live is not None:
            self._live.update(Group(*lines), refresh=True)
            return
        for line in lines:
            self._console.print(line)
        self._console.print()
        self._console.file.flush()


class LiveView:
    """Shows what tasks say. Use it as a context manager around the time of watching.

    Args:
        console: where to.
        flows: which flows, in which order.
    """

    def __init__(self, console: Console, flows: Sequence[Flow]) -> None:
        self._console = console
        self._flows = [flow for flow in flows if flow.enabled]
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self._next = 0.0
        self._known = ExitStack()

    def __enter__(self) -> LiveView:
        if self._live is not None:
            self._live.start()
            self._known.enter_context(shown_in_place(self._console))
        return self

    def __exit__(self, *_: object) -> None:
        self._known.close()
        if self._live is not None:
            self._live.stop()

    def show(self, statuses: Sequence[TaskStatus]) -> None:
        """Show the newest words of all tasks."""
        summaries = summarise(self._flows, statuses, time.time())
        if self._live is not None:
            self._live.update(Group(flows_table(summaries), *_trouble(summaries)), refresh=True)
        elif statuses and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PLAIN_EVERY
            for line in status_lines(summaries):
                self._console.print(Line("  ").append(line))


def flows_table(summaries: Sequence[FlowSummary]) -> Table:
    """Return a row for each flow, and below it one for each of its remote topics."""
    table = Table(box=None, padding=(0, 2, 0, 2))
    for title, side in (("flow", "left"), ("state", "left"), ("remote topic", "left")):
        table.add_column(title, justify="left" if side == "left" else "right")
    for title in ("records", "lag", "behind", "rec/s", "p99"):
        table.add_column(title, justify="right")
    for summary in summaries:
        route = f"{summary.source} → {summary.target}"
        lag = "?" if summary.lag is None else f"{summary.lag:,}"
        figures = (lag, seconds(summary.lag_seconds), f"{summary.records_per_second:,.0f}", _p99(summary))
        table.add_row(Line(route), summary.state, "", "", *figures, style="bold")
        for remote, partitions in _by_remote(summary.partitions).items():
            copied = sum(max(0, partition.position) for partition in partitions)
            behind = sum(partition.lag or 0 for partition in partitions)
            table.add_row("", "", Line(remote), f"{copied:,}", f"{behind:,}", "", "", "")
    return table


def _p99(summary: FlowSummary) -> str:
    return milliseconds(summary.latency.p99) if summary.latency else UNKNOWN


def _trouble(summaries: Sequence[FlowSummary]) -> list[Line]:
    return [
        Line(f"  {partition.remote}/{partition.partition}  {partition.reason}", style="red")
        for summary in summaries
        for partition in summary.troubled
    ]


def _by_remote(partitions: Sequence[PartitionStatus]) -> dict[str, list[PartitionStatus]]:
    found: dict[str, list[PartitionStatus]] = {}
    for partition in partitions:
        found.setdefault(partition.remote, []).append(partition)
    return dict(sorted(found.items()))
