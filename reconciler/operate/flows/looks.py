"""Looks at clusters that several flows share: those between the same clusters rest their plans on the same facts.

`following` takes part in one for each flow at each refresh. A look serves all that asked before it began, never one
that asked after that: what it returns is as new as if each had looked by itself. What follows from a look alone is
computed once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster

Found = TypeVar("Found")


@dataclass
class Look:
    """One look, and what was computed from it.

    Attributes:
        part: the flows that it was for.
        observed: their clusters.
    """

    part: Topology
    observed: Mapping[str, ObservedCluster]
    _found: dict[Hashable, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def once(self, key: Hashable, compute: Callable[[], Found]) -> Found:
        """Return what `compute` returns, which is called for the first flow alone.

        Args:
            key: names what is computed.
            compute: a pure function of this look.
        """
        with self._lock:
            if key not in self._found:
                self._found[key] = compute()
            return cast("Found", self._found[key])


class SharedLooks:
    """The looks of some flows, in threads of their own, at the same clusters."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._begun = 0
        self._is_looking = False
        # The last look, its number, and what it raised.
        self._last: tuple[int, Look | None, Exception | None] = (0, None, None)

    def look(self, observe: Callable[[], Look]) -> Look:
        """Return a look that began after this call; one of those that wait makes it.

        Args:
            observe: makes a look.

        Raises:
            Exception: what `observe` raised.
        """
        with self._change:
            wanted = self._begun + 1
            self._change.wait_for(lambda: self._last[0] >= wanted or not self._is_looking)
            if self._last[0] < wanted:
                self._begun, self._is_looking = wanted, True
                number = wanted
            else:
                number = 0
        if number:
            self._make(number, observe)
        _, look, error = self._last
        if error is not None:
            raise error
        assert look is not None, "it was made"
        return look

    def _make(self, number: int, observe: Callable[[], Look]) -> None:
        look, error = None, None
        try:
            look = observe()
        except Exception as raised:
            error = raised
        with self._change:
            self._last, self._is_looking = (number, look, error), False
            self._change.notify_all()
