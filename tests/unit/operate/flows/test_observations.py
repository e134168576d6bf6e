"""Observations that flows share: never one that began before it was asked for, and as few as possible."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.topology import Topology
from reconciler.operate.flows.observations import Observation, SharedObservations
from tests.support.waiting import eventually

AWAY = Unreachable(Problem("AB310", "cluster west", "no answer", "start it"))


class Clusters:
    """Clusters that take as long as it pleases the test."""

    def __init__(self) -> None:
        self.made: list[Observation] = []
        self.begun = 0
        self.may_go_on = threading.Semaphore(0)
        self.failure: Exception | None = None

    def observe(self) -> Observation:
        self.begun += 1
        assert self.may_go_on.acquire(timeout=60)
        if self.failure is not None:
            raise self.failure
        self.made.append(Observation(Topology("t", {}, ()), {}))
        return self.made[-1]


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


def waiting(shared: SharedObservations, count: int) -> Callable[[], bool]:
    return lambda: len(shared._change._waiters) >= count  # type: ignore[attr-defined]


def test_all_that_ask_while_one_looks_share_the_next_look(clusters: Clusters) -> None:
    shared = SharedObservations()
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(shared.newest, clusters.observe)
        eventually("one is made", lambda: clusters.begun == 1)
        later = [pool.submit(shared.newest, clusters.observe) for _ in range(19)]
        eventually("all wait", waiting(shared, 19))
        assert clusters.begun == 1
        clusters.may_go_on.release(2)
        assert first.result(60) is clusters.made[0]
        # None of them may have what was begun before they asked.
        assert {id(one.result(60)) for one in later} == {id(clusters.made[1])}
    assert clusters.begun == 2


def test_one_after_the_other_each_looks(clusters: Clusters) -> None:
    shared = SharedObservations()
    clusters.may_go_on.release(3)
    assert len({id(shared.newest(clusters.observe)) for _ in range(3)}) == 3


def test_a_failure_is_that_of_all_who_share_it_and_not_of_the_next(clusters: Clusters) -> None:
    shared = SharedObservations()
    clusters.failure = AWAY
    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(shared.newest, clusters.observe)
        eventually("one is made", lambda: clusters.begun == 1)
        later = [pool.submit(shared.newest, clusters.observe) for _ in range(4)]
        eventually("all wait", waiting(shared, 4))
        clusters.may_go_on.release(2)
        for one in (first, *later):
            assert one.exception(60) is AWAY
    clusters.failure = None
    clusters.may_go_on.release()
    assert shared.newest(clusters.observe) is clusters.made[0]


def test_what_follows_from_a_look_is_computed_once() -> None:
    seen = Observation(Topology("t", {}, ()), {})
    counted: list[str] = []

    def compute() -> str:
        counted.append("computed")
        return seen.once("inner", lambda: "found")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: seen.once(("a", "b"), compute), range(50))) == {"found"}
    assert counted == ["computed"]
