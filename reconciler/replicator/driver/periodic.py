"""A thread that looks after one flow again and again: no trouble ends it, and each is told once.

`refresh` looks after topics, and the service of checkpoints after groups.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from reconciler.model.base.errors import AnabranchError


class Periodic(threading.Thread, ABC):
    """Looks until it is ended.

    Args:
        what: what it looks after, for the thread's name and messages.
        flow: name of the flow.
        warn: told of each new trouble, from this thread.
        patience: for how many seconds `end` waits for a look that is under way.

    Attributes:
        flow: name of the flow.
        has_failed: whether the last look was not done to its end.
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
        """Look again and again until `over` or `end`."""
        try:
            while not self._over.wait(self._pause()):
                self.look()
        finally:
            self._close()

    def over(self) -> None:
        """Begin no further look."""
        self._over.set()

    def end(self) -> None:
        """Begin no further look, and wait for one that is under way, though not for ever."""
        self._over.set()
        if self.is_alive():
            self.join(self._patience)

    def look(self) -> None:
        """Look once; troubles are told, never raised."""
        troubles: list[str] = []
        has_looked = self.has_failed = True
        try:
            has_looked = self._look(troubles)
            self.has_failed = False
        except AnabranchError as error:
            troubles += [str(problem) for problem in error.problems]
        except Exception as error:
            # A fault of this program must neither end the run nor the looking.
            troubles.append(f"looking after {self._what} failed: {type(error).__name__}: {error}")
        if not has_looked:
            return
        for trouble in dict.fromkeys(troubles):
            # The same trouble again is no news.
            if trouble not in self._told:
                self._warn(f"flow {self.flow}: {trouble}")
        self._told = set(troubles)

    @abstractmethod
    def _look(self, troubles: list[str]) -> bool:
        """Look once.

        Args:
            troubles: where to put what people are to know.

        Returns:
            Whether it has looked: where it has not, what was told before counts on.

        Raises:
            AnabranchError: it could not go on; told like troubles.
        """

    @abstractmethod
    def _pause(self) -> float:
        """Return how many seconds to wait before the next look."""

    def _close(self) -> None:
        """Close what was opened; called when it looks no more."""
        return
