"""What a page's charts show: a few figures of each flow over the last half hour, and how flows changed.

It is kept in memory and begins anew with the process: only figures for the eye, which nothing else rests on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.metrics.collect import Reading
from reconciler.report.status.summary import FlowSummary

_MOST_POINTS = 900
_MOST_EVENTS = 500


class HistoryPoint(NamedTuple):
    """Figures of one flow at one reading.

    Attributes:
        time: in seconds since 1970.
        lag: in records; None while unknown, also for the others.
        lag_seconds: age of the oldest record still to copy.
        records_per_second: copied.
        p99_ms: latency.
    """

    time: float
    lag: int | None
    lag_seconds: float | None
    records_per_second: float
    p99_ms: int | None


@dataclass(frozen=True)
class FlowChange:
    """What changed of a flow from one reading to the next.

    Attributes:
        number: from 1, ascending.
        time: of the reading.
        flow: its name.
        was: its state before; None at the first reading.
        state: its state now.
        message: in words.
    """

    number: int
    time: float
    flow: str
    was: str | None
    state: str
    message: str


class History:
    """Takes in readings; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: dict[str, deque[HistoryPoint]] = {}
        self._seen: dict[str, tuple[str, int, int]] = {}
        self._changes: deque[FlowChange] = deque(maxlen=_MOST_EVENTS)
        self._number = 0

    def take(self, reading: Reading) -> None:
        """Take in a reading."""
        with self._lock:
            for name, (_, one, _) in reading.flows.items():
                self._take(name, one, reading.view.now)

    def _take(self, name: str, one: FlowSummary, now: float) -> None:
        p99 = one.latency.p99 if one.latency else None
        points = self._points.setdefault(name, deque(maxlen=_MOST_POINTS))
        if one.tasks:
            points.append(HistoryPoint(now, one.lag, one.lag_seconds, one.records_per_second, p99))
        else:
            points.append(HistoryPoint(now, None, None, 0.0, None))
        seen = (one.state, one.parked, one.paused)
        before = self._seen.get(name)
        if before == seen:
            return
        self._seen[name] = seen
        self._number += 1
        was = before[0] if before else None
        self._changes.append(FlowChange(self._number, now, name, was, one.state, _words(before, seen)))

    def points(self, flow: str) -> Sequence[HistoryPoint]:
        """Return the figures of a flow, the oldest first."""
        with self._lock:
            return tuple(self._points.get(flow, ()))

    def changes(self, after: int = 0) -> Sequence[FlowChange]:
        """Return the changes behind a number, the oldest first."""
        with self._lock:
            return tuple(one for one in self._changes if one.number > after)


def _words(before: tuple[str, int, int] | None, now: tuple[str, int, int]) -> str:
    if before is None:
        return now[0]
    said = [f"{before[0]} → {now[0]}"] if before[0] != now[0] else []
    said += [
        f"{kind} partitions {old} → {new}"
        for kind, old, new in zip(("parked", "paused"), before[1:], now[1:], strict=True)
        if old != new
    ]
    return ", ".join(said)
