"""Gathered questions: one request for many, none that was sent before it was asked for, errors to whom they concern."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from reconciler.wire import BrokerError, ConnectionLost, Loop
from reconciler.wire.net.gather import Gather

Ask = Callable[[Sequence[int]], Coroutine[Any, Any, Mapping[int, str | Exception]]]


class Scene:
    """A loop, and what was asked over it, request by request."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.requests: list[list[int]] = []
        self.answered: dict[int, str | Exception] = {}

    async def ask(self, keys: Sequence[int]) -> Mapping[int, str | Exception]:
        self.requests.append(sorted(keys))
        await self.loop.sleep(0.01)
        return {key: self.answered.get(key, f"answer {len(self.requests)}") for key in keys}

    def play(self, *works: Callable[[Gather[int, str]], Coroutine[Any, Any, None]]) -> None:
        gather = Gather(self.loop, self.ask)

        async def all_of_them() -> None:
            jobs = [self.loop.spawn(lambda work=work: work(gather)) for work in works]  # type: ignore[misc]
            while not all(job.is_done for job in jobs):
                await self.loop.sleep(0.001)
            for job in jobs:
                job.raise_failure()

        self.loop.run(all_of_them)
        self.loop.close()


def test_many_are_one_request_and_who_comes_later_is_in_the_next() -> None:
    scene = Scene()
    got: dict[int, str] = {}

    def asking(key: int, later: float = 0.0) -> Callable[[Gather[int, str]], Coroutine[Any, Any, None]]:
        async def work(gather: Gather[int, str]) -> None:
            await scene.loop.sleep(later)
            got[key] = await gather.get(key)

        return work

    scene.play(*(asking(key) for key in range(50)), asking(99, 0.005))
    assert [len(request) for request in scene.requests][-1] == 1
    assert sorted(key for request in scene.requests for key in request) == [*range(50), 99]
    assert len(scene.requests) <= 3
    assert got[99] == f"answer {len(scene.requests)}"


def test_the_same_question_asked_again_is_answered_by_another_request() -> None:
    """Two readings that shall agree must be two."""
    scene = Scene()
    got: list[str] = []

    async def twice(gather: Gather[int, str]) -> None:
        got.append(await gather.get(1))
        got.append(await gather.get(1))

    scene.play(twice)
    assert got == ["answer 1", "answer 2"]


def test_what_is_asked_while_a_request_is_under_way_is_not_answered_by_it() -> None:
    scene = Scene()
    got: list[str] = []

    async def first(gather: Gather[int, str]) -> None:
        await gather.get(1)

    async def second(gather: Gather[int, str]) -> None:
        while not scene.requests:
            await scene.loop.sleep(0.001)
        got.append(await gather.get(1))

    scene.play(first, second)
    assert got == ["answer 2"]


def test_an_error_of_one_is_not_the_others() -> None:
    scene = Scene()
    scene.answered[2] = BrokerError(6)
    got: list[dict[int, str]] = []

    async def all_at_once(gather: Gather[int, str]) -> None:
        with pytest.raises(BrokerError, match="NOT_LEADER"):
            await gather.get_all([1, 2])
        got.append(await gather.get_all([1, 3]))

    scene.play(all_at_once)
    assert got == [{1: "answer 2", 3: "answer 2"}]


def test_a_request_that_fails_fails_for_all_and_the_next_one_is_sent() -> None:
    scene = Scene()
    lost: list[int] = []
    whole = scene.ask

    async def ask(keys: Sequence[int]) -> Mapping[int, str | Exception]:
        if not scene.requests:
            scene.requests.append(sorted(keys))
            message = "no answer"
            raise ConnectionLost(message)
        return await whole(keys)

    scene.ask = ask  # type: ignore[method-assign]
    got: list[str] = []

    def asking(key: int) -> Callable[[Gather[int, str]], Coroutine[Any, Any, None]]:
        async def work(gather: Gather[int, str]) -> None:
            try:
                await gather.get(key)
            except ConnectionLost:
                lost.append(key)
            got.append(await gather.get(key))

        return work

    scene.play(asking(1), asking(2))
    assert lost
    assert len(got) == 2


def test_what_an_answer_leaves_out_is_no_answer() -> None:
    scene = Scene()

    async def ask(keys: Sequence[int]) -> Mapping[int, str | Exception]:
        return dict.fromkeys(keys[:0], "")

    scene.ask = ask  # type: ignore[method-assign]

    async def one(gather: Gather[int, str]) -> None:
        with pytest.raises(ConnectionLost, match="leaves out"):
            await gather.get(1)

    scene.play(one)
