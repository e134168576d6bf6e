"""The signals that ask a run to stop: Ctrl-C and SIGTERM, before Spark runs and while it does."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType


class StopSignals:
    """Turns SIGTERM and SIGINT into a flag.

    Before Spark runs nothing is in flight, so until then they end the run at once.

    Attributes:
        asked: whether one was received.
        number: of the first one; 0 while there is none.
        may_raise: whether the next one ends what is under way.
    """

    def __init__(self) -> None:
        self.asked = False
        self.number = 0
        self.may_raise = True
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopSignals:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def raise_from_now_on(self) -> None:
        """Have signals end what is under way again.

        Raises:
            StoppedEarly: one was received meanwhile.
        """
        self.may_raise = True
        if self.asked:
            raise StoppedEarly

    def hear_again(self) -> None:
        """Install the handlers again: Spark installs its own for SIGINT, which would cancel the tasks."""
        for number in self._before:
            signal.signal(number, self._hear)

    def ended(self, error: BaseException) -> bool:
        """Return whether an error before Spark ran is a stop: C code replaces what a handler raises in it."""
        return isinstance(error, StoppedEarly) or (self.asked and isinstance(error, Exception))

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.asked = True
        self.number = self.number or number
        if self.may_raise:
            raise StoppedEarly


class StoppedEarly(BaseException):
    """A stop was requested before anything ran; not an Exception, so that no library swallows it."""
