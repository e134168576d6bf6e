"""What becomes of Ctrl-C and SIGTERM while the locks of targets are held: words, and an end that gives them back.

`Locks` hears from the moment it asks for the first lock. Until a plan is carried out a signal ends the command at once,
as nothing was changed; from then on the first one is noted, what is under way is finished and nothing else is begun, so
that what was done can be told. A second one ends at once.
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
    """Hears Ctrl-C and SIGTERM between `begin` and `end`; in any other thread than the main one it hears nothing."""

    def __init__(self, reporter: Reporter = SILENT) -> None:
        self._reporter = reporter
        self._former: dict[signal.Signals, Any] = {}
        self._is_changing = False
        self._noted: signal.Signals | None = None

    def begin(self) -> None:
        """Listen."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # A shell lets what it starts in the background ignore Ctrl-C, which is for others then.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._hear)

    def end(self) -> None:
        """Listen no longer."""
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()

    def change(self) -> None:
        """Say that from now on something may be changed, so that nobody ends in the middle of it."""
        self._is_changing = True

    def check(self) -> None:
        """Make sure that nobody has asked us to end.

        Raises:
            AnabranchError: AB504, somebody has.
        """
        if problem := self.problem:
            error = AnabranchError(problem)
            error.exit_code = self.exit_code
            raise error

    @property
    def problem(self) -> Problem | None:
        """That somebody has asked us to end while something was changed; None where nobody has."""
        if self._noted is None:
            return None
        what = f"was interrupted ({self._noted.name})"
        return Problem("AB504", "", what, "run it again: what was done stays done")

    @property
    def exit_code(self) -> int:
        """What a command ends with that did not do everything."""
        return 1 if self._noted is None else 128 + self._noted

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        heard = signal.Signals(number)
        if self._is_changing and self._noted is None:
            self._noted = heard
            self._reporter.note(_ENDING, "info")
            return
        self._reporter.note(_AT_ONCE if self._is_changing else _NOTHING, "info")
        # Not an error of ours: nobody on the way may take it for one.
        raise SystemExit(128 + heard)
