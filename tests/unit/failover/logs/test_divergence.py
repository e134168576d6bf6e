"""What a failover and a failback go by, as far as it is a matter of values alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs import divergence
from reconciler.failover.logs.cuts import as_cut, before
from reconciler.failover.logs.divergence import Divergence
from reconciler.failover.logs.topic_identity import lookalikes
from reconciler.failover.objections import bad_rebuilds, diverged
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.failover import Anew, Carried, Crossing, Cut, FailbackPlan, FailedOver, Returning
from reconciler.report.failover import failback_lines

CUT = Cut("orders", "east.orders", "identical", ((100, 100), (90, 95)))


def carried(to_topic: str, partition: int, to_offset: int | None) -> Carried:
    return Carried("app", "orders", partition, 100, 0, to_topic, to_offset)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (carried("east.orders", 0, 40), 40),
        (carried("east.orders", 0, 100), 100),
        (carried("east.orders", 0, 150), 100),
        (carried("east.orders", 1, 96), 95),
        (carried("east.orders", 0, None), None),
        # What was added since, and what is no copy of the flow.
        (carried("east.orders", 2, 150), 150),
        (carried("orders", 0, 150), 150),
    ],
)
def test_nobody_from_the_source_goes_on_behind_what_others_wrote(told: Carried, expected: int | None) -> None:
    assert before(told, [CUT]) == replace(told, to_offset=expected)


def test_what_others_wrote_counts_for_nothing_as_copied() -> None:
    grown = [Crossing("orders", "east.orders", number, "identical", 150, 150) for number in range(3)]
    found = [as_cut(one, CUT) for one in grown]
    # A partition that no cut has was made later, as was a topic.
    assert [(one.copied, one.remote_end) for one in found] == [(100, 100), (90, 95), (-1, 150)]
    assert as_cut(grown[0], None).copied == -1


def plan(cut: Cut, *, is_diverged: bool = False, is_rebuilt: bool = False) -> FailbackPlan:
    topic = Returning("orders", "east.orders", "identical", 2, 5, 7, True, is_diverged, is_rebuilt)
    state = FailedOver("east-west", "returning", 1.0, "me@here", {"orders": cut})
    return FailbackPlan("east-west", "east", "west", state, (topic,), (), (), {"orders": cut})


@pytest.mark.parametrize(
    ("is_diverged", "is_handed", "anew", "is_refused"),
    [
        (False, False, "", True),
        (True, False, "", False),
        (False, False, "wanted", False),
        # Something is copied back into it already: who cannot end that otherwise makes it anew.
        (False, True, "", False),
    ],
)
def test_only_what_has_a_reason_is_made_anew(
    *, is_diverged: bool, is_handed: bool, anew: Anew, is_refused: bool
) -> None:
    looked = plan(replace(CUT, is_handed=is_handed, anew=anew), is_diverged=is_diverged)
    assert [one.code for one in bad_rebuilds(looked, ["orders"])] == ["AB704"] * is_refused
    assert [one.code for one in bad_rebuilds(looked, ["others"])] == ["AB704"]
    assert list(bad_rebuilds(looked, [])) == []


def test_what_has_diverged_is_refused_until_it_is_named() -> None:
    (problem,) = diverged(plan(CUT, is_diverged=True), "cluster east")
    assert (problem.code, problem.where) == ("AB705", "cluster east, topic orders")
    assert "7 records that were never copied, and its copy east.orders has 5 new ones: the" in problem.message
    assert list(diverged(plan(CUT, is_diverged=True, is_rebuilt=True), "cluster east")) == []
    assert list(diverged(plan(CUT), "cluster east")) == []


@pytest.mark.parametrize(
    ("mode", "count", "new", "said", "remedy"),
    [
        ("identical", 7, 0, "it has 7 records that were never copied, and beyond the cut, its copy", "are exported"),
        (
            "identical",
            0,
            5,
            "only transaction markers or deleted records, and its copy east.orders has 5 new records",
            "no record",
        ),
        ("translated", 0, 5, "is not what was copied, and its copy east.orders has 5 new records: the two", "exported"),
    ],
)
def test_what_is_refused_says_why(mode: str, count: int, new: int, said: str, remedy: str) -> None:
    looked = plan(CUT, is_diverged=True)
    topics = (replace(looked.topics[0], mode=mode, diverged=count, new=new),)
    (problem,) = diverged(replace(looked, topics=topics), "cluster east")
    assert (problem.code, said in problem.message, remedy in problem.remedy) == ("AB705", True, True), problem


@pytest.mark.parametrize("mode", ["identical", "translated"])
@pytest.mark.parametrize(
    ("bounds", "records"),
    [
        (LogBounds(0, 101, 101), 0),
        (LogBounds(110, 110, 110), 0),
        (LogBounds(0, 110, 110), 7),
        (LogBounds(0, 100, 100), 0),
    ],
    ids=["an end of a transaction", "deleted", "records", "nothing"],
)
def test_what_holds_no_record_is_in_the_way_of_the_same_offsets_alone(
    monkeypatch: pytest.MonkeyPatch, mode: str, bounds: LogBounds, records: int
) -> None:
    class Side:
        def __init__(self, bounds: LogBounds) -> None:
            self._bounds = bounds
            self.cluster = None

        def bounds(self, logs: Collection[Log]) -> dict[Log, LogBounds]:
            return dict.fromkeys(logs, self._bounds)

    monkeypatch.setattr(divergence, "about", lambda _cluster, parts: dict.fromkeys(parts, 5))
    monkeypatch.setattr(divergence, "counted", lambda _cluster, parts: dict.fromkeys(parts, records))
    looking = Divergence(cast("Groups", Side(bounds)), cast("Groups", Side(LogBounds(0, 105, 105))), ())
    cuts = {"orders": Cut("orders", "east.orders", mode, ((100, 100),))}
    (found,) = looking.topics(cuts)
    is_in_the_way = records > 0 or (mode == "identical" and bounds.end > 100)
    assert (found.new, found.diverged, found.is_new, found.is_diverged) == (5, records, True, is_in_the_way)
    # One that was made anew, or lost nobody knows what, has nothing in common with its copy.
    (found,) = looking.topics(cuts, {"orders"})
    assert found.is_diverged


def test_topics_that_are_called_as_copies_and_are_none_are_told() -> None:
    flow = Flow("east-west", "east", "west", Selection(("orders.*",)), dlq="east.orders-dead")
    names = ["east.orders", "east.orders-new", "orders-here", "east.payments", "east.orders-dead", "west.internal"]
    names += ["north.orders", "heartbeats", "east.heartbeats", "east.west.orders"]
    aliases = ("east", "west", "north")
    (notice,) = lookalikes(flow, aliases, names, {"east.orders"})
    assert notice.endswith("stay at west unchanged: east.orders-new")
    assert lookalikes(flow, aliases, ["east.orders"], {"east.orders"}) == []

    same = replace(flow, policy=ReplicationPolicy("identity"))
    (notice,) = lookalikes(same, aliases, [f"orders-{number}" for number in range(9)], {"orders-0"})
    assert notice.endswith(": orders-1, orders-2, orders-3, orders-4, orders-5 and 3 more")


def test_a_failback_says_since_when_and_by_whom_the_flow_is_failed_over() -> None:
    state = FailedOver("east-west", "over", 1_764_000_000.0, "ops@host")
    lines = [line.plain for line in failback_lines(FailbackPlan("east-west", "east", "west", state, (), ()))]
    assert lines[1] == "  failed over since 2025-11-24 16:00:00 UTC by ops@host"
