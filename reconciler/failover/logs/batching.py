"""Asks about many partitions side by side, a portion of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from reconciler.wire import Loop

Item = TypeVar("Item")

_AT_ONCE = 500


async def in_portions(loop: Loop, items: Sequence[Item], ask: Callable[[Item], Coroutine[Any, Any, None]]) -> None:
    """Ask about each item; what the wire is asked at the same time it asks brokers in few requests.

    Raises:
        Exception: what the first of them has raised, when those that were asked with it have ended.
    """
    for first in range(0, len(items), _AT_ONCE):
        await loop.together(partial(ask, item) for item in items[first : first + _AT_ONCE])
