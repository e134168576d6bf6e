"""Which tasks and processes are live, from the records of the status topic that arrive while this process reads. Pure.

A record carries the time of its writer's clock, which may be hours away from this machine's. A live writer posts a new
record every second, so a writer without a new one for `STALE_SECONDS` of this process's clock has ended. `running` uses
it before anything is deleted or moved, and the commands that show statuses before they print them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from reconciler.model.tasks.status import STALE_SECONDS, TaskStatus

SURE_SECONDS = 2.0
"""How long a command that shows statuses once reads on where only two machines' clocks decide if a task is live."""
_AHEAD_SECONDS = 1.0
_TICK = 0.1

_Key = tuple[str, str, int, str]
"""A topology, a flow, a task and a run."""


@dataclass(frozen=True)
class _Seen:
    """A record of the status topic.

    Attributes:
        word: the status in it.
        at: when it was first read here, in monotonic seconds.
        time: likewise, in seconds since 1970.
        is_new: whether it arrived after the first read; the age of an earlier one is unknown.
    """

    word: TaskStatus
    at: float
    time: float
    is_new: bool


class Liveness:
    """The newest statuses of one status topic, judged by this process's clock alone."""

    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen] = {}
        self._since: float | None = None

    def update(self, words: Iterable[TaskStatus]) -> None:
        """Take the newest status of each task of each run, as `StatusReader.current` returns them."""
        now, at = time.time(), time.monotonic()
        is_new = self._since is not None
        self._since = at if self._since is None else self._since
        before = self._seen
        self._seen = {
            key: before[key] if key in before and before[key].word == word else _Seen(word, at, now, is_new)
            for key, word in ((_key(word), word) for word in words)
        }

    def living(self) -> list[TaskStatus]:
        """Return the statuses of live writers, and of those that may be live.

        A record from before the first read counts for `STALE_SECONDS`: a live writer posts another one within that.
        """
        now = time.monotonic()
        return [one.word for one in self._seen.values() if not one.word.stopped and now - one.at < STALE_SECONDS]

    def unsure(self) -> list[TaskStatus]:
        """Return those of `living` whose records are older than the first read."""
        return [word for word in self.living() if not self._seen[_key(word)].is_new]

    def on_own_clock(self) -> list[TaskStatus]:
        """Return all statuses with the time at which they arrived, in seconds since 1970 of this machine's clock.

        `is_live` of such a status compares two readings of one clock. A record from before the first read keeps its
        writer's time, if that is not in the future, until a live writer would have posted another one.
        """
        return [_placed(one, time.monotonic()) for one in self._seen.values()]

    def doubtful(self, shown: Iterable[TaskStatus]) -> bool:
        """Return whether only another machine's clock decides if the writer of one of these statuses is live.

        A record whose time is just now counts as right. For all others the caller reads on, for `SURE_SECONDS` at most.

        Args:
            shown: statuses of `on_own_clock`.
        """
        if self._since is None or time.monotonic() - self._since >= SURE_SECONDS:
            return False
        found = (self._seen.get(_key(word)) for word in shown)
        return any(one is not None and not _is_plain(one) for one in found)


def _is_plain(one: _Seen) -> bool:
    if one.is_new or one.word.stopped:
        return True
    return -_AHEAD_SECONDS <= one.time - one.word.time < STALE_SECONDS


def _key(word: TaskStatus) -> _Key:
    return word.topology, word.flow, word.task, word.run


def _placed(one: _Seen, now: float) -> TaskStatus:
    # The time of a record stays the same while it is the newest: readers compare it to find new records.
    arrived = one.time
    if not one.is_new and one.word.time > arrived + _AHEAD_SECONDS and now - one.at >= SURE_SECONDS:
        # Its clock is ahead, so the age of the record is unknown; a live writer would have posted another one by now.
        arrived -= STALE_SECONDS
    return replace(one.word, time=arrived if one.is_new else min(arrived, one.word.time))


def await_sure(is_in_doubt: Callable[[], bool], look: Callable[[], None]) -> None:
    """Call `look` again while something is in doubt, for `SURE_SECONDS` at most.

    Args:
        is_in_doubt: whether a status that matters is `doubtful`.
        look: reads new records.
    """
    deadline = time.monotonic() + SURE_SECONDS + _TICK
    while is_in_doubt() and time.monotonic() < deadline:
        time.sleep(_TICK)
        look()
