"""Who lives, judged by what is heard: whatever speakers' clocks say, and whatever was said before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.recorded.declaration import DeclarationHistory
from reconciler.model.tasks.status import STALE_SECONDS, PartitionState, PartitionStatus, TaskStatus
from reconciler.state import running
from reconciler.state.liveness import SURE_SECONDS, Liveness, await_sure
from reconciler.state.running import Copiers, copying

FLOW = Flow("over", "east", "west", Selection(("orders",)))
ROW = PartitionStatus("orders", 0, "east.orders", PartitionState.RUNNING, 0, 0)
ALONE = replace(TaskStatus.of_process(FLOW, "one", ""), task=0, tasks=1, partitions=(ROW,))
STEP = DeleteTopic("west", "east.orders", "an-id", "over", "east", "orders", "destroyed")
SKEWS = [-3600.0, -4.0, 0.0, 4.0, 3600.0]
WEST = Cluster("west", ("localhost:1",))


class Clock:
    """Both clocks of this machine, which a sleep moves; and what is said as they go on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept = 0.0
        self.speak: Callable[[float], list[TaskStatus]] = lambda _: []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds

    def current(self, _patience: float = 0.0) -> list[TaskStatus]:
        return self.speak(self.now)

    def close(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(running, "StatusReader", lambda _cluster, _topology: clock)
    monkeypatch.setattr(running, "_history", lambda _cluster, _topology: DeclarationHistory(()))
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(time, "time", lambda: clock.now)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def every_second(skew: float) -> Callable[[float], list[TaskStatus]]:
    return lambda now: [replace(ALONE, time=float(int(now)) + skew)]


def once(at: float) -> Callable[[float], list[TaskStatus]]:
    return lambda _: [replace(ALONE, time=at)]


def judged() -> tuple[dict[str, Problem], list[TaskStatus]]:
    with Copiers(WEST, "topology") as copiers:
        return copiers.still_copied([STEP], None), copying(WEST, "topology", "over")


@pytest.mark.parametrize("skew", SKEWS)
def test_who_speaks_stands_against_a_deletion_and_a_move_whatever_its_clock_says(clock: Clock, skew: float) -> None:
    clock.speak = every_second(skew)
    found, copiers = judged()
    assert ({name: problem.code for name, problem in found.items()}, len(copiers)) == ({"east.orders": "AB421"}, 1)
    assert clock.slept < 4, "each was heard of as soon as it spoke"


@pytest.mark.parametrize("skew", SKEWS)
def test_who_has_died_stands_against_nothing_whatever_its_clock_said(clock: Clock, skew: float) -> None:
    clock.speak = once(clock.now + skew)
    assert judged() == ({}, [])


def test_where_nothing_is_said_that_matters_nobody_waits(clock: Clock) -> None:
    clock.speak = lambda now: [
        replace(ALONE, stopped=True),
        replace(ALONE, topology="another", partitions=()),
        replace(ALONE, flow="elsewhere", partitions=()),
        TaskStatus.of_process(FLOW, "two", "", waiting="until its declaration is in force"),
    ]
    assert judged() == ({}, [])
    assert clock.slept == 0


def test_who_begins_to_speak_meanwhile_lives(clock: Clock) -> None:
    begins = clock.now + 2
    clock.speak = lambda now: [
        replace(ALONE, run="dead", time=1.0),
        *([replace(ALONE, run="begun", time=2.0)] if now >= begins else []),
    ]
    assert [word.run for word in copying(WEST, "topology", "over")] == ["begun"]


def test_of_many_deletions_only_the_first_waits(clock: Clock) -> None:
    clock.speak = once(1.0)
    with Copiers(WEST, "topology") as copiers:
        for _ in range(20):
            assert copiers.still_copied([STEP], None) == {}
    assert clock.slept == pytest.approx(STALE_SECONDS, abs=0.2)


def test_a_run_of_the_declaration_without_the_topic_is_in_nobodys_way(clock: Clock) -> None:
    clock.speak = lambda now: [replace(ALONE, digest="new", time=now, partitions=())]
    with Copiers(WEST, "topology") as copiers:
        assert copiers.still_copied([STEP], "new") == {}
        assert list(copiers.still_copied([STEP], "other")) == ["east.orders"]


def test_a_topic_is_recreated_while_runs_hold_it_paused_and_drained(clock: Clock) -> None:
    step = replace(STEP, reason="recreated")
    held = tuple(replace(one, state=PartitionState.PAUSED) for one in ALONE.partitions)

    def copied(*partitions: PartitionStatus) -> list[str]:
        clock.speak = lambda now: [replace(ALONE, time=now, partitions=partitions)]
        with Copiers(WEST, "topology") as copiers:
            return list(copiers.still_copied([step], None))

    assert copied(*held) == []
    assert copied() == [], "a run without it obeys the pause when it begins"
    assert copied(*ALONE.partitions, *held) == ["east.orders"], "one partition goes on"


# --- words that are shown --------------------------------------------------------------------------------------------


def shown(clock: Clock, liveness: Liveness) -> bool:
    """Look once, as `status` does; return whether the task is shown as one that lives."""

    def look() -> None:
        liveness.update(clock.current())

    look()
    await_sure(lambda: liveness.doubtful(liveness.on_own_clock()), look)
    return any(word.is_live(clock.now) for word in liveness.on_own_clock())


@pytest.mark.parametrize("skew", SKEWS)
def test_one_look_shows_who_lives_whatever_its_clock_says(clock: Clock, skew: float) -> None:
    clock.speak = every_second(skew)
    assert shown(clock, Liveness())


@pytest.mark.parametrize("skew", [-3600.0, 2.0, 3600.0])
def test_one_look_shows_who_has_died_and_does_not_wait_for_long(clock: Clock, skew: float) -> None:
    clock.speak = once(clock.now + skew)
    assert not shown(clock, Liveness())
    assert clock.slept == pytest.approx(SURE_SECONDS, abs=0.2)


def test_a_look_waits_for_nobody_whose_clock_seems_right_nor_for_last_words(clock: Clock) -> None:
    clock.speak = lambda now: [replace(ALONE, time=now - 1.5), replace(ALONE, task=1, stopped=True, time=0.0)]
    assert shown(clock, Liveness())
    assert clock.slept == 0


@pytest.mark.parametrize("skew", SKEWS)
def test_a_watch_sees_a_task_die_and_live_again(clock: Clock, skew: float) -> None:
    liveness = Liveness()
    clock.speak = every_second(skew)
    for _ in range(5):
        assert shown(clock, liveness)
        clock.now += 2
    clock.speak = once(clock.now + skew)
    assert shown(clock, liveness)
    clock.now += STALE_SECONDS
    assert not shown(clock, liveness)
    clock.speak = every_second(skew)
    assert shown(clock, liveness)


def test_the_time_of_a_word_stays_the_same_until_another_is_said(clock: Clock) -> None:
    liveness = Liveness()
    clock.speak = once(5.0)
    liveness.update(clock.current())
    clock.speak = once(6.0)
    clock.now += 0.1
    liveness.update(clock.current())
    (first,) = liveness.on_own_clock()
    clock.now += 0.7
    liveness.update(clock.current())
    assert liveness.on_own_clock() == [first]
    assert first.time == 1000.1
