"""What a process shares: one thing for each key, for as long as something holds it.

`clients` shares clients of confluent-kafka so, and `copies` what was read of copy records.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Thing = TypeVar("Thing")


class Shared(Generic[Thing]):
    """Things by key, held weakly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: WeakValueDictionary[Hashable, Thing] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """Return the thing of a key, made where nothing holds one."""
        # A forked process has none of the threads that it needs.
        own = os.getpid(), key
        with self._lock:
            if (found := self._things.get(own)) is None:
                found = self._things[own] = make()
            return found
