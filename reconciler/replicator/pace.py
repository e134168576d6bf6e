"""How much one request may carry: smaller after every silence, so that a slow line is not asked for ever for too much.

A request that takes longer than its time-out is lost, and the same request again would be lost again.
"""

from __future__ import annotations

_SMALLEST = 64 * 1024


class RequestSize:
    """The bytes that one request may carry.

    Args:
        largest: where it begins, and what it never exceeds.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.bytes = largest

    def shrink(self) -> None:
        """A request got no answer: the next one carries half."""
        self.bytes = max(_SMALLEST, self.bytes // 2)

    def grow(self) -> None:
        """A request was answered: the next one may carry an eighth more."""
        self.bytes = min(self._largest, self.bytes + self.bytes // 8 + 1)
