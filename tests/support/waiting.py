"""Waits for a state instead of a time: one deadline, and an error that shows what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# A slow machine is no failure: a wait that ends well costs nothing of this.
DEADLINE_SECONDS = 300.0
_PAUSE_SECONDS = 0.05
_MOST_SHOWN = 4_000

T = TypeVar("T")


def eventually(
    what: str,
    look: Callable[[], T],
    until: Callable[[T], object] = bool,
    *,
    seconds: float = DEADLINE_SECONDS,
    detail: Callable[[], str] | None = None,
) -> T:
    """Call `look` again and again until `until` holds of its result, and return that result.

    Args:
        what: the awaited state, for the error.
        look: reads the state; an exception ends the wait.
        until: whether the state is the awaited one; by default, whether it is true.
        seconds: the deadline.
        detail: more text for the error, such as the end of a log.

    Raises:
        AssertionError: the deadline passed; the message holds `what` and the last result.
    """
    deadline = time.monotonic() + seconds
    while not until(found := look()):
        if time.monotonic() > deadline:
            more = f"\n{detail()[-_MOST_SHOWN:]}" if detail else ""
            message = f"not within {seconds:g} s: {what}; seen last: {found!r}{more}"
            raise AssertionError(message)
        time.sleep(_PAUSE_SECONDS)
    return found
