"""The event loop that all connections of a task share: kafka-python's own, with types and less work for each turn.

One thread runs it, and everything here is called from that thread: nothing needs to be woken through a socket.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import kafka.net.selector as library
from kafka.future import Future
from kafka.net.selector import KernelEvent, NetworkSelector, TaskState

from reconciler.model.declared.cluster import Cluster
from reconciler.wire.net.buffers import Buffers
from reconciler.wire.net.manager import BulkManager

Work = Callable[[], Coroutine[Any, Any, None]]


_OVER = (TaskState.DONE, TaskState.CANCELLED)
# How many turns run ready tasks before the sockets are polled.
_TURNS = 4
# Seconds between two checks whether concurrent works have ended.
_PAUSE = 0.002


def _silent(*_arguments: object, **_options: object) -> None:
    """Trace nothing: the library calls its logger three times in each turn."""


library.log_trace = _silent


class _Selector(selectors.DefaultSelector):
    """Polls the sockets less often while tasks are ready to run: each response makes two or three of them ready."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the sockets that are ready, after at most `timeout` seconds; none while others go first."""
        if timeout == 0 and self._turns < _TURNS:
            self._turns += 1
            return []
        self._turns = 0
        return super().select(timeout)


class _Net(NetworkSelector):
    """The library's loop; a connection that reads for ever stays registered, and reads without being scheduled.

    Attributes:
        buffers: that all its connections read large frames into.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.buffers = Buffers()

    def _poll_once(self, timeout: float | None = None) -> None:
        """Do what the library does in a turn, for one thread: without its lock, its traces and its reads of settings.

        A trickle takes a few hundred turns in a second, each with the processor's caches cold.
        """
        ready, scheduled = self._ready, self._scheduled
        if ready:
            timeout = 0
        elif scheduled:
            due = min(max(0.0, scheduled[0][0] - time.monotonic()), library.MAX_TIMEOUT)
            timeout = due if timeout is None else max(0.0, min(timeout, due))
        if events := self._selector.select(timeout):
            self._process_events(events)
        if scheduled:
            self._schedule_tasks()
        for _ in range(len(ready)):
            task = self._current = ready.popleft()
            if task.state not in _OVER:
                task.state = TaskState.RUNNING
                self._step(task)
        self._current = None

    def _step(self, task: Any) -> None:
        """Let a task go on until it waits for something."""
        try:
            event = task()
        except BaseException:
            # It has ended; its future holds the result.
            self._task_done(task)
            return
        if task.state is TaskState.CANCELLED:
            self._pending_tasks.discard(task)
            task.close()
        elif isinstance(event, KernelEvent):
            try:
                getattr(self, event.method)(*event.args)
            except BaseException as error:
                task.inject_exc(error)
                self._add_ready_task(task)
        else:
            event.add_both(lambda _: self.call_soon(task))
            task.state = TaskState.WAIT_FUTURE

    def read_whenever(self, sock: Any, read: Callable[[], None]) -> KernelEvent:
        """Have `read` called whenever `sock` can be read, and wait for ever: closing the transport ends both."""
        return KernelEvent("_read_whenever", sock, read)

    def _read_whenever(self, sock: Any, read: Callable[[], None]) -> None:
        self._current.on_readable = read
        self.register_event(sock, selectors.EVENT_READ, self._current)
        self._current.state = TaskState.WAIT_IO

    def _process_events(self, events: list[tuple[selectors.SelectorKey, int]]) -> None:
        """Wake the tasks that wait; for a task that waits for ever, read without giving it a turn."""
        readers: list[Any] = []
        others: list[tuple[selectors.SelectorKey, int]] = []
        for key, what in events:
            reader = key.data[0]
            if what & selectors.EVENT_READ and hasattr(reader, "on_readable"):
                readers.append(reader)
                what &= ~selectors.EVENT_READ  # noqa: PLW2901 - the rest of it
            if what:
                others.append((key, what))
        if others:
            super()._process_events(others)
        for reader in readers:
            # One of them may have closed the connection of another, or that of a task woken before.
            if reader.state not in _OVER:
                reader.on_readable()


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
        self._net = _Net(slow_task_threshold_secs=0, selector=_Selector)

    def spawn(self, work: Work) -> Job:
        """Start `work` beside what runs already."""
        future = Future()

        async def run() -> None:
            try:
                await work()
            except BaseException as error:
                future.failure(error)
            else:
                future.success(None)

        self._net.call_soon(run)
        return Job(future)

    async def together(self, works: Iterable[Work]) -> None:
        """Run some works concurrently: lookups at one broker at the same time share few requests.

        Raises:
            Exception: what the first of them has raised, when all have ended.
        """
        jobs = [self.spawn(work) for work in works]
        while not all(job.is_done for job in jobs):
            await self.sleep(_PAUSE)
        for job in jobs:
            job.raise_failure()

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait without holding up the others."""
        awaitable: Awaitable[None] = self._net.sleep(seconds)
        return awaitable

    def bell(self) -> Bell:
        """Return a bell that one coroutine can wait on."""
        return Bell(self._net)

    def run(self, work: Work) -> None:
        """Run the loop until `work` is done, and raise what it raised."""
        self._net.run(work)

    def manager(self, cluster: Cluster, settings: dict[str, object]) -> BulkManager:
        """Return a connection manager on this loop.

        Raises:
            EnvironmentFault: AB304, a secret cannot be resolved.
        """
        return BulkManager(self._net, cluster, settings)

    def close(self) -> None:
        """End the loop and whatever still runs on it."""
        self._net.close()


class Bell:
    """Wakes one waiting coroutine; a ring while none waits is kept for the next wait."""

    def __init__(self, net: NetworkSelector) -> None:
        self._net = net
        self._waiting: Any = None
        self._rung = False

    def ring(self) -> None:
        """Wake the waiter."""
        if self._waiting is None:
            self._rung = True
        elif not self._waiting.is_done:
            self._waiting.success(None)

    async def wait(self, seconds: float) -> None:
        """Wait for a ring, at most `seconds`."""
        assert self._waiting is None, "a bell has one waiter"
        if self._rung:
            self._rung = False
            return
        self._waiting = Future()
        timer = self._net.call_later(seconds, self.ring)
        try:
            await self._waiting
        finally:
            self._waiting = None
            self._net.cancel(timer)
