"""In which state `status` says that a flow is: what runs, waits, hangs or never spoke."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.declaration import DESTROYED, InForce
from reconciler.model.status import STALE_SECONDS, Reason, TaskStatus
from reconciler.report.status import FlowSummary, status_lines, summarise
from reconciler.report.status_json import status_json
from tests.support.words import (
    NOW,
    OPENING,
    PARKED,
    PAUSED,
    TOO_LARGE,
    WAITING,
    flow,
    of_process,
    partition,
    said,
)

LEASE = Reason("AB224", "no lease of the group yet")


def summary(*statuses: TaskStatus) -> FlowSummary:
    (one,) = summarise([flow()], statuses, NOW)
    return one


def lines(*statuses: TaskStatus) -> list[str]:
    return [line.plain for line in status_lines([summary(*statuses)])]


@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        ([], "not running"),
        ([said(partition(0, 1, 1))], "running"),
        ([said(partition(0, -1, -1, OPENING))], "opening"),
        ([said(partition(0, -1, -1, OPENING), partition(1, 1, 1))], "running"),
        ([said(partition(0, 4, 9, PARKED, TOO_LARGE), partition(1, 1, 1))], "degraded"),
        ([said(partition(0, 4, 9, PAUSED), partition(1, 1, 1, PAUSED))], "paused"),
        ([said(partition(0, 4, 9, PAUSED), partition(1, 1, 1))], "running"),
        ([said(partition(0, 4, 9, PAUSED), partition(1, -1, -1, OPENING))], "opening"),
        ([said(partition(0, 4, 9, PAUSED), partition(1, 4, 9, PARKED, TOO_LARGE))], "degraded"),
        ([said(waiting="no topic matches yet")], "waiting"),
        ([said(partition(0, 1, 1), ago=STALE_SECONDS)], "lost"),
        ([said(partition(0, 1, 1), stopped=True)], "stopped"),
        ([said(partition(0, 1, 1), stopped=True), said(task=1, ago=60)], "lost"),
        ([said(partition(0, 1, 1), stopped=True), said(partition(1, 1, 1), task=1)], "running"),
        ([said(partition(0, 1, 1)), said(partition(1, 1, 1), task=1, ago=60)], "degraded"),
        ([said(partition(0, 1, 1), tasks=2)], "opening"),
        ([said(partition(0, 1, 1, PARKED, TOO_LARGE), tasks=2)], "degraded"),
        ([said(partition(0, 1, 1), tasks=2), said(task=1, stopped=True)], "running"),
        ([said(partition(0, -1, -1, WAITING, LEASE), partition(1, -1, -1, WAITING, LEASE))], "waiting"),
        ([said(partition(0, -1, -1, WAITING, LEASE), partition(1, 1, 1, PAUSED))], "waiting"),
        ([said(partition(0, -1, -1, WAITING, LEASE), partition(1, -1, -1, OPENING))], "opening"),
        ([said(partition(0, -1, -1, WAITING, LEASE), partition(1, 1, 1))], "running"),
        ([said(partition(0, 1, 1), ago=40), of_process("run", "a word of its task 0")], "lost"),
        ([said(partition(0, 1, 1), ago=40), of_process("another", "until its declaration is in force")], "waiting"),
        ([said(partition(0, 1, 1), ago=40, stopped=True), of_process("run", "until Spark has started")], "waiting"),
    ],
)
def test_where_a_flow_stands(statuses: list[TaskStatus], state: str) -> None:
    assert summary(*statuses).state == state


def test_tasks_that_never_spoke_are_told() -> None:
    one = summary(said(partition(0, 1, 1), tasks=3), said(task=1))
    assert (one.tasks, one.silent_tasks, one.unheard_tasks) == (2, 0, 1)
    assert "unheard tasks 1" in lines(said(partition(0, 1, 1), tasks=3), said(task=1))[0]
    assert status_json([one], NOW)["flows"][0]["unheardTasks"] == 1


def test_a_flow_whose_partitions_all_wait_says_for_what() -> None:
    line = lines(said(partition(0, -1, -1, WAITING, LEASE)))[0]
    assert line.endswith(f"waiting     {LEASE}")


def test_a_task_that_hangs_is_not_hidden_by_what_its_process_says() -> None:
    words = said(partition(0, 1, 1), ago=40), of_process("run", "a word of its task 0, which has stopped talking")
    assert summary(*words).silent_seconds == 40
    assert lines(*words)[0].endswith(
        "lost        last heard 40 s ago; its process waits for a word of its task 0, which has stopped talking"
    )


def test_a_clock_that_is_ahead_makes_no_silence_below_0() -> None:
    assert summary(said(partition(0, 1, 1), ago=-30)).silent_seconds == 0


def in_rest(*statuses: TaskStatus, enabled: bool = True, digest: str = "abc") -> tuple[FlowSummary, list[str]]:
    entry = {flow().target: InForce(digest, NOW - 60, "root@vm")}
    (one,) = summarise([replace(flow(), enabled=enabled)], statuses, NOW, entry)
    return one, [line.plain for line in status_lines([one])]


def test_a_flow_that_is_not_enabled_says_so_and_one_that_runs_all_the_same_too() -> None:
    one, (line,) = in_rest(enabled=False)
    assert (one.state, line.split("   ", 1)[1].strip()) == ("disabled", "disabled    enabled: false")
    assert status_json([one], NOW)["flows"][0]["enabled"] is False
    one, (_, line) = in_rest(said(partition(0, 1, 1)), enabled=False)
    assert (one.state, line) == ("running", "  enabled: false in these files; `anabranch apply` ends it")
    assert in_rest(said(partition(0, 1, 1), stopped=True), enabled=False)[0].state == "disabled"


def test_after_destroy_a_flow_is_not_lost_but_destroyed() -> None:
    for statuses in ((), (said(partition(0, 1, 1), stopped=True),), (said(partition(0, 1, 1), ago=600),)):
        one, (line,) = in_rest(*statuses, digest=DESTROYED)
        assert one.state == "destroyed"
        assert "the copies were destroyed on " in line
        assert line.endswith("by root@vm; `anabranch apply` makes the copies anew")
    assert in_rest(said(partition(0, 1, 1)), digest=DESTROYED)[0].state == "running", "it still drains"
