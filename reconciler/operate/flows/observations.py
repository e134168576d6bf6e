"""Observations of clusters that several flows share: plans of flows between the same clusters rest on the same facts.

`following` takes part in one for each flow at each refresh. An observation serves all that asked before it began, and
none that asked after that: it is as new for each as one of its own. What follows from it alone is computed once.
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
class Observation:
    """One observation, and what was computed from it.

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
            compute: a pure function of this observation.
        """
        with self._lock:
            if key not in self._found:
                self._found[key] = compute()
            return cast("Found", self._found[key])


class SharedObservations:
    """The observations of the same clusters by some flows, in threads of their own."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._begun = 0
        self._is_observing = False
        # The last one, its number, and what it raised.
        self._last: tuple[int, Observation | None, Exception | None] = (0, None, None)

    def newest(self, observe: Callable[[], Observation]) -> Observation:
        """Return an observation that began after this call; one of those that wait makes it.

        Args:
            observe: makes one.

        Raises:
            Exception: what `observe` raised.
        """
        with self._change:
            number = self._begun + 1
            self._change.wait_for(lambda: self._last[0] >= number or not self._is_observing)
            is_mine = self._last[0] < number
            if is_mine:
                self._begun, self._is_observing = number, True
        if is_mine:
            self._make(number, observe)
        _, found, error = self._last
        if error is not None:
            raise error
        assert found is not None, "it was made"
        return found

    def _make(self, number: int, observe: Callable[[], Observation]) -> None:
        found, error = None, None
        try:
            found = observe()
        except Exception as raised:
            error = raised
        with self._change:
            self._last, self._is_observing = (number, found, error), False
            self._change.notify_all()
