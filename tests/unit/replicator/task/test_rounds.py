"""Rounds between two threads: what each ledger holds, who goes on without a round and for how long, and what fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.task import handover, rounds
from reconciler.replicator.task.handover import RoundHandover
from reconciler.replicator.task.ledger import LedgerRow
from tests.support.waiting import eventually

WEST = Cluster("west", ("w:9092",))
SPEC = FlowSpec("t", "r", Flow("f", "east", "west", Selection(("x",))), WEST, WEST, (), round_seconds=0.05)
ONE = Assignment(0, 1, ())


def row(number: int, flow: str) -> LedgerRow:
    return LedgerRow(flow, "x", 0, "east.x", number, number, number, number, 0, 1, 1, 0, -1, None, None)


class Line:
    """Stands for connections: notes how they were closed."""

    def __init__(self, spec: FlowSpec, task: int) -> None:
        self.key = spec.flow.name, task
        self.closed: list[bool] = []
        made.append(self)

    def close(self, in_doubt: bool = False) -> None:
        self.closed.append(in_doubt)


class Counting:
    """Stands for a task: each turn it writes a row, until it is given up, fails, or needs more tasks."""

    failure: Exception | None = None
    needs: Callable[[Assignment], bool] = staticmethod(lambda _: False)

    failing = "f"

    def __init__(self, spec: FlowSpec, assignment: Assignment, line: Line) -> None:
        self.spec = spec
        self.assignment = assignment
        tasks.append(self)

    def fails(self, told: RoundHandover) -> bool:
        return self.spec.flow.name == Counting.failing and not (Counting.only_between and told.is_awaited)

    def work(self, told: RoundHandover, begun: Callable[[], None]) -> None:
        begun()
        rows: list[LedgerRow] = []
        while not told.is_given_up(now := time.monotonic()) and not Counting.needs(self.assignment):
            if (
                self.spec.flow.name == Counting.failing
                and (failure := Counting.failure) is not None
                and not (Counting.only_between and told.is_awaited)
            ):
                raise failure
            # A task may have counted on, into its next round, before another one hands over.
            name = self.spec.flow.name
            rows.append(row(numbers[name], name))
            numbers[name] += 1
            if told.is_due(now):
                told.hand_over(rows)
                rows = []
            time.sleep(0.005)
        told.hand_over(rows)

    only_between = False


made: list[Line] = []
tasks: list[Counting] = []
# By flow.
numbers: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def stood_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made.clear()
    tasks.clear()
    numbers.clear()
    monkeypatch.setattr(rounds, "Connections", Line)
    monkeypatch.setattr(rounds, "Task", Counting)
    monkeypatch.setattr(Counting, "failure", None)
    yield
    for key in list(rounds._running):
        rounds._running.pop(key).rounds.end()


def offsets(rows: list[LedgerRow]) -> list[int]:
    return [one.first_offset for one in rows]


def test_a_task_goes_on_between_rounds_and_each_row_is_in_one_ledger() -> None:
    found: list[int] = []
    for _ in range(4):
        rows = offsets(rounds.run(SPEC, ONE))
        assert rows
        found += rows
        time.sleep(0.03)
    assert found == list(range(len(found)))
    assert (len(made), len(tasks)) == (1, 1)


def test_a_task_without_a_further_round_ends_and_the_process_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "LINGER", 0.1)
    ended = threading.Event()
    rounds.run(SPEC, ONE, ended.set)
    assert ended.wait(60)
    assert made[0].closed == [False]
    # One that comes after all begins anew.
    assert rounds.run(SPEC, ONE)
    assert len(made) == 2


def test_another_task_in_the_same_worker_ends_the_one_that_has_no_round() -> None:
    ended: list[str] = []
    rounds.run(SPEC, ONE, lambda: ended.append("first"))
    rounds.run(replace(SPEC, run="other"), ONE, lambda: ended.append("second"))
    assert made[0].closed == [False]
    assert made[1].closed == []
    # The process goes on with the other.
    assert ended == []


def test_more_tasks_begin_with_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds.run(SPEC, ONE)
    monkeypatch.setattr(Counting, "needs", staticmethod(lambda assignment: assignment.tasks == 1))
    more = Assignment(0, 2, ())
    while len(tasks) < 2:
        rounds.run(SPEC, more)
    assert [task.assignment for task in tasks] == [ONE, more]
    assert len(made) == 1


def test_a_failure_is_raised_in_the_round_and_the_next_one_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "failure", RuntimeError("a fault"))
    with pytest.raises(RuntimeError, match="a fault"):
        rounds.run(SPEC, ONE)
    assert made[0].closed == [True]
    monkeypatch.setattr(Counting, "failure", None)
    assert rounds.run(SPEC, ONE)
    assert len(made) == 2


def test_a_failure_between_rounds_is_logged_and_the_next_one_begins_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Counting, "only_between", True)
    rounds.run(SPEC, ONE)
    monkeypatch.setattr(Counting, "failure", RuntimeError("a fault"))
    eventually("it has failed", lambda: made[0].closed == [True])
    monkeypatch.setattr(Counting, "failure", None)
    eventually("it is logged", lambda: "flow f: a task has failed between two rounds" in caplog.text)
    assert rounds.run(SPEC, ONE)
    assert len(made) == 2


def named(name: str, seconds: float = 0.05) -> FlowSpec:
    return replace(SPEC, flow=replace(SPEC.flow, name=name), round_seconds=seconds)


def test_tasks_that_share_a_process_end_their_round_together_and_go_on() -> None:
    work = [(named("f"), ONE), (named("g", 600.0), ONE)]
    found: list[LedgerRow] = []
    for _ in range(3):
        rows, failures = rounds.run_together(work)
        assert failures == []
        found += rows
    for flow in ("f", "g"):
        own = [one.first_offset for one in found if one.flow == flow]
        assert own == list(range(len(own))) != []
    assert [line.key for line in made] == [("f", 0), ("g", 0)]


def test_one_that_fails_among_others_is_begun_again_until_it_has_failed_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "_REST", 0.01)
    monkeypatch.setattr(Counting, "failure", RuntimeError("a fault"))
    rows, failures = rounds.run_together([(named("f", 600.0), ONE), (named("g", 600.0), ONE)])
    assert failures == [rounds.TaskFailure("f", 0, "RuntimeError: a fault")]
    assert rows
    assert [line.key[0] for line in made].count("f") == 8
    assert [line.closed for line in made if line.key[0] == "g"] == [[]]
    # The next round goes on without it.
    assert rounds.run_together([(named("g"), ONE)])[1] == []
    assert [line.key[0] for line in made].count("g") == 1


def test_a_round_of_others_is_over_in_time_while_one_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_REST", 0.3)
    monkeypatch.setattr(Counting, "failure", RuntimeError("a fault"))
    rows, failures = rounds.run_together([(named("f", 600.0), ONE), (named("g"), ONE)])
    assert rows
    assert [failure.flow for failure in failures] == ["f"]
    assert [line.closed for line in made if line.key[0] == "g"] == [[]]
