"""Turns in which the tasks of a process begin: a few at a time.

A task that begins connects, joins its flow's group, reads records of copies and compares logs. Where a dozen do so at
the same time in one process, and a hundred on one machine, requests time out and are sent again: none of them begins.
`rounds` gives each task a turn, `task` ends it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# How often a wait looks whether it is to end (seconds).
_LOOK_EVERY = 0.2


class Turn:
    """The turn of one task, until `over` or the end of its time."""

    def __init__(self, turns: Turns, until: float) -> None:
        self._turns = turns
        self.until = until
        self._is_over = False

    def over(self) -> None:
        """Let the next task begin; more than once is allowed."""
        if not self._is_over:
            self._is_over = True
            self._turns.end(self)


class Turns:
    """Lets a few begin at the same time.

    Args:
        most: how many.
        seconds: after which a turn counts no more: a cluster that is away must not keep all others waiting.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._change = threading.Condition()
        self._taken: list[Turn] = []

    def take(self, is_given_up: Callable[[], bool]) -> Turn:
        """Wait for a turn, or until it is given up, and return it.

        Args:
            is_given_up: whether the task is not to begin any more.
        """
        with self._change:
            while not is_given_up():
                now = time.monotonic()
                self._taken = [turn for turn in self._taken if turn.until > now]
                if len(self._taken) < self._most:
                    break
                self._change.wait(_LOOK_EVERY)
            turn = Turn(self, time.monotonic() + self._seconds)
            self._taken.append(turn)
            return turn

    def end(self, turn: Turn) -> None:
        """End a turn; called by it."""
        with self._change:
            if turn in self._taken:
                self._taken.remove(turn)
                self._change.notify()
