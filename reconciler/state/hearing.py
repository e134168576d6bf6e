"""Which tasks and processes live, by what was heard of them since this process listens. Pure.

A word of the status topic carries the time of its speaker's clock, which may be hours away from this machine's. A
speaker that lives says something new every second: one that has said nothing new for `STALE_SECONDS`, by the clock of
this process, does not. `running` asks before something is deleted or moved, commands that show words before they do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from reconciler.model.tasks.status import STALE_SECONDS, TaskStatus

SURE_SECONDS = 2.0
"""How long a look that shows words once listens where clocks alone leave in doubt whether a speaker lives."""
_AHEAD_SECONDS = 1.0
_TICK = 0.1

_Key = tuple[str, str, int, str]
"""A topology, a flow, a task and a run."""


@dataclass(frozen=True)
class _Heard:
    """A word.

    Attributes:
        word: as it was said.
        at: when it was first seen here, in monotonic seconds.
        time: likewise, in seconds since 1970.
        is_new: whether it was said since this process listens; how old a word is that was there before, nothing tells.
    """

    word: TaskStatus
    at: float
    time: float
    is_new: bool


class Hearing:
    """The words of one status topic as they come, judged by this process's clock alone."""

    def __init__(self) -> None:
        self._heard: dict[_Key, _Heard] = {}
        self._since: float | None = None

    def hear(self, words: Iterable[TaskStatus]) -> None:
        """Take the newest word of each task of each run, as `StatusReader.current` returns them."""
        now, at = time.time(), time.monotonic()
        is_new = self._since is not None
        self._since = at if self._since is None else self._since
        before = self._heard
        self._heard = {
            key: before[key] if key in before and before[key].word == word else _Heard(word, at, now, is_new)
            for key, word in ((_key(word), word) for word in words)
        }

    def living(self) -> list[TaskStatus]:
        """Return the words of those that live, and of those that cannot be told from them yet.

        What was said before this process listened counts for `STALE_SECONDS`, as a speaker that lives has said
        something new by then.
        """
        now = time.monotonic()
        return [one.word for one in self._heard.values() if not one.word.stopped and now - one.at < STALE_SECONDS]

    def unsure(self) -> list[TaskStatus]:
        """Return the words of `living` that were there before this process listened."""
        return [word for word in self.living() if not self._heard[_key(word)].is_new]

    def on_own_clock(self) -> list[TaskStatus]:
        """Return all words with the time at which they were heard, in seconds since 1970 of this machine's clock.

        `is_live` of such a word compares two readings of one clock. A word that was there before keeps its speaker's
        time, as far as that is not in the future, until the speaker would have said something new.
        """
        return [_placed(one, time.monotonic()) for one in self._heard.values()]

    def doubtful(self, shown: Iterable[TaskStatus]) -> bool:
        """Tell whether of a word that was heard here another machine's clock alone says if its speaker lives.

        For a word that looks as if it was said just now that clock is taken for right. For all others somebody has to
        listen, though not for longer than `SURE_SECONDS`.

        Args:
            shown: words of `on_own_clock`.
        """
        if self._since is None or time.monotonic() - self._since >= SURE_SECONDS:
            return False
        found = (self._heard.get(_key(word)) for word in shown)
        return any(one is not None and not _is_plain(one) for one in found)


def _is_plain(one: _Heard) -> bool:
    if one.is_new or one.word.stopped:
        return True
    return -_AHEAD_SECONDS <= one.time - one.word.time < STALE_SECONDS


def _key(word: TaskStatus) -> _Key:
    return word.topology, word.flow, word.task, word.run


def _placed(one: _Heard, now: float) -> TaskStatus:
    # As long as a word is the newest its time stays the same: others tell by it whether something new was said.
    said = one.time
    if not one.is_new and one.word.time > said + _AHEAD_SECONDS and now - one.at >= SURE_SECONDS:
        # Its clock is ahead, so nothing tells how old the word is; a speaker that lives had said another by now.
        said -= STALE_SECONDS
    return replace(one.word, time=said if one.is_new else min(said, one.word.time))


def await_sure(is_in_doubt: Callable[[], bool], look: Callable[[], None]) -> None:
    """Look again and again while something is in doubt, for `SURE_SECONDS` at most.

    Args:
        is_in_doubt: whether a word of those that matter is `doubtful`.
        look: hears what is new.
    """
    deadline = time.monotonic() + SURE_SECONDS + _TICK
    while is_in_doubt() and time.monotonic() < deadline:
        time.sleep(_TICK)
        look()
