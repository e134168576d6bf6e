"""How many partitions a task opens at once: as many as leave its heartbeats answered in time.

Takeovers that run together share most of their requests. But thousands at once keep brokers busy for longer than a
lease lasts: it runs out, and all partitions are opened anew, without an end.
"""

from __future__ import annotations

_FIRST, _LEAST, _MOST = 64, 8, 256
# Seconds that a heartbeat takes: below the first more may be opened at once, above the second only half as many. One
# that takes two seconds counts as lost.
_QUICK, _SLOW = 0.4, 0.8


class Openings:
    """The bound of one task."""

    def __init__(self) -> None:
        self._most = _FIRST
        self._beats = 0

    def room(self, busy: int, beats: int, seconds: float) -> int:
        """Return how many more partitions may be opened; not above 0 where there is no room.

        Args:
            busy: how many are being opened.
            beats: counts the heartbeats that were answered, or were given up.
            seconds: that the last of them took.
        """
        if beats != self._beats:
            self._beats = beats
            if seconds > _SLOW:
                self._most = max(_LEAST, self._most // 2)
            elif seconds < _QUICK:
                self._most = min(_MOST, 2 * self._most)
        return self._most - busy
