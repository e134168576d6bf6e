"""One read for all concurrent callers: `copy_records` and `position_recovery` serve many takeovers at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from reconciler.wire import Loop

_PAUSE = 0.002


class CoalescedRead:
    """A read that concurrent callers share.

    Args:
        loop: the task's loop.
        read: reads the current state.
    """

    def __init__(self, loop: Loop, read: Callable[[], Awaitable[None]]) -> None:
        self._loop = loop
        self._read_now = read
        self._asked = 0
        self._read = 0
        self._is_reading = False
        self._failed: tuple[int, Exception] | None = None

    async def refresh(self) -> None:
        """Return when a read that began after this call has ended; raise what it raised."""
        self._asked += 1
        mine = self._asked
        while self._read < mine:
            if self._failed is not None and self._failed[0] >= mine:
                raise self._failed[1]
            if self._is_reading:
                await self._loop.sleep(_PAUSE)
                continue
            self._is_reading = True
            covered = self._asked
            try:
                await self._read_now()
                self._read = covered
            except Exception as error:
                self._failed = covered, error
                raise
            finally:
                self._is_reading = False
