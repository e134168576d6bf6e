"""Tasks by chance on the lean loop and on the library's, and what stands on the loop: jobs, bells and runs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.future import Future
from kafka.net.selector import NetworkSelector

from reconciler.wire import Loop
from reconciler.wire.net.loop import _Net, _Selector

Make = Callable[[], Any]


def lean() -> Any:
    return _Net(slow_task_threshold_secs=0, selector=_Selector)


steps = st.sampled_from(["pass", "spawn", "wait", "ring", "fail", "cancel", "raise"])
scripts = st.lists(st.lists(steps, max_size=6), min_size=1, max_size=5)


def told(make: Make, script: list[list[str]], seed: int) -> list[str]:
    """Return what happens when tasks do what a script says."""
    chance = random.Random(seed)
    net = make()
    seen: list[str] = []
    futures = [Future() for _ in range(3)]
    tasks: list[Any] = []

    async def one(name: str, todo: list[str]) -> None:
        for step in todo:
            seen.append(f"{name} {step}")
            future = chance.choice(futures)
            if step == "pass":
                await Future().success(None)
                again = Future()
                net.call_soon(lambda again=again: again.success(None))
                await again
            elif step == "spawn":
                tasks.append(net.call_soon(one(f"{name}+", [step for step in todo if step != "spawn"])))
            elif step == "wait":
                try:
                    seen.append(f"{name} got {await future}")
                except KeyError:
                    seen.append(f"{name} got an error")
            elif step in ("ring", "fail") and not future.is_done:
                future.success(name) if step == "ring" else future.failure(KeyError(name))
            elif step == "cancel":
                net.cancel(chance.choice([task for task in tasks if task is not net._current] or tasks))
            elif step == "raise":
                raise ValueError(name)

    for number, todo in enumerate(script):
        tasks.append(net.call_soon(one(str(number), todo)))
    net.drain()
    seen += [str(task.state) for task in tasks]
    for future in futures:
        if not future.is_done:
            future.success("the end")
    net.drain()
    seen += [str(task.state) for task in tasks] + [str(len(net._pending_tasks))]
    net.close()
    return seen


@given(scripts, st.integers(0, 1_000))
def test_whatever_tasks_do_comes_to_the_same_on_both(script: list[list[str]], seed: int) -> None:
    assert told(lean, script, seed) == told(NetworkSelector, script, seed)


@pytest.fixture
def loop() -> Iterator[Loop]:
    one = Loop()
    yield one
    one.close()


async def failing_badly(loop: Loop) -> None:
    await loop.sleep(0)
    text = "badly"
    raise ValueError(text)


def test_a_job_tells_how_it_ended(loop: Loop) -> None:
    async def well() -> None:
        await loop.sleep(0)

    async def badly() -> None:
        await failing_badly(loop)

    async def go() -> None:
        good, bad = loop.spawn(well), loop.spawn(badly)
        assert (good.is_done, bad.is_done) == (False, False)
        while not (good.is_done and bad.is_done):
            await loop.sleep(0)
        good.raise_failure()
        with pytest.raises(ValueError, match="badly"):
            bad.raise_failure()

    loop.run(go)


def test_a_run_raises_what_its_work_raised(loop: Loop) -> None:
    async def badly() -> None:
        await failing_badly(loop)

    with pytest.raises(ValueError, match="badly"):
        loop.run(badly)


def test_a_bell_wakes_its_waiter_once_and_keeps_a_ring(loop: Loop) -> None:
    async def go() -> None:
        bell = loop.bell()
        bell.ring()
        bell.ring()
        await bell.wait(60)
        began = time.monotonic()
        await bell.wait(0.02)
        assert time.monotonic() - began >= 0.02
        loop.spawn(lambda: _ring(loop, bell.ring))
        await bell.wait(60)

    loop.run(go)
    # No timer is left.
    assert not loop._net._scheduled


async def _ring(loop: Loop, ring: Callable[[], None]) -> None:
    await loop.sleep(0.001)
    ring()
    ring()
