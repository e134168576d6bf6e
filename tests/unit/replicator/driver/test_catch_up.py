"""How far a run must come: what counts as reached, as missing, and as parked for good."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reconciler.model.base.errors import AnabranchError, Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Log
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.replicator.copy.transaction_holders import TransactionHolder
from reconciler.replicator.driver import catch_up as goals_module
from reconciler.replicator.driver.catch_up import CatchUp
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ProducerState

RUNNING, PARKED, OPENING = PartitionState.RUNNING, PartitionState.PARKED, PartitionState.OPENING
WHY = Reason("AB204", "gaps inside a batch")


def goals(**ends: int) -> CatchUp:
    """Return goals for topic `orders`: `p0=10` is the end of partition 0."""
    made = CatchUp()
    made._ends = {("east-west", "orders", int(name[1:])): end for name, end in ends.items()}
    return made


def partition(number: int, position: int, state: PartitionState = RUNNING) -> PartitionStatus:
    reason = WHY if state is PARKED else None
    return PartitionStatus("orders", number, "east.orders", state, position, 1_000, reason)


def said(partitions: Iterable[PartitionStatus], task: int = 0, flow: str = "east-west") -> TaskStatus:
    return TaskStatus(flow, "east", "west", "run", task, 2, 0.0, False, None, 0, 0, 0.0, 0.0, tuple(partitions))


@pytest.mark.parametrize(
    ("position", "state", "missing"),
    [
        (9, RUNNING, 1),
        (10, RUNNING, 0),
        (11, RUNNING, 0),
        (10, OPENING, 1),  # a position from before a break proves nothing
        (10, PARKED, 1),
        (-1, OPENING, 1),
    ],
)
def test_a_partition_is_there_when_it_runs_at_its_goal(position: int, state: PartitionState, missing: int) -> None:
    assert goals(p0=10).progress([said([partition(0, position, state)])]).missing == missing


def test_what_nobody_speaks_of_is_missing_even_when_empty() -> None:
    assert goals(p0=10, p1=0).progress([]).missing == 2
    assert goals(p0=10, p1=0).progress([said([], flow="other")]).missing == 2


def test_an_empty_partition_is_there_as_soon_as_somebody_speaks_of_it() -> None:
    assert goals(p0=0).progress([said([partition(0, -1, OPENING)])]).missing == 0


def test_parked_partitions_below_their_goal_are_listed_with_their_flow() -> None:
    stuck = partition(1, 4, PARKED)
    progress = goals(p0=10, p1=10).progress([said([partition(0, 5)]), said([stuck], task=1)])
    assert (progress.missing, progress.parked) == (2, (("east-west", stuck),))


def test_only_parked_ones_are_left() -> None:
    stuck = partition(1, 4, PARKED)
    progress = goals(p0=10, p1=10).progress([said([partition(0, 10), stuck])])
    assert progress.missing == len(progress.parked) == 1


def test_a_paused_partition_is_stuck_as_a_parked_one_is() -> None:
    stuck = partition(1, 4, PartitionState.PAUSED)
    assert goals(p0=10, p1=10).progress([said([partition(0, 10), stuck])]).parked == (("east-west", stuck),)


def test_a_topic_that_is_left_out_is_stuck_with_its_reason() -> None:
    progress = goals(p0=10, p1=0).progress([], {("east-west", "orders"): "somebody else made its copy"})
    assert progress.missing == len(progress.parked) == 1
    ((flow, stuck),) = progress.parked
    assert (flow, stuck.topic, stuck.partition, str(stuck.reason)) == (
        "east-west",
        "orders",
        0,
        "somebody else made its copy [AB231]",
    )


def test_without_goals_nothing_is_missing() -> None:
    assert CatchUp().progress([said([partition(0, 0)])]).missing == 0


def test_what_another_run_has_counts_as_it_says_and_not_as_those_who_wait_for_it() -> None:
    waiting = said([partition(0, -1, PartitionState.WAITING)])
    other = replace(said([partition(0, 10)]), run="other")
    assert goals(p0=10).progress([other, waiting]).missing == 0
    assert goals(p0=11).progress([other, waiting]).missing == 1
    assert goals(p0=10).progress([waiting]).missing == 1


class Source:
    """A source's answers about where its logs end, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **ends: int) -> None:
        self.ends = {("orders", int(name[1:])): end for name, end in ends.items()}
        self.asked: list[list[tuple[str, int]]] = []
        self.error: AnabranchError | None = None
        self.now = 100.0
        monkeypatch.setattr(goals_module, "_ends", self.answer)
        monkeypatch.setattr(goals_module, "time", SimpleNamespace(time=time.time, monotonic=lambda: self.now))

    def answer(self, _spec: object, logs: list[tuple[str, int]]) -> dict[tuple[str, str, int], int]:
        self.asked.append(logs)
        if self.error is not None:
            raise self.error
        return {("east-west", *log): self.ends[log] for log in logs}


