"""Sends one request for all lookups of a kind that are made at about the same time.

Thousands of partitions that are opened together would otherwise be thousands of requests for each lookup of an opening.
`lookups` gathers with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from kafka.future import Future

from reconciler.wire.net.loop import Loop
from reconciler.wire.protocol.values import ConnectionLost

K = TypeVar("K")
V = TypeVar("V")

_LEFT_OUT = "the answer leaves out what was asked for"


class Gather(Generic[K, V]):
    """One kind of lookup, one request under way at a time; lookups made meanwhile are in the next one.

    So every answer comes from a request that was sent after its lookup.

    Args:
        loop: the task's loop.
        ask: looks up several keys in one request; returns the value of each, or the error that concerns it alone.
    """

    def __init__(self, loop: Loop, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]]) -> None:
        self._loop = loop
        self._ask = ask
        self._waiting: dict[K, Future] = {}
        self._is_asking = False

    async def get(self, key: K) -> V:
        """Return the value of a key.

        Raises:
            ConnectionLost: no answer, or one without it.
            Exception: what the lookup raised, or the error that concerns `key`.
        """
        found: V = await self._asked(key)
        return found

    async def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of several keys; raises as `get`."""
        return {key: await future for key, future in {key: self._asked(key) for key in keys}.items()}

    def _asked(self, key: K) -> Future:
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = Future()
        if not self._is_asking:
            self._is_asking = True
            self._loop.spawn(self._ask_all)
        return future

    async def _ask_all(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, {}
                await self._answer(asked)
        finally:
            self._is_asking = False

    async def _answer(self, asked: Mapping[K, Future]) -> None:
        try:
            found = await self._ask(list(asked))
        except Exception as error:
            for future in asked.values():
                future.failure(error)
            return
        for key, future in asked.items():
            value = found.get(key, ConnectionLost(_LEFT_OUT))
            if isinstance(value, Exception):
                future.failure(value)
            else:
                future.success(value)
