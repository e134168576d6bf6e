"""Backoff of a channel before it is opened again: doubles with each failure, and is far longer while it is parked.

Each channel has one. Pure.
"""

from __future__ import annotations

from reconciler.model.tasks.status import PartitionState

_RETRY = (0.05, 5.0)
_PARKED = (2.0, 300.0)
_DOUBLINGS = 16


class Backoff:
    """Counts the failures since the last success."""

    def __init__(self) -> None:
        self._failures = 0
        self._ended_as = PartitionState.OPENING

    def after(self, state: PartitionState) -> float:
        """Return how many seconds to wait after an opening that ended as `state`.

        Retries and parking are counted separately, so that an outage does not lengthen the first parking.
        """
        self._failures = self._failures + 1 if state is self._ended_as else 1
        self._ended_as = state
        low, high = _PARKED if state is PartitionState.PARKED else _RETRY
        return min(high, low * 2.0 ** min(self._failures - 1, _DOUBLINGS))

    def forget(self) -> None:
        """Reset after a success."""
        self._failures = 0
