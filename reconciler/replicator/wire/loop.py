"""The event loop that all connections of a task share: kafka-python's own, with types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from kafka.net.selector import NetworkSelector
from kafka.net.wakeup_notifier import WakeupNotifier

from reconciler.replicator.wire.connection import BulkManager

Work = Callable[[], Coroutine[Any, Any, None]]


class Job:
    """Something that runs on a loop beside others."""

    def __init__(self, future: Any) -> None:
        self._future = future

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return bool(self._future.is_done)

    def raise_failure(self) -> None:
        """Raise what the work raised, if it did."""
        if self._future.failed():
            raise self._future.exception


class Loop:
    """The event loop that all connections of a task share."""

    def __init__(self) -> None:
        self._net = NetworkSelector(slow_task_threshold_secs=0)

    def spawn(self, work: Work) -> Job:
        """Start `work` beside what runs already."""
        return Job(self._net.call_soon_with_future(work))

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait without holding up the others."""
        awaitable: Awaitable[None] = self._net.sleep(seconds)
        return awaitable

    def bell(self) -> Bell:
        """Return a bell that one coroutine can wait on."""
        return Bell(WakeupNotifier(self._net))

    def run(self, work: Work) -> None:
        """Run the loop until `work` is done, and raise what it raised."""
        self._net.run(work)

    def manager(self, settings: dict[str, object]) -> BulkManager:
        """Return a connection manager on this loop."""
        return BulkManager(self._net, **settings)

    def close(self) -> None:
        """End the loop and whatever still runs on it."""
        self._net.close()


class Bell:
    """Wakes one waiting coroutine; a ring while nobody waits is kept for the next wait."""

    def __init__(self, notifier: WakeupNotifier) -> None:
        self._notifier = notifier

    def ring(self) -> None:
        """Wake the waiter."""
        self._notifier.notify()

    async def wait(self, seconds: float) -> None:
        """Wait for a ring, at most `seconds`."""
        await self._notifier(seconds)