def short(number: int, position: int, end: int) -> TaskStatus:
    return said([replace(partition(number, position), end=end)])


def test_where_the_source_has_lost_records_its_new_end_is_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked itself, and not before some time: a new leader may be behind for a moment."""
    source, wanted = Source(monkeypatch, p0=6), goals(p0=10)
    wanted._specs = {"east-west": None}  # type: ignore[dict-item]
    assert wanted.progress([short(0, 4, 5)]).missing == 1
    source.now += 9
    assert wanted.progress([short(0, 5, 5)]).missing == 1
    assert source.asked == []
    source.now += 1
    assert wanted.progress([short(0, 5, 6)]).missing == 1
    assert source.asked == [[("orders", 0)]]
    assert wanted.progress([short(0, 6, 6)]).missing == 0


def test_a_log_that_has_its_end_again_keeps_its_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    source, wanted = Source(monkeypatch, p0=12), goals(p0=10)
    wanted._specs = {"east-west": None}  # type: ignore[dict-item]
    for end in (5, 10, 5):
        assert wanted.progress([short(0, 5, end)]).missing == 1
        source.now += 6
    assert source.asked == []
    source.now += 5
    assert wanted.progress([short(0, 5, 5)]).missing == 1
    # It is longer by now, and no more is to be reached than there was at the start.
    assert (len(source.asked), wanted.progress([short(0, 10, 12)]).missing) == (1, 0)


def test_a_source_that_does_not_answer_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    source, wanted = Source(monkeypatch, p0=5), goals(p0=10)
    wanted._specs = {"east-west": None}  # type: ignore[dict-item]
    source.error = Unreachable(Problem("AB310", "east", "does not answer", ""))
    assert wanted.progress([short(0, 5, 5)]).missing == 1
    for _ in range(3):
        source.now += 5
        assert wanted.progress([short(0, 5, 5)]).missing == 1
    assert len(source.asked) == 1
    source.error = None
    source.now += 5
    assert wanted.progress([short(0, 5, 5)]).missing == 0


def test_what_open_transactions_hold_back_is_named_and_no_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow("east-west", "east", "west", Selection((".*",)), offsets="translated")
    topology = Topology("t", {alias: Cluster(alias, ("localhost:1",)) for alias in ("east", "west")}, (flow,))
    spec = FlowSpec.compile(topology, flow, "run")
    places = [Place("orders", number, "east.orders", "translated") for number in range(3)]

    def ends(_spec: FlowSpec, logs: Sequence[Log], *, committed: bool = True) -> dict[tuple[str, str, int], int]:
        # A transaction holds 10 offsets of partition 1 back; what held partition 2 back has just ended.
        return {("east-west", *log): 5 if committed or not log[1] else 15 for log in logs}

    monkeypatch.setattr(goals_module, "_ends", ends)
    held = TransactionHolder(ProducerState(7, 3, 0, open_transaction=True, opened_at=5), "app-1")
    monkeypatch.setattr(goals_module, "holders", lambda _, logs: {log: held for log in logs if log[1] == 1})
    made = CatchUp()
    made.add(spec, places)
    assert made.progress([said([partition(number, 5) for number in range(3)])]).missing == 0
    (problem,) = made.held()
    assert (problem.code, problem.where) == ("AB653", "cluster east (localhost:1), topic orders, partition 1")
    assert problem.message == (
        "10 offsets stand behind an open transaction of producer 7, epoch 3, transactional id app-1: "
        "not copied before it has ended"
    )
    # A flow that reads open transactions has copied them.
    uncommitted = replace(spec, flow=replace(flow, isolation_level="read_uncommitted"))
    made = CatchUp()
    made.add(uncommitted, places)
    assert made.held() == []
