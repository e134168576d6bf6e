"""Finds tasks that run according to Spark and publish no status: stopped processes, or ones that hang in a call.

`supervisor` runs it several times a second. Pure: statuses and times in, verdicts out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from reconciler.model.tasks.status import TaskStatus

PATIENCE = 30.0
"""Seconds without a status after which a task counts as silent: it publishes one every second."""
# How much longer (seconds) the first status may take, behind the start of a flow.
_START = 60.0
# No status yet: different from all times.
_NEVER = math.nan


class Silence(NamedTuple):
    """A task that has published nothing for long: its flow, number, and since when (monotonic seconds)."""

    flow: str
    task: int
    since: float


class Watchdog:
    """Notes when statuses arrive, by this machine's clock: the clocks of others may differ.

    Attributes:
        reported: flows of which a task has published a status since they were started.
    """

    def __init__(self) -> None:
        # By flow and task, the time in its newest status, and when that arrived.
        self._heard: dict[tuple[str, int], tuple[float, float]] = {}
        self.reported: set[str] = set()

    def silent(self, statuses: Iterable[TaskStatus], now: float) -> dict[str, Silence]:
        """Return, by flow, the task that has been silent for longest, where that is `PATIENCE` or more.

        Args:
            statuses: the newest statuses of a run's tasks.
            now: monotonic seconds.
        """
        words = list(statuses)
        # A status holds the number of tasks: those that never published one are expected as after a start.
        expected = {(word.flow, task) for word in words if not word.stopped for task in range(word.tasks)}
        for key in expected - {(word.flow, word.task) for word in words} - self._heard.keys():
            self._heard[key] = _NEVER, now + _START
        for status in words:
            key = status.flow, status.task
            known = self._heard.get(key)
            if known is None or known[0] != status.time:
                self._heard[key] = status.time, now
                self.reported.add(status.flow)
            if status.stopped:
                del self._heard[key]
        found: dict[str, Silence] = {}
        for (flow, task), (_, at) in self._heard.items():
            if now - at >= PATIENCE and (flow not in found or at < found[flow].since):
                found[flow] = Silence(flow, task, at)
        return found

    def begun(self, flow: str, now: float) -> None:
        """Note that the tasks of a flow were started at `now`: task 0, and those that are known.

        The first status holds their number: a flow may have fewer than it declares.
        """
        self.reported.discard(flow)
        for key in {(flow, 0), *(key for key in self._heard if key[0] == flow)}:
            self._heard[key] = self._heard.get(key, (_NEVER, 0.0))[0], now + _START
