"""Who is put on the other side may read on at once: whoever runs the command once more takes nobody back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover import failover
from reconciler.failover.failover import Failover, MovedGroups
from reconciler.failover.groups import group_positions
from reconciler.failover.groups.group_positions import Path
from reconciler.failover.options import FailoverOptions
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Committed, Log, LogBounds, Move
from reconciler.model.offsets.translation import Translated
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.failover import Crossing, Cut, FailedOver
from reconciler.model.recorded.placed import Placed

SAME = ReplicationPolicy("identity")
ORDERS = Flow("orders-flow", "east", "west", Selection(("orders",)), policy=SAME)
PAYMENTS = Flow("payments-flow", "east", "west", Selection(("payments",)), policy=SAME)
ELSEWHERE = Flow("north-flow", "north", "west", Selection(("returns",)), policy=SAME)
CLUSTERS = {alias: Cluster(alias, (f"{alias}:9092",)) for alias in ("east", "north", "west")}
TOPOLOGY = Topology("shop", CLUSTERS, (ORDERS, PAYMENTS, ELSEWHERE))
CUTS = {"orders": 150, "payments": 300}


class Side:
    """One cluster: where group billing stands there, and what it does not take."""

    def __init__(self, alias: str, stands: Mapping[str, int]) -> None:
        self.cluster = CLUSTERS[alias]
        self.partitions = dict.fromkeys(CUTS, 1)
        self.stands = dict(stands)
        self.refused: dict[str, str] = {}
        self.lost: set[str] = set()

    def refresh(self) -> None: ...

    def chosen(self, _names: Sequence[str]) -> tuple[list[str], list[str]]:
        return ["billing"], []

    def committed(self, groups: Sequence[str]) -> list[Committed]:
        return [Committed(group, topic, 0, offset) for group in groups for topic, offset in self.stands.items()]

    def bounds(self, logs: Collection[Log]) -> dict[Log, LogBounds]:
        return {log: LogBounds(0, 1000, 1000) for log in logs}

    def commit(self, moves: Mapping[str, Sequence[Move]]) -> dict[Move, Problem]:
        wrong = {}
        for move in (move for some in moves.values() for move in some):
            if move.topic in self.refused:
                wrong[move] = Problem(self.refused[move.topic], move.topic, "refused", "")
                continue
            self.stands[move.topic] = move.after
            if move.topic in self.lost:
                wrong[move] = Problem("AB310", move.topic, "nobody knows", "")
        return wrong


class Records:
    """The journal of the target; it may be away when something is to be remembered."""

    def __init__(self) -> None:
        self.states: dict[str, FailedOver] = {}
        self.taken = 99

    def current(self) -> dict[str, FailedOver]:
        return dict(self.states)

    def put(self, state: FailedOver) -> None:
        self.states[state.flow] = state

    def put_moved(self, state: FailedOver, groups: Mapping[str, Placed]) -> None:
        self.taken -= 1
        if self.taken < 0:
            raise KeyboardInterrupt
        known = self.states[state.flow]
        self.states[state.flow] = replace(known, moved={**known.moved, **groups})


class Same:
    """Every offset is the same on both sides."""

    def __init__(self, *_arguments: object) -> None: ...

    def __enter__(self) -> Same:
        return self

    def __exit__(self, *_arguments: object) -> None: ...

    def refresh(self, _logs: object) -> None: ...

    def downstream(self, _topic: str, _partition: int, offset: int) -> Translated:
        return Translated(offset, "record")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene()
    paths = {"orders": [Path(ORDERS, "downstream", "orders", "orders")]}
    paths["payments"] = [Path(PAYMENTS, "downstream", "payments", "payments")]
    monkeypatch.setattr(group_positions, "Translator", Same)
    monkeypatch.setattr(group_positions, "paths", lambda *_: paths)
    monkeypatch.setattr(failover, "Groups", lambda cluster: scene.sides[cluster.alias])
    monkeypatch.setattr(failover, "Failovers", lambda *_: scene.records)
    return scene


class Scene:
    """Group billing reads originals of two flows between the same clusters."""

    def __init__(self) -> None:
        self.records = Records()
        self.east, self.west = Side("east", {"orders": 100, "payments": 100}), Side("west", {})
        self.sides = {"east": cast("Groups", self.east), "west": cast("Groups", self.west)}

    def fail_over(self, flow: Flow) -> MovedGroups:
        """Cut a flow's copy, and take everybody along."""
        going = Failover(TOPOLOGY, flow, FailoverOptions())
        (topic,) = flow.topics.include
        end = CUTS[topic]
        cut = Cut(topic, topic, "identical", ((end, end),))
        state = replace(going.begin(), phase="over", cuts={topic: cut})
        self.records.put(state)
        return going.move(state, going.carried([Crossing(topic, topic, 0, "identical", end, end)]))


