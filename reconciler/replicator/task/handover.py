"""Passes the ledgers of rounds from the thread that copies to the one that Spark calls.

`rounds` has one for each task. The task goes on copying when a round is over: what it writes before the next one begins
is in the ledger of that one.
"""

from __future__ import annotations

import threading
import time

from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.task.ledger import LedgerRow

LINGER = 5.0
"""Seconds for which a task goes on without a round: Spark may have given the next one to another process."""


class RoundHandover:
    """The rounds of one task, between two threads.

    Attributes:
        assignment: of the newest round.
        is_told_to_end: whether `end` was called.
    """

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.is_told_to_end = False
        self._change = threading.Condition()
        self._over = threading.Event()
        self._rows: list[LedgerRow] = []
        # Whether a round is asked for and not handed over; when it ends, or when the last one was (monotonic seconds).
        self._is_awaited = False
        self._at = time.monotonic()
        self._is_ending = False
        self._is_over = False
        self._failure: BaseException | None = None

    # --- Spark's thread ----------------------------------------------------------------------------------------------

    def begin(self, assignment: Assignment, seconds: float, over: threading.Event) -> bool:
        """Begin a round; return False where the task has ended, and copies no more.

        Args:
            assignment: the partitions.
            seconds: how long it lasts.
            over: is set when it is over, and when the task has failed.
        """
        with self._change:
            if self._is_over or self._is_ending:
                return False
            self.assignment, self._is_awaited, self._at = assignment, True, time.monotonic() + seconds
            self._over = over
            self._change.notify_all()
            return True

    def cut_short(self) -> None:
        """Let the round be over at once."""
        with self._change:
            self._at = min(self._at, time.monotonic())

    def await_ledger(self) -> list[LedgerRow]:
        """Wait until the round is over, and return its ledger.

        Raises:
            BaseException: what the task has raised.
        """
        with self._change:
            self._change.wait_for(lambda: not self._is_awaited or self._is_over)
            if self._failure is not None:
                raise self._failure
            rows, self._rows = self._rows, []
            return rows

    @property
    def failure(self) -> BaseException | None:
        """What the task has raised, if it has ended with that."""
        return self._failure

    @property
    def is_awaited(self) -> bool:
        """Whether a round is under way."""
        return self._is_awaited and not self._is_over

    def end(self) -> None:
        """Let the task end, and wait until it has."""
        with self._change:
            self._is_ending = self.is_told_to_end = True
            self._change.notify_all()
            self._change.wait_for(lambda: self._is_over)

    # --- the task's thread -------------------------------------------------------------------------------------------

    def is_due(self, now: float) -> bool:
        """Return whether the round is over at `now` (monotonic seconds)."""
        return self._is_awaited and now >= self._at

    def hand_over(self, rows: list[LedgerRow]) -> None:
        """End the round, with all that was noted since the one before."""
        with self._change:
            self._rows += rows
            self._is_awaited, self._at = False, time.monotonic()
            self._over.set()
            self._change.notify_all()

    def keep(self, rows: list[LedgerRow]) -> None:
        """Add rows to the ledger of the round, which goes on."""
        with self._change:
            self._rows += rows

    def is_given_up(self, now: float) -> bool:
        """Return whether no round has followed the last one for too long, or the task is to end: then none begins."""
        if not self._is_awaited and now - self._at > LINGER:
            with self._change:
                self._is_ending = self._is_ending or not self._is_awaited
        return self._is_ending

    def await_round(self) -> bool:
        """Wait for a round; return False where none comes, nor will."""
        with self._change:
            self._change.wait_for(lambda: self._is_awaited or self._is_ending, LINGER)
            self._is_ending = self._is_ending or not self._is_awaited
            return not self._is_ending

    def close(self, failure: BaseException | None) -> None:
        """Note that the task has ended, and what it has raised."""
        with self._change:
            self._is_over, self._failure = True, failure
            self._over.set()
            self._change.notify_all()
