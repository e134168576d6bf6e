"""Who is put back at the source may read on at once, and whatever is looked at goes before that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.cli import failback
from reconciler.failover import failback as going_back
from reconciler.failover import failover
from reconciler.failover.failback import Failback
from reconciler.failover.groups.group_positions import Path
from reconciler.failover.logs.divergence import Divergence
from reconciler.failover.options import FailbackOptions, FailoverOptions
from reconciler.failover.return_paths import paths_back
from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Log, LogBounds, Move
from reconciler.model.recorded.failover import Carried, Cut, FailbackPlan, FailedOver, Returning
from reconciler.model.recorded.placed import Placed

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
    for module in (going_back, failover):
        monkeypatch.setattr(module, "Groups", lambda cluster: sides[cluster.alias])
    return sides


def over(monkeypatch: pytest.MonkeyPatch, state: FailedOver) -> Records:
    records = Records(state)
    for module in (going_back, failover):
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
    east, coming = sides["east"], Failback(TOPOLOGY, FLOW, FailbackOptions())
    assert (coming.move(PLAN, to_120(900)), east.stands) == ((1, []), 120)
    assert (coming.move(PLAN, to_120(400)), coming.move(PLAN, to_120(119))) == ((0, []), (1, []))


def test_who_was_refused_goes_to_its_exact_place_later(monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]) -> None:
    over(monkeypatch, STATE)
    east, coming = sides["east"], Failback(TOPOLOGY, FLOW, FailbackOptions())
    east.refuses = True
    assert coming.move(PLAN, to_120(60))[0] == 0
    east.refuses = False
    assert (coming.move(PLAN, to_120(400)), east.stands) == ((1, []), 120)


def test_what_was_committed_in_an_original_that_is_made_anew_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]
) -> None:
    state = replace(STATE, cuts={"orders": replace(CUT, anew="wanted")}, returned={"billing": PLACED})
    records, made = over(monkeypatch, state), list[str]()
    monkeypatch.setattr(going_back, "recreate", lambda _cluster, _topology, topic: made.append(topic))
    coming = Failback(TOPOLOGY, FLOW, FailbackOptions())
    monkeypatch.setattr(coming, "_divergence", Ends())
    assert (coming.rebuild(PLAN, {}), made) == (["orders"], ["orders"])
    assert records.state.returned == {"billing": Placed(frozenset({("payments", 0)}))}
    assert records.state.cuts["orders"].anew == "made"


class Ends:
    """Where originals end."""

    def __init__(self, ends: Mapping[str, int] | None = None) -> None:
        self.now = dict(ends or {})

    def ends(self, cuts: Iterable[Cut]) -> dict[Log, int]:
        return {(cut.topic, 0): self.now[cut.topic] for cut in cuts if cut.topic in self.now}


def test_an_original_that_grows_while_others_are_made_anew_is_not_deleted(
    monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]
) -> None:
    cuts = {name: replace(CUT, topic=name, remote=f"east.{name}", anew="wanted") for name in ("orders", "payments")}
    records, made = over(monkeypatch, replace(STATE, cuts=cuts)), list[str]()
    ends, coming = Ends(dict.fromkeys(cuts, 7)), Failback(TOPOLOGY, FLOW, FailbackOptions())
    monkeypatch.setattr(coming, "_divergence", ends)

    def make(_cluster: Cluster, _topology: str, topic: str) -> None:
        made.append(topic)
        ends.now |= {"orders": 0, "payments": 8}

    monkeypatch.setattr(going_back, "recreate", make)
    with pytest.raises(Refused, match=r"topic payments.*it was not deleted.*\[AB712\]"):
        coming.rebuild(replace(PLAN, cuts=cuts), {(name, 0): 7 for name in cuts})
    assert (made, {name: cut.anew for name, cut in records.state.cuts.items()}) == (
        ["orders"],
        {"orders": "made", "payments": "wanted"},
    )


def test_groups_go_back_along_one_flow_for_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = {
        name: Cut(name, f"east.{name}", "translated", ((100, 90), (50, 40))) for name in ("orders", "payments", "idle")
    }
    cuts["anew"] = Cut("anew", "east.anew", "translated", ((100, 90),), anew="made")
    cuts["same"] = Cut("same", "east.same", "identical", ((100, 100),))
    topics = tuple(
        replace(
            TOPIC,
            topic=name,
            remote=cut.remote,
            mode=cut.mode,
            is_new=name != "idle",
            is_rebuilt=cut.anew == "made",
        )
        for name, cut in cuts.items()
    )
    # Nothing came to the second partitions.
    there = {
        (cut.remote, number): LogBounds(0, end, end) for cut in cuts.values() for number, end in enumerate((120, 40))
    }
    monkeypatch.setattr(Divergence, "bounds", lambda *_: there)
    usual = {cut.remote: [Path(FLOW, "upstream", cut.topic, cut.topic)] for cut in cuts.values()}
    found = paths_back(usual, replace(PLAN, topics=topics, cuts=cuts), FLOW, cast("Groups", None))
    back = {name: found[f"east.{name}"][:-1] for name in cuts}
    assert [found[remote][-1:] for remote in usual] == list(usual.values())
    assert (back["idle"], back["same"]) == ([], [])
    (orders,), (payments,), (anew,) = back["orders"], back["payments"], back["anew"]
    assert orders.flow == payments.flow != anew.flow
    assert (orders.begins, payments.begins, anew.begins) == ({0: 90}, {0: 90}, {0: 0})
    assert (orders.original, orders.to_topic, orders.flow.remote_topic("east.orders")) == (
        "east.orders",
        "orders",
        "orders",
    )


def test_a_failback_that_is_broken_off_has_put_nobody_anywhere(
    monkeypatch: pytest.MonkeyPatch, sides: dict[str, Side]
) -> None:
    records = over(monkeypatch, replace(STATE, returned={"billing": PLACED}))
    begun = failover.Failover(TOPOLOGY, FLOW, FailoverOptions(source_lost=True)).begin()
    assert (begun.phase, begun.returned, records.state) == ("over", {}, begun)


def test_what_cannot_be_told_when_all_is_back_keeps_nobody_away() -> None:
    class Untold:
        def uncrossed(self, _plan: FailbackPlan) -> list[Problem]:
            raise EnvironmentFault(Problem("AB706", "topic orders", "a transaction is open", "end it"))

    (problem,) = failback._uncrossed(cast("Failback", Untold()), PLAN)
    assert (problem.code, problem.message.startswith("a transaction is open: whether")) == ("AB706", True)
    assert problem.remedy.startswith("end it; ")
