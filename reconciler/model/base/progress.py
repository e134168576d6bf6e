"""How long to wait for a cluster that gets on with what it was asked: a busy one takes minutes, and is not stuck."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Progress:
    """Waits from the last progress on.

    Args:
        seconds: without progress after which waiting longer is no use.
        clock: returns monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._least = math.inf
        self._until = clock() + seconds

    def is_made(self, left: float) -> bool:
        """Note how much is left to be done; return whether less was left than ever within the last seconds."""
        now = self._clock()
        if left < self._least:
            self._least, self._until = left, now + self._seconds
        return now <= self._until
