"""The lean loop does what the library's does: each script runs on both, and comes to the same."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import kafka.errors as kafka_errors
import pytest
from kafka.future import Future
from kafka.net.selector import NetworkSelector, Task, TaskState

from reconciler.wire.net.loop import _Net, _Selector


def lean() -> Any:
    return _Net(slow_task_threshold_secs=0, selector=_Selector)


def library() -> Any:
    return NetworkSelector()


@pytest.fixture(params=[lean, library])
def net(request: pytest.FixtureRequest) -> Iterator[Any]:
    one = request.param()
    yield one
    one.close()


class Trace:
    """What has happened, in order."""

    def __init__(self, net: Any) -> None:
        self._net = net
        self.seen: list[str] = []

    def __call__(self, text: str) -> None:
        self.seen.append(text)

    async def sleeping(self, name: str, seconds: float) -> None:
        try:
            await self._net.sleep(seconds)
            self(name)
        except BaseException as error:
            self(f"{name}: {type(error).__name__}")
            raise

    async def waiting(self, name: str, future: Future) -> None:
        try:
            self(f"{name}: {await future}")
        except BaseException as error:
            self(f"{name}: {type(error).__name__}")
            raise

    async def failing(self, name: str) -> None:
        self(name)
        raise ValueError(name)


@pytest.fixture
def trace(net: Any) -> Trace:
    return Trace(net)


SECONDS = 120


def pass_time(net: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        net.poll(timeout_ms=left * 1000)


def test_who_raises_ends_and_disturbs_nobody(net: Any, trace: Trace) -> None:
    tasks = [net.call_soon(lambda name=name: trace.failing(name)) for name in "ab"]
    other = net.call_soon(lambda: trace("other"))
    pass_time(net, 0.02)
    assert sorted(trace.seen) == ["a", "b", "other"]
    assert [task.state for task in [*tasks, other]] == [TaskState.DONE] * 3
    assert [str(task.exception) for task in tasks] == ["a", "b"]
    assert not net._pending_tasks


def test_even_what_ends_programs_ends_a_task_alone(net: Any, trace: Trace) -> None:
    async def leaving() -> None:
        raise SystemExit

    task = net.call_soon(leaving)
    net.call_soon(lambda: trace("other"))
    pass_time(net, 0.02)
    assert (trace.seen, task.is_done) == (["other"], True)


def test_sleepers_wake_in_the_order_of_their_times(net: Any, trace: Trace) -> None:
    for name, seconds in (("c", 0.06), ("a", 0.0), ("b", 0.03), ("a", 0.0)):
        net.call_soon(trace.sleeping(name, seconds))
    pass_time(net, 0.1)
    assert trace.seen == ["a", "a", "b", "c"]
    assert not net._scheduled


def test_nobody_wakes_too_early(net: Any) -> None:
    woken: list[float] = []
    began = time.monotonic()

    async def sleeping() -> None:
        await net.sleep(0.03)
        woken.append(time.monotonic() - began)

    net.run(sleeping)
    assert woken[0] >= 0.03


def test_a_sleeper_that_is_cancelled_cleans_up_and_never_wakes(net: Any, trace: Trace) -> None:
    task = net.call_soon(trace.sleeping("sleeper", 0.02))
    net.poll(timeout_ms=0)
    assert task.state is TaskState.SCHEDULED
    net.cancel(task)
    assert (task.state, trace.seen) == (TaskState.CANCELLED, ["sleeper: GeneratorExit"])
    net.cancel(task)
    pass_time(net, 0.04)
    assert trace.seen == ["sleeper: GeneratorExit"]
    assert not net._pending_tasks
    assert not net._scheduled


def test_who_is_cancelled_while_ready_never_begins(net: Any, trace: Trace) -> None:
    task = net.call_soon(lambda: trace("never"))
    net.call_soon(lambda: trace("other"))
    net.cancel(task)
    pass_time(net, 0.02)
    assert (trace.seen, task.state) == (["other"], TaskState.CANCELLED)


def test_one_ready_task_may_cancel_the_next(net: Any, trace: Trace) -> None:
    tasks: list[Any] = []
    net.call_soon(lambda: net.cancel(tasks[0]))
    tasks.append(net.call_soon(trace.sleeping("never", 0)))
    pass_time(net, 0.02)
    assert (trace.seen, tasks[0].state) == ([], TaskState.CANCELLED)


def test_who_waits_and_is_cancelled_hears_nothing_of_what_it_waited_for(net: Any, trace: Trace) -> None:
    future = Future()
    task = net.call_soon(trace.waiting("waiter", future))
    net.poll(timeout_ms=0)
    assert task.state is TaskState.WAIT_FUTURE
    net.cancel(task)
    assert trace.seen == ["waiter: GeneratorExit"]
    future.success(1)
    net.call_soon(lambda: trace("other"))
    pass_time(net, 0.02)
    assert trace.seen == ["waiter: GeneratorExit", "other"]
    assert not net._pending_tasks


def test_who_cancels_itself_goes_as_far_as_its_next_wait(net: Any, trace: Trace) -> None:
    async def one() -> None:
        try:
            net.cancel(net._current)
            trace("goes on")
            await net.sleep(0)
            trace("never")
        finally:
            trace("cleans up")

    task = net.call_soon(one)
    pass_time(net, 0.02)
    assert (trace.seen, task.state) == (["goes on", "cleans up"], TaskState.CANCELLED)
    assert not net._pending_tasks


def test_a_future_that_fails_raises_where_it_is_awaited(net: Any, trace: Trace) -> None:
    future, done = Future(), Future().failure(KeyError("before"))

    async def inner() -> None:
        await future

    async def outer() -> None:
        for one in (inner, lambda: done):
            try:
                await one()
            except (ValueError, KeyError) as error:
                trace(str(error))
        trace("goes on")

    net.call_soon(outer)
    net.call_later(0.01, lambda: future.failure(ValueError("later")))
    deadline = time.monotonic() + 20
    while len(trace.seen) < 3 and time.monotonic() < deadline:
        pass_time(net, 0.01)
    assert trace.seen == ["later", "'before'", "goes on"]


def test_a_future_may_be_done_before_or_wake_many(net: Any, trace: Trace) -> None:
    future = Future()
    for name in "abc":
        net.call_soon(trace.waiting(name, future))
    net.call_later(0.01, lambda: future.success(5))
    pass_time(net, 0.03)
    assert trace.seen == ["a: 5", "b: 5", "c: 5"]
    net.call_soon(trace.waiting("d", future))
    pass_time(net, 0.01)
    assert trace.seen[3:] == ["d: 5"]


def test_what_is_called_soon_from_within_comes_after_what_was_ready(net: Any, trace: Trace) -> None:
    def first() -> None:
        trace("first")
        net.call_soon(lambda: trace("from within"))

    net.call_soon(first)
    net.call_soon(lambda: trace("second"))
    pass_time(net, 0.02)
    assert trace.seen == ["first", "second", "from within"]


def test_who_is_always_ready_lets_the_others_have_their_turns(net: Any, trace: Trace) -> None:
    here, there = socket.socketpair()
    is_over: list[bool] = []

    def again() -> None:
        if not is_over:
            net.call_soon(again)

    async def reading() -> None:
        await net.wait_read(here)
        trace("read")

    async def all_of_them() -> None:
        net.call_soon(again)
        net.call_soon(reading)
        await net.sleep(0.01)
        trace("slept")
        there.send(b"a")
        while len(trace.seen) < 2:
            await net.sleep(0.001)
        is_over.append(True)

    net.run(all_of_them)
    assert trace.seen == ["slept", "read"]
    here.close()
    there.close()


def test_what_a_wait_raises_comes_where_it_is_awaited(net: Any, trace: Trace) -> None:
    here, there = socket.socketpair()

    async def reading(name: str) -> None:
        try:
            await net.wait_read(here)
            trace(name)
        except RuntimeError:
            trace(f"{name} may not")

    for name in ("first", "second"):
        net.call_soon(lambda name=name: reading(name))
    net.call_later(0.01, lambda: there.send(b"a"))
    deadline = time.monotonic() + SECONDS
    while len(trace.seen) < 2 and time.monotonic() < deadline:
        pass_time(net, 0.03)
    assert trace.seen == ["second may not", "first"]
    here.close()
    there.close()


def test_a_wait_may_have_an_end(net: Any, trace: Trace) -> None:
    here, there = socket.socketpair()

    async def reading() -> None:
        try:
            await net.wait_read(here, time.monotonic() + 0.01)
        except kafka_errors.KafkaTimeoutError:
            trace("too late")

    net.run(reading)
    assert trace.seen == ["too late"]
    # It is registered no more.
    with pytest.raises(KeyError):
        net._selector.get_key(here)
    here.close()
    there.close()


@pytest.mark.parametrize("seconds", [1e12, float("inf")])
def test_nobody_needs_to_wake_for_ever(net: Any, seconds: float) -> None:
    task = net.call_later(seconds, lambda: None)
    net.call_later(0.01, lambda: net.cancel(task))
    net.poll(timeout_ms=5)
    net.poll(timeout_ms=20)
    assert task.state is TaskState.CANCELLED
    net.call_later(seconds, lambda: None)
    net.wakeup()
    net._poll_once()


def test_a_run_returns_or_raises(net: Any) -> None:
    async def five() -> int:
        await net.sleep(0)
        return 5

    async def none() -> None:
        await net.sleep(0)
        raise ValueError

    assert net.run(five) == 5
    with pytest.raises(ValueError, match=r"^$"):
        net.run(none)
    assert not net._pending_tasks


def test_a_close_ends_whatever_is_pending(net: Any, trace: Trace) -> None:
    here, there = socket.socketpair()

    async def reading() -> None:
        try:
            await net.wait_read(here)
        finally:
            trace("reader")

    net.call_soon(trace.sleeping("sleeper", 60))
    net.call_soon(trace.waiting("waiter", Future()))
    net.call_soon(reading)
    pass_time(net, 0.01)
    net.call_soon(lambda: trace("ready"))
    net.close()
    # What is ready still has its turn.
    assert trace.seen[0] == "ready"
    assert sorted(trace.seen[1:]) == ["reader", "sleeper: GeneratorExit", "waiter: GeneratorExit"]
    assert not net._pending_tasks
    net.close()
    with pytest.raises(RuntimeError):
        net.run(reading)
    here.close()
    there.close()


def test_an_event_belongs_to_the_task_that_waits(net: Any) -> None:
    """Tasks are taken for what they are, whether they were made before or by the loop."""
    seen: list[int] = []
    task = Task(lambda: seen.append(1))
    net.call_soon(task)
    pass_time(net, 0.01)
    assert (seen, task.is_done) == ([1], True)
