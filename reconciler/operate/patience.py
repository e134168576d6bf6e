"""Waiting for clusters that do not answer: tries again with growing pauses, and reports each change once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from reconciler.model.base.errors import Problem, Unreachable
from reconciler.operate.reporter import SILENT, Reporter

Answer = TypeVar("Answer")

_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 30.0


class Patience:
    """Waits for clusters that do not answer.

    Args:
        seconds: how long; 0 for not at all, infinity for without end.
        reporter: receives a warning when other clusters than before do not answer, and a note when all do again.
    """

    def __init__(self, seconds: float, reporter: Reporter = SILENT) -> None:
        self._seconds = seconds
        self._reporter = reporter

    def until_answered(self, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, after as many tries as it takes until all clusters answer.

        Args:
            ask: raises Unreachable where one does not.

        Raises:
            Unreachable: the time is up; as `ask` raised it last.
        """
        deadline: float | None = None
        pause, told = _FIRST_SECONDS, frozenset[str]()
        while True:
            try:
                found = ask()
            except Unreachable as error:
                # From here on: that it does not answer takes some time, too.
                deadline = time.monotonic() + self._seconds if deadline is None else deadline
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                away = frozenset(problem.where for problem in error.problems)
                if away != told:
                    self._reporter.warn([_waited_for(problem) for problem in error.problems])
                    told = away
                time.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_SECONDS)
            else:
                if told:
                    self._reporter.note("all clusters answer; going on")
                return found


def _waited_for(problem: Problem) -> Problem:
    return Problem(problem.code, problem.where, f"{problem.message}; waiting for it", problem.remedy)
