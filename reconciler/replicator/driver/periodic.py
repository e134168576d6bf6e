"""A thread that does periodic work for one flow: no failure ends it, and each failure is reported once.

`refresh` does it for topics, and the checkpoint service for groups.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from reconciler.model.base.errors import AnabranchError


class Periodic(threading.Thread, ABC):
    """Runs until `end`.

    Args:
        what: what it maintains, for the thread's name and messages.
        flow: name of the flow.
        warn: called with each new problem, from this thread.
        patience: seconds for which `end` waits for a pass that is under way.

    Attributes:
        flow: name of the flow.
        has_failed: whether the last pass did not finish.
    """

    def __init__(self, what: str, flow: str, warn: Callable[[str], None], patience: float) -> None:
        super().__init__(name=f"{what}-{flow}", daemon=True)
        self.flow = flow
        self.has_failed = False
        self._what = what
        self._warn = warn
        self._patience = patience
        self._over = threading.Event()
        self._told: set[str] = set()

    def run(self) -> None:
        """Repeat passes until `over` or `end`."""
        try:
            while not self._over.wait(self._pause()):
                self.look()
        finally:
            self._close()

    def over(self) -> None:
        """Begin no further pass."""
        self._over.set()

    def end(self) -> None:
        """Begin no further pass, and wait `patience` seconds at most for one that is under way."""
        self._over.set()
        if self.is_alive():
            self.join(self._patience)

    def look(self) -> None:
        """Make one pass; problems are reported, never raised."""
        troubles: list[str] = []
        has_looked = self.has_failed = True
        try:
            has_looked = self._look(troubles)
            self.has_failed = False
        except AnabranchError as error:
            troubles += [str(problem) for problem in error.problems]
        except Exception as error:
            # A fault of this program must end neither the run nor the thread.
            troubles.append(f"looking after {self._what} failed: {type(error).__name__}: {error}")
        if not has_looked:
            return
        for trouble in dict.fromkeys(troubles):
            # A problem that was reported after the last pass is not repeated.
            if trouble not in self._told:
                self._warn(f"flow {self.flow}: {trouble}")
        self._told = set(troubles)

    @abstractmethod
    def _look(self, troubles: list[str]) -> bool:
        """Look once.

        Args:
            troubles: a list to which problems for the user are added.

        Returns:
            Whether it has looked: Whether the pass did anything; if not, the problems reported before still count.

        Raises:
            AnabranchError: the pass could not go on; reported like other problems.
        """

    @abstractmethod
    def _pause(self) -> float:
        """Return how many seconds to wait before the next pass."""

    def _close(self) -> None:
        """Close what was opened; called when the thread ends."""
        return
