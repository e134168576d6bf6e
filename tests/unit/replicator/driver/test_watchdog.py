"""Who stands still, and what fails again and again: words and times made up."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.status import TaskStatus
from reconciler.replicator.driver.watchdog import Silence, Watchdog
from reconciler.replicator.spark.restarts import RestartBackoff


def word(task: int, time: float, flow: str = "a") -> TaskStatus:
    whole = TaskStatus.of_process(Flow(flow, "east", "west", Selection(("x",))), "run", "")
    return replace(whole, task=task, tasks=2, time=time)


def test_a_task_that_says_nothing_new_is_told_by_our_own_clock() -> None:
    dog = Watchdog()
    # Another machine's clock, far ahead.
    assert dog.silent([word(0, 9e9), word(1, 9e9)], 100.0) == {}
    assert dog.silent([word(0, 9e9), word(1, 9e9 + 29)], 129.9) == {}
    assert dog.silent([word(0, 9e9), word(1, 9e9 + 29)], 130.0) == {"a": Silence("a", 0, 100.0)}
    assert dog.silent([word(0, 9e9 + 30), word(1, 9e9 + 29)], 131.0) == {}


def test_who_spoke_his_last_word_or_never_any_is_not_silent() -> None:
    dog = Watchdog()
    assert dog.silent([], 0.0) == {}
    alone = replace(word(0, 0.5), tasks=1)
    last = replace(alone, time=1.0, stopped=True)
    assert dog.silent([alone], 1.0) == {}
    for now in (2.0, 100.0):
        assert dog.silent([last], now) == {}


def test_of_a_flow_the_one_who_is_silent_for_longest_is_told() -> None:
    dog = Watchdog()
    dog.silent([word(0, 1.0), word(0, 1.0, "b")], 0.0)
    dog.silent([word(1, 1.0)], 5.0)
    assert dog.silent([], 40.0) == {"a": Silence("a", 0, 0.0), "b": Silence("b", 0, 0.0)}


def test_who_was_begun_anew_has_longer_for_his_first_word() -> None:
    dog = Watchdog()
    dog.silent([word(0, 1.0), word(1, 1.0)], 0.0)
    dog.begun("a", 40.0)
    assert dog.silent([word(0, 1.0), word(1, 1.0)], 129.0) == {}
    assert dog.silent([word(0, 1.0), word(1, 2.0)], 130.0) == {"a": Silence("a", 0, 100.0)}


def test_the_first_task_of_a_flow_is_expected_before_it_ever_spoke() -> None:
    dog = Watchdog()
    dog.begun("a", 10.0)
    assert dog.silent([], 99.0) == {}
    assert dog.silent([], 100.0) == {"a": Silence("a", 0, 70.0)}
    assert dog.silent([word(0, 1.0)], 101.0) == {}


def test_tasks_that_never_spoke_are_expected_as_soon_as_another_says_how_many_there_are() -> None:
    dog = Watchdog()
    dog.begun("a", 0.0)
    for now in range(20, 110):
        assert dog.silent([word(0, float(now))], float(now)) == {}
    assert dog.silent([word(0, 110.0)], 110.0) == {"a": Silence("a", 1, 80.0)}
    assert dog.silent([word(0, 111.0), word(1, 1.0)], 111.0) == {}


def test_whoever_has_spoken_his_last_word_is_not_expected_again() -> None:
    dog = Watchdog()
    for now in range(300):
        assert dog.silent([word(0, float(now)), replace(word(1, 1.0), stopped=True)], float(now)) == {}


def test_a_flow_that_fails_now_and_then_is_begun_anew_at_once() -> None:
    failures = RestartBackoff()
    for number in range(20):
        failures.note("a", f"failure {number}", 100.0 * number)
        assert failures.may_try("a", 100.0 * number)
        assert failures.lasting(100.0 * number) == {}
    assert failures.last("a") == "failure 19"


def test_a_flow_that_fails_again_and_again_is_tried_every_minute_until_it_is_well() -> None:
    failures = RestartBackoff(chance=lambda: 0.0)
    failures.note("b", "once", 0.0)
    now = 0.0
    for rest in (0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0):
        failures.note("a", "no such interpreter", now)
        assert failures.may_try("a", now + rest)
        assert not failures.may_try("a", now + rest - 0.1)
        now += rest
    assert failures.may_try("b", 5.0)
    (why,) = failures.lasting(now).values()
    assert why == "its Spark job ended 5 times within 5 minutes; it is restarted about every 60 s: no such interpreter"
    for _ in range(6):
        # Each try lives for a while.
        now += 80.0
        failures.note("a", "no such interpreter", now)
        assert not failures.may_try("a", now + 59.0)
        assert list(failures.lasting(now + 60.0)) == ["a"]
    assert list(failures.lasting(now + 179.0)) == ["a"]
    assert failures.lasting(now + 180.0) == {}
    assert failures.may_try("a", now + 180.0)
    failures.note("a", "once more", now + 400.0)
    assert failures.lasting(now + 400.0) == {}


def test_flows_that_failed_at_one_time_are_not_tried_again_at_one_time() -> None:
    chances = iter([0.0, 0.0, 0.0, 1.0])
    failures = RestartBackoff(chance=lambda: next(chances))
    for flow in ("a", "b"):
        failures.note(flow, "gone", 0.0)
    for flow in ("a", "b"):
        failures.note(flow, "gone", 10.0)
    assert [failures.may_try(flow, 12.0) for flow in ("a", "b")] == [True, False]
    assert failures.may_try("b", 13.0)


def test_a_flow_has_spoken_when_a_word_came_behind_its_beginning() -> None:
    dog = Watchdog()
    dog.begun("a", 0.0)
    assert dog.reported == set()
    dog.silent([word(0, 1.0)], 1.0)
    assert dog.reported == {"a"}
    dog.begun("a", 2.0)
    dog.silent([word(0, 1.0)], 3.0)
    assert dog.reported == set(), "that is a word of the task before"
    dog.silent([word(0, 4.0)], 4.0)
    assert dog.reported == {"a"}
