"""What the process of a task reports of itself and of all that it has copied: for metrics that others add up over time.

A part of `TaskStatus`. Counts begin at 0 with the process, as Prometheus expects of counters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.base.shape import COUNT, Misfit, fields, listed

LATENCY_BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000)
"""The upper bounds of the counts of `TaskProcess.latencies`; one more count has what took longer."""


def bound_of(milliseconds: int) -> int:
    """Return the index of the count that a latency belongs to: the first bound that is not below it."""
    return bisect_left(LATENCY_BOUNDS_MS, milliseconds)


@dataclass(frozen=True)
class TaskProcess:
    """One process of a task, since it began.

    Attributes:
        memory: its resident set, in bytes; 0 where that is unknown.
        rounds: how many rounds it has begun.
        latencies: records copied by latency, one count for each of `LATENCY_BOUNDS_MS` and one for what took longer;
            empty while no record with a timestamp was copied.
        latency_ms: the sum of their latencies.
    """

    memory: int = 0
    rounds: int = 0
    latencies: tuple[int, ...] = ()
    latency_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types; `from_json` is its inverse."""
        return {
            "memory": self.memory,
            "rounds": self.rounds,
            "latencies": list(self.latencies),
            "latency_ms": self.latency_ms,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TaskProcess:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(value, {}, _PROCESS))


def _latencies(value: Any) -> tuple[int, ...]:
    counts = tuple(_COUNTS(value))
    if len(counts) not in (0, len(LATENCY_BOUNDS_MS) + 1):
        message = f"expected {len(LATENCY_BOUNDS_MS) + 1} counts or none; found {len(counts)}"
        raise Misfit(message)
    return counts


_COUNTS = listed(COUNT, len(LATENCY_BOUNDS_MS) + 1)
_PROCESS = {"memory": COUNT, "rounds": COUNT, "latencies": _latencies, "latency_ms": COUNT}

UNKNOWN_PROCESS = TaskProcess()
"""Of a release that does not report it."""
