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

from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.status import PartitionStatus, TaskStatus
from reconciler.report.status.summary import FlowSummary, status_lines, summarise
from reconciler.report.text.line import Line, shown_in_place
from reconciler.report.text.measures import UNKNOWN, milliseconds, seconds

_PLAIN_EVERY = 3.0
# From so many letters in a line on a table has all its columns.
_WIDE = 100
_USUAL_START = 20


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
    """Shows the reports of tasks. Use it as a context manager around the time of watching.

    Args:
        console: where to.
        flows: which flows, in which order.
    """

    def __init__(self, console: Console, flows: Sequence[Flow]) -> None:
        self._console = console
        self._flows = [flow for flow in flows if flow.enabled]
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self._next = 0.0
        self._began = time.monotonic()
        self._has_told_start = False
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
        """Show the newest reports of all tasks; before the first, how long Spark has been starting."""
        if all(status.starting for status in statuses):
            self._show_start()
            return
        summaries = summarise(self._flows, statuses, time.time())
        if self._live is not None:
            table = flows_table(summaries, self._console.width)
            self._live.update(Group(table, *_trouble(summaries)), refresh=True)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _PLAIN_EVERY
            for line in status_lines(summaries):
                self._console.print(Line("  ").append(line))

    def _show_start(self) -> None:
        taken = time.monotonic() - self._began
        if self._live is not None:
            self._live.update(Line(f"  starting Spark, about {_USUAL_START} s; {taken:.0f} s so far"), refresh=True)
        elif not self._has_told_start:
            self._console.print(f"  starting Spark, about {_USUAL_START} s")
        self._has_told_start = True


def flows_table(summaries: Sequence[FlowSummary], width: int = _WIDE) -> Table:
    """Return a row for each flow, and below it one for each of its copies; how old the lag is, where there is room.

    Args:
        summaries: the flows.
        width: letters of a line.
    """
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("  flow, its copies", no_wrap=True)
    table.add_column("state", no_wrap=True)
    has_room = width >= _WIDE
    for title in ("records", "lag", *(("behind",) if has_room else ()), "rec/s", "p99"):
        table.add_column(title, justify="right", no_wrap=True)
    for summary in summaries:
        lag = "?" if summary.lag is None else f"{summary.lag:,}"
        behind = (seconds(summary.lag_seconds),) if has_room else ()
        figures = (lag, *behind, f"{summary.records_per_second:,.0f}", _p99(summary))
        table.add_row(Line(f"  {summary.source} → {summary.target}"), summary.state, "", *figures, style="bold")
        for remote, partitions in _by_remote(summary.partitions).items():
            copied = sum(max(0, partition.position) for partition in partitions)
            left = sum(partition.lag or 0 for partition in partitions)
            table.add_row(Line(f"    {remote}"), "", f"{copied:,}", f"{left:,}", *("" for _ in figures[1:]))
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
