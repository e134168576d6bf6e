"""How long a channel rests before it is opened again: twice as long each time, and by far longer while it is parked.

`channel` has one of these. Pure.
"""

from __future__ import annotations

from reconciler.model.tasks.status import PartitionState

_RETRY = (0.05, 5.0)
_PARKED = (2.0, 300.0)
_DOUBLINGS = 16


class Backoff:
    """Counts what failed since something succeeded."""

    def __init__(self) -> None:
        self._failures = 0
        self._ended_as = PartitionState.OPENING

    def after(self, state: PartitionState) -> float:
        """Return for how many seconds to rest after an opening that ended as `state`.

        Pausing and parking are counted apart, or an outage would make the first parking long.
        """
        self._failures = self._failures + 1 if state is self._ended_as else 1
        self._ended_as = state
        low, high = _PARKED if state is PartitionState.PARKED else _RETRY
        return min(high, low * 2.0 ** min(self._failures - 1, _DOUBLINGS))

    def forget(self) -> None:
        """Take note that something succeeded."""
        self._failures = 0
