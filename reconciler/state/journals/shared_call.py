"""A call that threads share: each returns when one that began after its own has ended.

`shared_follower` and `state.copies` use it: tasks that begin at the same time have a cluster asked once for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class SharedCall:
    """A function without result, called once for all threads that call it meanwhile.

    Args:
        call: the function; it never runs twice at the same time.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._calling = threading.Lock()
        # How many calls there were, and how many of them the last one has served.
        self._asked = 0
        self._served = 0
        self._failure: Exception | None = None

    def __call__(self) -> None:
        """Call the function, or wait for a call that begins after this one; raise what it raises."""
        with self._lock:
            self._asked += 1
            mine = self._asked
        with self._calling:
            if self._served < mine:
                with self._lock:
                    serves = self._asked
                try:
                    self._call()
                    self._failure = None
                except Exception as error:
                    self._failure = error
                self._served = serves
            if self._failure is not None:
                raise self._failure
