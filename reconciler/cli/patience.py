"""`--wait[=DURATION]`: commands that run on wait for clusters that do not answer, of which people hear at once.

They look again with growing pauses, and say once what is away, and once that it is back.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from reconciler.cli.common import print_problems, say
from reconciler.model.base.errors import Problem, Unreachable

Answer = TypeVar("Answer")

OPTION = "--wait"
FOR_EVER = "forever"
COMMANDS = ("replicate", "reconcile")
"""Those whose `--wait` may stand alone."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]*)")
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 30.0

Wait = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="[DURATION]",
        help="Wait for clusters that do not answer, for so long (30s, 5min) or for ever, instead of ending with 6.",
    ),
]


def is_duration(written: str) -> bool:
    """Tell whether a text says for how long."""
    found = _WRITTEN.fullmatch(written)
    return written == FOR_EVER or (found is not None and found[2] in _UNITS)


class Patience:
    """Waits for clusters.

    Args:
        wait: what `--wait` says; None where it is not there, and nothing is waited for.

    Raises:
        typer.BadParameter: it says no duration.
    """

    def __init__(self, wait: str | None) -> None:
        self._seconds = 0.0
        if wait is None:
            return
        if not is_duration(wait):
            message = f"expected a duration such as 30s, 5min or 1h, or nothing for ever; found {wait}"
            raise typer.BadParameter(message, param_hint=OPTION)
        found = _WRITTEN.fullmatch(wait)
        self._seconds = math.inf if found is None else float(found[1]) * _UNITS[found[2]]

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
                    print_problems([_waited_for(problem) for problem in error.problems], severity="warning")
                    told = away
                time.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_SECONDS)
            else:
                if told:
                    say("all clusters answer; going on")
                return found


def _waited_for(problem: Problem) -> Problem:
    return Problem(problem.code, problem.where, f"{problem.message}; waiting for it", problem.remedy)
