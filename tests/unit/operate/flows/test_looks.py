"""Looks that flows share: never one that began before it was asked for, and as few as possible."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.topology import Topology
from reconciler.operate.flows.looks import Look, SharedLooks
from tests.support.waiting import eventually

AWAY = Unreachable(Problem("AB310", "cluster west", "no answer", "start it"))


class Clusters:
    """Clusters that take as long as it pleases the test."""

    def __init__(self) -> None:
        self.looks: list[Look] = []
        self.begun = 0
        self.may_go_on = threading.Semaphore(0)
        self.failure: Exception | None = None

    def observe(self) -> Look:
        self.begun += 1
        assert self.may_go_on.acquire(timeout=60)
        if self.failure is not None:
            raise self.failure
        self.looks.append(Look(Topology("t", {}, ()), {}))
        return self.looks[-1]


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


def waiting(looks: SharedLooks, count: int) -> Callable[[], bool]:
    return lambda: len(looks._change._waiters) >= count  # type: ignore[attr-defined]


def test_all_that_ask_while_one_looks_share_the_next_look(clusters: Clusters) -> None:
    looks = SharedLooks()
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(looks.look, clusters.observe)
        eventually("it looks", lambda: clusters.begun == 1)
        later = [pool.submit(looks.look, clusters.observe) for _ in range(19)]
        eventually("all wait", waiting(looks, 19))
        assert clusters.begun == 1
        clusters.may_go_on.release(2)
        assert first.result(60) is clusters.looks[0]
        # None of them may have what was begun before they asked.
        assert {id(one.result(60)) for one in later} == {id(clusters.looks[1])}
    assert clusters.begun == 2


def test_one_after_the_other_each_looks(clusters: Clusters) -> None:
    looks = SharedLooks()
    clusters.may_go_on.release(3)
    assert len({id(looks.look(clusters.observe)) for _ in range(3)}) == 3


def test_a_failure_is_that_of_all_who_share_it_and_not_of_the_next(clusters: Clusters) -> None:
    looks = SharedLooks()
    clusters.failure = AWAY
    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(looks.look, clusters.observe)
        eventually("it looks", lambda: clusters.begun == 1)
        later = [pool.submit(looks.look, clusters.observe) for _ in range(4)]
        eventually("all wait", waiting(looks, 4))
        clusters.may_go_on.release(2)
        for one in (first, *later):
            assert one.exception(60) is AWAY
    clusters.failure = None
    clusters.may_go_on.release()
    assert looks.look(clusters.observe) is clusters.looks[0]


def test_what_follows_from_a_look_is_computed_once() -> None:
    look = Look(Topology("t", {}, ()), {})
    counted: list[str] = []

    def compute() -> str:
        counted.append("computed")
        return look.once("inner", lambda: "found")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: look.once(("a", "b"), compute), range(50))) == {"found"}
    assert counted == ["computed"]
