"""Reports records in journals that other programs have written: readers skip them, and each is reported once.

Commands print them (`listen`). Elsewhere, as in Spark's tasks and in programs of users, they are Python warnings. Five
records of a topic are reported, and then one line for all others, as their number has no bound.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable

from reconciler.model.base.errors import Problem

MOST = 5
"""How many records of a topic are reported."""

_REMEDY = "find out which program writes there; WRITE on it is for `apply` and the replicator alone (permissions.md)"


class StrangeRecord(UserWarning):
    """A record of a journal was written by another program."""


Say = Callable[[Problem], None]


def _warn(problem: Problem) -> None:
    # Where warnings are errors, such a record must not end the process.
    with contextlib.suppress(StrangeRecord):
        warnings.warn(StrangeRecord(str(problem)), stacklevel=4)


class _Strangers:
    """The records that this process has reported."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: dict[str, set[int]] = {}
        self._say: Say = _warn

    def listen(self, say: Say) -> None:
        with self._lock:
            self._say = say
            self._named = {}

    def note(self, where: str, offset: int, why: str) -> None:
        # Readers in several threads may meet the same record.
        with self._lock:
            named = self._named.setdefault(where, set())
            if offset in named or len(named) > MOST:
                return
            named.add(offset)
            if len(named) > MOST:
                place, message = where, "further records are not ours: they are passed over, and not named one by one"
            else:
                place, message = f"{where}, offset {offset}", f"a record is not ours, and is passed over: {why}"
            self._say(Problem("AB324", place, message, _REMEDY))


_STRANGERS = _Strangers()


def listen(report: Say) -> None:
    """Report such records to a function from now on, each once, also those that were reported before.

    Args:
        report: called from reading threads, one at a time.
    """
    _STRANGERS.listen(report)


def note(where: str, offset: int, why: str) -> None:
    """Report a record that was skipped, unless it was reported before, or `MOST` others of its topic were.

    Args:
        where: names the cluster, the topic and the partition.
        offset: of the record.
        why: what was expected there and what was found.
    """
    _STRANGERS.note(where, offset, why)
