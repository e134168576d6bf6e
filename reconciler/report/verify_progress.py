"""The progress bar of `verify`, on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from reconciler.report.measures import bytes_per_second, count


class VerifyProgress:
    """Shows how far a comparison is. Use it as a context manager around the time of comparing.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._began = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[said]}"),
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
        """Say what is done now."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text)

    def seen(self, offsets: int, of: int, records: int, size: int, different: int) -> None:
        """Show how far it is.

        Args:
            offsets: how many are compared.
            of: how many there are.
            records: that are the same.
            size: bytes that were read.
            different: how many partitions differ.
        """
        if self._bar is None or self._task is None:
            return
        rate = bytes_per_second(size / max(time.monotonic() - self._began, 0.001))
        trouble = f"   {different} differ" if different else ""
        self._bar.update(self._task, completed=offsets, total=of, said=f"{count(records)} records   {rate}{trouble}")
