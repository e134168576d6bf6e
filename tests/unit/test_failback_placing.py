"""Who is put back at the source may read on at once, and whatever is looked at goes before that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from reconciler.cli import failback
from reconciler.failover import leaving, returning
from reconciler.failover.returning import Coming, Wishes
from reconciler.model.cluster import Cluster
from reconciler.model.committed import Move
from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.model.failover import Carried, Cut, FailbackPlan, FailedOver, Returning
from reconciler.model.flow import Flow
from reconciler.model.placed import Placed
from reconciler.model.selection import Selection
from reconciler.model.topology import Topology

FLOW = Flow("east-west", "east", "west", Selection(("orders",)))
CLUSTERS = {alias: Cluster(alias, (f"{alias}:9092",)) for alias in ("east", "west")}
TOPOLOGY = Topology("shop", CLUSTERS, (FLOW,))
CUT = Cut("orders", "east.orders", "identical", ((100, 100),), is_handed=True)
PLACED = Placed(frozenset({("orders", 0), ("payments", 0)}))


class Records:
    """The journal of the target."""

    def __init__(self, state: FailedOver) -> None:
        self.state = state

    def current(self) -> dict[str, FailedOver]:
        return {FLOW.name: self.state}

    def put(self, state: FailedOver) -> None:
        self.state = state

    def put_returned(self, state: FailedOver, groups: Mapping[str, Placed]) -> None:
        self.state = replace(state, returned={**self.state.returned, **groups})

    def forget_returned(self, state: FailedOver) -> None:
        self.state = replace(state, returned={})


class Side:
    """A cluster, and where group billing stands there."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.stands = 60
        self.refuses = False

    def commit(self, moves: Mapping[str, Sequence[Move]]) -> dict[Move, Problem]:
        wanted = [move for some in moves.values() for move in some]
        if self.refuses:
            return {move: Problem("AB626", "group billing", "it has members", "stop them") for move in wanted}
        for move in wanted:
            self.stands = move.after
        return {}


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> dict[str, Side]:
    sides = {alias: Side(cluster) for alias, cluster in CLUSTERS.items()}
    for module in (returning, leaving):
        monkeypatch.setattr(module, "Groups", lambda cluster: sides[cluster.alias])
    return sides


def over(monkeypatch: pytest.MonkeyPatch, state: FailedOver) -> Records:
    records = Records(state)
    for module in (returning, leaving):
        monkeypatch.setattr(module, "Failovers", lambda *_: records)
    return records


STATE = FailedOver(FLOW.name, "returning", 1.0, "ops", {"orders": CUT})
TOPIC = Returning("orders", "east.orders", "identical", 1, 50, 0, is_new=True, is_diverged=False, is_rebuilt=False)
PLAN = FailbackPlan(FLOW.name, "east", "west", STATE, (TOPIC,), (), (), {"orders": CUT})


def to_120(before: int) -> list[Carried]:
    return [Carried("billing", "east.orders", 0, 120, 0, "orders", 120, before)]


def test_who_was_put_back_and_has_read_on_stays_where_it_is(
    monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]
) -> None:
    over(monkeypatch, STATE)
    east, coming = sides["east"], Coming(TOPOLOGY, FLOW, Wishes())
    assert (coming.move(PLAN, to_120(900)), east.stands) == ((1, []), 120)
    assert (coming.move(PLAN, to_120(400)), coming.move(PLAN, to_120(119))) == ((0, []), (1, []))


def test_who_was_refused_goes_to_its_exact_place_later(monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]) -> None:
    over(monkeypatch, STATE)
    east, coming = sides["east"], Coming(TOPOLOGY, FLOW, Wishes())
    east.refuses = True
    assert coming.move(PLAN, to_120(60))[0] == 0
    east.refuses = False
    assert (coming.move(PLAN, to_120(400)), east.stands) == ((1, []), 120)


def test_what_was_committed_in_an_original_that_is_made_anew_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]
) -> None:
    state = replace(STATE, cuts={"orders": replace(CUT, anew="wanted")}, returned={"billing": PLACED})
    records, made = over(monkeypatch, state), list[str]()
    monkeypatch.setattr(returning, "made_anew", lambda _cluster, _topology, topic: made.append(topic))
    coming = Coming(TOPOLOGY, FLOW, Wishes())
    monkeypatch.setattr(coming, "_meanwhile", Ends())
    assert (coming.rebuild(PLAN, {}), made) == (["orders"], ["orders"])
    assert records.state.returned == {"billing": Placed(frozenset({("payments", 0)}))}
    assert records.state.cuts["orders"].anew == "made"


class Ends:
    def ends(self, _cuts: object) -> dict[tuple[str, int], int]:
        return {}


def test_a_failback_that_is_broken_off_has_put_nobody_anywhere(
    monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]
) -> None:
    records = over(monkeypatch, replace(STATE, returned={"billing": PLACED}))
    begun = leaving.Leaving(TOPOLOGY, FLOW, leaving.Wishes(source_lost=True)).begin()
    assert (begun.phase, begun.returned, records.state) == ("over", {}, begun)


def test_what_cannot_be_told_when_all_is_back_keeps_nobody_away() -> None:
    class Untold:
        def uncrossed(self, _plan: FailbackPlan) -> list[Problem]:
            raise EnvironmentFault(Problem("AB706", "topic orders", "a transaction is open", "end it"))

    (problem,) = failback._uncrossed(cast("Coming", Untold()), PLAN)
    assert (problem.code, problem.message.startswith("a transaction is open: whether")) == ("AB706", True)
    assert problem.remedy.startswith("end it; ")
