"""Sends a request again while a coordinator is not ready: it moves, loads, or is busy with a transaction before."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from reconciler.wire.net.loop import Loop
from reconciler.wire.protocol.values import BrokerError

T = TypeVar("T")

_PAUSE = 0.002
_LONGEST_PAUSE = 0.1


async def when_ready(loop: Loop, ask: Callable[[], Awaitable[T]], not_yet: Collection[int], seconds: float) -> T:
    """Return the answer to a request, which is sent again after ever longer pauses.

    Args:
        loop: on which it waits.
        ask: sends it once.
        not_yet: Kafka's error codes that lead to another try.
        seconds: after so many there is no further try.

    Raises:
        BrokerError: another one, or one of them for too long.
    """
    deadline, pause = time.monotonic() + seconds, _PAUSE
    while True:
        try:
            return await ask()
        except BrokerError as error:
            if error.code not in not_yet or time.monotonic() > deadline:
                raise
        await loop.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
