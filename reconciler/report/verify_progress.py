"""The progress bar of `verify`, on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from reconciler.model.offsets.verification import Sofar
from reconciler.report.text.measures import bytes_per_second, count
from reconciler.report.text.words import counted

_LEAST = 0.001


class VerifyProgress:
    """Shows how far a comparison is. Use it as a context manager around the time of comparing.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._first: tuple[float, int] | None = None
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[said]}", markup=False),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self._task = None if self._bar is None else self._bar.add_task("verify", total=None, said="")

    def __enter__(self) -> VerifyProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def phase(self, text: str) -> None:
        """Show the current phase."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text)

    def seen(self, sofar: Sofar) -> None:
        """Show how far it is."""
        if self._bar is None or self._task is None:
            return
        counts, now = sofar.counts, time.monotonic()
        # What an earlier run compared was not compared as fast as that.
        self._first = self._first or (now, counts.bytes)
        began, before = self._first
        rate = bytes_per_second((counts.bytes - before) / max(now - began, _LEAST))
        trouble = f"   {counted(sofar.different, 'partition')} with differences" if sofar.different else ""
        said = f"{count(counts.records)} records   {rate}{trouble}"
        self._bar.update(self._task, completed=sofar.offsets, total=sofar.of, said=said)
