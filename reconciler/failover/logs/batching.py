"""Sends requests about many partitions concurrently, some hundred at a time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from reconciler.wire import Loop

Item = TypeVar("Item")

_AT_ONCE = 500


async def in_portions(loop: Loop, items: Sequence[Item], ask: Callable[[Item], Coroutine[Any, Any, None]]) -> None:
    """Call `ask` for each item; the wire merges concurrent calls into few requests to brokers.

    Raises:
        Exception: the first one that a call raised, after the calls beside it have ended.
    """
    for first in range(0, len(items), _AT_ONCE):
        await loop.together(partial(ask, item) for item in items[first : first + _AT_ONCE])
