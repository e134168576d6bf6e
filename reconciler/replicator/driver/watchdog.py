"""Which tasks live, as far as Spark knows, and say nothing: a process that stands still, or hangs in a call.

`supervisor` asks it several times a second. Pure: words and times in, verdicts out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from reconciler.model.tasks.status import TaskStatus

PATIENCE = 30.0
"""Seconds without a word after which a task is taken for silent: it says one every second."""
# How much longer the first word may take, behind the start of a query.
_START = 60.0
# Nobody has spoken yet: different from all times.
_NEVER = math.nan


class Silence(NamedTuple):
    """A task that has said nothing for long: of which flow, its number, and since when (monotonic seconds)."""

    flow: str
    task: int
    since: float


class Watchdog:
    """Notes when words arrive, by the clock of whoever listens: those of other machines may differ.

    Attributes:
        spoken: flows of which a task has spoken since they were begun.
    """

    def __init__(self) -> None:
        # By flow and task, the time in its newest word, and when that came.
        self._heard: dict[tuple[str, int], tuple[float, float]] = {}
        self.spoken: set[str] = set()

    def silent(self, statuses: Iterable[TaskStatus], now: float) -> dict[str, Silence]:
        """Return, by flow, the task that has said nothing for longest, where that is long.

        Args:
            statuses: the newest words of a run's tasks.
            now: monotonic seconds.
        """
        words = list(statuses)
        # A word says how many tasks there are: those that never spoke are expected as after a start.
        expected = {(word.flow, task) for word in words if not word.stopped for task in range(word.tasks)}
        for key in expected - {(word.flow, word.task) for word in words} - self._heard.keys():
            self._heard[key] = _NEVER, now + _START
        for status in words:
            key = status.flow, status.task
            known = self._heard.get(key)
            if known is None or known[0] != status.time:
                self._heard[key] = status.time, now
                self.spoken.add(status.flow)
            if status.stopped:
                del self._heard[key]
        found: dict[str, Silence] = {}
        for (flow, task), (_, at) in self._heard.items():
            if now - at >= PATIENCE and (flow not in found or at < found[flow].since):
                found[flow] = Silence(flow, task, at)
        return found

    def begun(self, flow: str, now: float) -> None:
        """Take note that the tasks of a flow were begun at `now`: the first there is, and those that are known.

        How many there are the first word tells: a flow may have fewer than it asks for.
        """
        self.spoken.discard(flow)
        for key in {(flow, 0), *(key for key in self._heard if key[0] == flow)}:
            self._heard[key] = self._heard.get(key, (_NEVER, 0.0))[0], now + _START
