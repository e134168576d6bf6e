"""Asks once for all who want to know the same kind of thing at about the same time.

Thousands of partitions that are opened together would otherwise be thousands of requests for each thing that an opening
asks. `lookups` gathers with it.
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
    """One kind of question, one request under way at a time; who asks meanwhile is in the next one.

    So every answer is that of a request that was sent after it was asked for.

    Args:
        loop: the task's loop.
        ask: asks for several at once; for each it returns what is asked for, or the error that concerns it alone.
    """

    def __init__(self, loop: Loop, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V | Exception]]]) -> None:
        self._loop = loop
        self._ask = ask
        self._waiting: dict[K, Future] = {}
        self._is_asking = False

    async def get(self, key: K) -> V:
        """Return what is asked for.

        Raises:
            ConnectionLost: no answer, or one without it.
            Exception: what the question raised, or the error that concerns `key`.
        """
        found: V = await self._asked(key)
        return found

    async def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return what is asked for, of several at once; raises as `get`."""
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
