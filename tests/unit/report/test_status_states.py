"""In which state `status` says that a flow is: what runs, waits, hangs or never spoke."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.recorded.declaration import DESTROYED, InForce
from reconciler.model.recorded.pauses import Pauses, PauseScope
from reconciler.model.tasks.status import STALE_SECONDS, Reason, TaskStatus
from reconciler.report.status.summary import FlowSummary, status_lines, summarise, with_pauses
from reconciler.report.status.to_json import status_json
from tests.support.replicator.words import (
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
        ([said(partition(0, 1, 1), ago=40), of_process("run", "a status of its task 0")], "lost"),
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
    words = said(partition(0, 1, 1), ago=40), of_process("run", "a status of its task 0, which publishes none any more")
    assert summary(*words).silent_seconds == 40
    assert lines(*words)[0].endswith(
        "lost        last report 40 s ago; its process waits for a status of its task 0, which publishes none any more"
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


def test_what_is_paused_is_told_where_nothing_runs_too() -> None:
    told = Pauses(
        {
            PauseScope("one", "users", 1): True,
            PauseScope("one", "orders"): True,
            PauseScope("one", "audit"): False,
            PauseScope("two"): True,
        },
        {PauseScope("one", "orders"): "by root@vm since today"},
    )
    one = replace(flow(), name="one")
    (known,) = with_pauses(summarise([one], [], NOW), {one.target: told})
    lines = [line.plain for line in status_lines([known], start="anabranch replicate shop.yaml")]
    assert lines == [
        "east → west   not running   start it: anabranch replicate shop.yaml",
        "  orders  paused  by root@vm since today",
        "  users/1  paused",
    ]
    assert status_json([known], NOW)["flows"][0]["pauses"] == [
        {"topic": "orders", "partition": None, "said": "by root@vm since today"},
        {"topic": "users", "partition": 1, "said": ""},
    ]
    (whole,) = with_pauses(summarise([one], [], NOW), {one.target: Pauses({PauseScope("one"): True})})
    assert [line.plain for line in status_lines([whole])][1] == "  all partitions  paused"


def test_tasks_that_live_tell_of_pauses_themselves() -> None:
    running = summarise([flow()], [said(partition(0, 1, 1))], NOW)
    assert with_pauses(running, {flow().target: Pauses({PauseScope(flow().name): True})}) == running
    assert "start it" not in "".join(line.plain for line in status_lines(running, start="anabranch replicate x"))


@pytest.mark.parametrize(
    "statuses", [[], [said(partition(0, 1, 1), stopped=True)], [said(partition(0, 1, 1), ago=600)]]
)
def test_how_to_start_it_is_told_where_nothing_runs(statuses: list[TaskStatus]) -> None:
    (line, *_) = status_lines(summarise([flow()], statuses, NOW), start="anabranch replicate shop.yaml")
    assert line.plain.endswith("   start it: anabranch replicate shop.yaml")
