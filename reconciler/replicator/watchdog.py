"""Which tasks live, as far as Spark knows, and say nothing: a process that stands still, or hangs in a call.

`drive` asks it several times a second. Pure: words and times in, verdicts out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reconciler.model.status import TaskStatus

PATIENCE = 30.0
"""Seconds without a word after which a task is taken for stuck: it says one every second."""


class Silence(NamedTuple):
    """A task that has said nothing for long: of which flow, its number, and for how many seconds."""

    flow: str
    task: int
    seconds: float


class Watchdog:
    """Notes when words arrive, by the clock of whoever listens: those of other machines may differ."""

    def __init__(self) -> None:
        # By flow and task, the time in its newest word, and when that came.
        self._heard: dict[tuple[str, int], tuple[float, float]] = {}

    def silent(self, statuses: Iterable[TaskStatus], now: float) -> list[Silence]:
        """Return the tasks that have spoken once and then not for long.

        Args:
            statuses: the newest words of a run's tasks.
            now: monotonic seconds.
        """
        for status in statuses:
            key = status.flow, status.task
            known = self._heard.get(key)
            if known is None or known[0] != status.time:
                self._heard[key] = status.time, now
            if status.stopped:
                del self._heard[key]
        return [
            Silence(flow, task, now - at) for (flow, task), (_, at) in self._heard.items() if now - at >= PATIENCE
        ]

    def pardon(self, flow: str, now: float) -> None:
        """Give the tasks of a flow as much time again: they were begun anew, or nobody could have heard them."""
        for (name, task), (said, _) in list(self._heard.items()):
            if name == flow:
                self._heard[name, task] = said, now