def test_the_failover_of_another_flow_takes_nobody_back(scene: Scene) -> None:
    assert scene.fail_over(ORDERS).count == 2
    assert scene.west.stands == {"orders": 100, "payments": 100}
    # It reads on, in what others have written as well.
    scene.west.stands = {"orders": 700, "payments": 140}
    moved = scene.fail_over(PAYMENTS)
    assert (moved.count, [(one.to_topic, one.before) for one in moved.further]) == (
        0,
        [("orders", 700), ("payments", 140)],
    )
    assert scene.west.stands == {"orders": 700, "payments": 140}


def test_the_failover_of_another_flow_puts_nobody_behind_what_others_wrote(scene: Scene) -> None:
    scene.east.stands["orders"] = 180
    scene.fail_over(ORDERS)
    assert scene.west.stands == {"orders": 150, "payments": 100}
    scene.east.stands["payments"] = 120
    scene.fail_over(PAYMENTS)
    assert scene.west.stands == {"orders": 150, "payments": 120}


def test_what_leaves_another_cluster_tells_nothing(scene: Scene) -> None:
    state = FailedOver(ELSEWHERE.name, "over", 1.0, "ops", moved={"billing": Placed(is_whole=True)})
    scene.records.put(state)
    scene.west.stands = {"orders": 170}
    scene.fail_over(ORDERS)
    assert scene.west.stands == {"orders": 100, "payments": 100}


@pytest.mark.parametrize("code", ["AB313", "AB626"])
def test_a_partition_that_was_refused_throws_no_other_one_back(scene: Scene, code: str) -> None:
    scene.west.refused = {"payments": code}
    # Whatever stood there before is gone for good where it is not taken as the place to go on.
    scene.west.stands = {"payments": 900}
    moved = scene.fail_over(ORDERS)
    assert (moved.count, [one.code for one in moved.problems]) == (1, [code])
    scene.west.refused = {}
    scene.west.stands |= {"orders": 700, "payments": 950}
    moved = scene.fail_over(ORDERS)
    assert ([one.to_topic for one in moved.further], scene.west.stands) == (
        ["orders"],
        {"orders": 700, "payments": 100},
    )


@pytest.mark.parametrize("before", [None, 60, 100, 900])
def test_an_answer_that_was_lost_counts_by_what_is_there(scene: Scene, before: int | None) -> None:
    scene.west.stands = {} if before is None else {"payments": before}
    scene.west.lost = {"payments"}
    assert scene.fail_over(ORDERS).count == 1
    scene.west.stands["payments"] = 140
    scene.west.lost = set()
    scene.fail_over(ORDERS)
    assert scene.west.stands == {"orders": 100, "payments": 140}


@pytest.mark.parametrize("is_committed", [False, True])
def test_whoever_dies_around_the_commit_is_followed_rightly(scene: Scene, *, is_committed: bool) -> None:
    scene.west.stands = {"orders": 900}
    scene.records.taken = 1 if is_committed else 0
    with pytest.raises(KeyboardInterrupt):
        scene.fail_over(ORDERS)
    scene.records.taken = 99
    assert scene.west.stands == ({"orders": 100, "payments": 100} if is_committed else {"orders": 900})
    if is_committed:
        scene.west.stands = {"orders": 130, "payments": 140}
    scene.fail_over(ORDERS)
    # What was never committed goes to its exact place, be that back.
    expected = {"orders": 130, "payments": 140} if is_committed else {"orders": 100, "payments": 100}
    assert scene.west.stands == expected


def test_an_intent_that_was_never_carried_out_is_carried_out_by_the_next(scene: Scene) -> None:
    scene.west.stands = {"orders": 900}
    state = FailedOver(ORDERS.name, "over", 1.0, "ops", moved={"billing": Placed(begun={("orders", 0): 900})})
    scene.records.put(state)
    scene.fail_over(ORDERS)
    assert scene.west.stands == {"orders": 100, "payments": 100}


LOGS = st.tuples(st.sampled_from(["orders", "pay.ments"]), st.integers(0, 3))
PLACED = st.builds(Placed, st.frozensets(LOGS), st.dictionaries(LOGS, st.none() | st.integers(0, 9)), st.booleans())


@given(PLACED)
def test_what_is_remembered_is_written_down_and_read_again(placed: Placed) -> None:
    assert Placed.from_json(json.loads(json.dumps(placed.to_json()))) == placed


def test_a_group_of_an_older_release_was_moved_as_a_whole() -> None:
    old: dict[str, Any] = {"kind": "failover-moved", "group": "billing"}
    assert Placed.from_json(old).may_have_read_on(("orders", 3), None)
