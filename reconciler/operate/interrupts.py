"""What becomes of Ctrl-C and SIGTERM while the locks of targets are held: a note, and an end that releases them.

`Locks` handles them from before it takes the first lock. Until a plan is carried out a signal ends the command at once,
as nothing was changed. From then on the first signal is noted: what is under way is finished, nothing else is begun,
and the outcome is returned. A second one ends at once.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.operate.reporter import SILENT, Reporter

_ENDING = "Interrupted: what is under way is finished, and nothing else is begun; once more ends at once."
_NOTHING = "Interrupted: nothing was changed."
_AT_ONCE = "Interrupted: what was done stays done, and `anabranch plan` shows what is left."


class Interrupts:
    """Handles Ctrl-C and SIGTERM between `begin` and `end`; does nothing in other threads than the main one."""

    def __init__(self, reporter: Reporter = SILENT) -> None:
        self._reporter = reporter
        self._former: dict[signal.Signals, Any] = {}
        self._is_changing = False
        self._noted: signal.Signals | None = None

    def begin(self) -> None:
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # A shell lets what it starts in the background ignore Ctrl-C, which is for others then.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._hear)

    def end(self) -> None:
        """Restore the former handlers."""
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()

    def change(self) -> None:
        """Note that from now on something may be changed: a signal no longer ends in the middle of it."""
        self._is_changing = True

    def check(self) -> None:
        """Check that no signal has come.

        Raises:
            AnabranchError: AB504, one has.
        """
        if problem := self.problem:
            error = AnabranchError(problem)
            error.exit_code = self.exit_code
            raise error

    @property
    def problem(self) -> Problem | None:
        """AB504 where a signal came while something was changed; else None."""
        if self._noted is None:
            return None
        what = f"was interrupted ({self._noted.name})"
        return Problem("AB504", "", what, "run it again: what was done stays done")

    @property
    def exit_code(self) -> int:
        """The exit code of a command that did not do everything: 128 plus the signal's number, else 1."""
        return 1 if self._noted is None else 128 + self._noted

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        heard = signal.Signals(number)
        if self._is_changing and self._noted is None:
            self._noted = heard
            self._reporter.note(_ENDING, "info")
            return
        self._reporter.note(_AT_ONCE if self._is_changing else _NOTHING, "info")
        # Not an Exception: no handler on the way may take it for an error.
        raise SystemExit(128 + heard)
