"""Records in journals that are none of ours: passed over by their readers, and named once in each process.

A command has them printed (`listen`). Elsewhere, as in Spark's tasks and in programs of users, they are Python
warnings. Of each topic five are named, and one more line stands for all others: their number has no bound.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable

from reconciler.model.base.errors import Problem

MOST = 5
"""So many records of a topic are named."""

_REMEDY = "find out which program writes there; WRITE on it is for `apply` and the replicator alone (permissions.md)"


class StrangeRecord(UserWarning):
    """A record of a journal is none of ours."""


Say = Callable[[Problem], None]


def _warn(problem: Problem) -> None:
    # A process that makes errors of warnings must not end by a record either.
    with contextlib.suppress(StrangeRecord):
        warnings.warn(StrangeRecord(str(problem)), stacklevel=4)


class _Strangers:
    """What was named in this process."""

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


def listen(say: Say) -> None:
    """Have records that are not ours named to a function from now on, each once, also those that were named before.

    Args:
        say: called from the thread that reads, by one at a time.
    """
    _STRANGERS.listen(say)


def note(where: str, offset: int, why: str) -> None:
    """Name a record that was passed over, unless it was named before, or others of its topic were so often.

    Args:
        where: names the cluster, the topic and the partition.
        offset: of the record.
        why: what was expected there and what was found.
    """
    _STRANGERS.note(where, offset, why)
