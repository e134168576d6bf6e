"""Groups that a failover cannot move are named: those that keep state elsewhere, and those of which nothing tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.mirrormaker.formats import Checkpoint
from reconciler.failover.groups import group_positions
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Committed, Log, LogBounds
from reconciler.model.offsets.translation import Translated
from reconciler.model.recorded.ownership import OwnedTopic

FLOW = Flow("over", "east", "west", Selection(("orders",)))
HIDDEN = Problem("AB313", "group hidden", "hidden", "")


class FakeGroups:
    """One side of a flow: which groups keep state elsewhere, and what they have committed."""

    cluster = Cluster("west", ("localhost:1",))

    def __init__(self, others: Mapping[str, str], committed: Mapping[str, str]) -> None:
        self._others = others
        self._committed = committed

    def others(self) -> dict[str, Problem]:
        return {name: Problem("AB629", name, f"is a {kind} group", "wait") for name, kind in self._others.items()}

    def committed(self, groups: Sequence[str]) -> list[Committed]:
        if "hidden" in groups:
            raise EnvironmentFault(HIDDEN)
        return [Committed(name, self._committed[name], 0, 7) for name in groups if name in self._committed]


def named(others: Mapping[str, str], committed: Mapping[str, str], chosen: Sequence[str] | None = None) -> list[str]:
    here = cast("Groups", FakeGroups(others, committed))
    return [
        f"group {one.group} {one.why.split(' the flow')[0]}"
        for one in group_positions.not_moved(here, {"orders"}, chosen, FLOW)
    ]


def test_groups_that_keep_state_elsewhere_are_named_where_they_may_read_the_flows_topics() -> None:
    others = {"elsewhere": "streams", "hidden": "streams", "reads": "streams", "shares": "share"}
    committed = {"elsewhere": "invoices", "reads": "orders"}
    assert named(others, committed) == ["group hidden may read", "group reads reads", "group shares may read"]
    assert named(others, committed, ["sh.*"]) == ["group shares may read"]
    assert named({}, {}) == []


def test_readers_of_topics_without_a_copy_are_named() -> None:
    class Here(FakeGroups):
        def chosen(self, _names: Sequence[str]) -> tuple[list[str], list[str]]:
            return sorted(self._committed), []

    here = cast("Groups", Here({}, {"a": "orders-new", "b": "orders-new", "c": "orders", "d": "orders-late"}))
    topics = {"orders-new", "orders-late", "orders-idle"}
    assert group_positions.readers_of(here, topics, None, FLOW) == {
        "orders-idle": [],
        "orders-late": ["d"],
        "orders-new": ["a", "b"],
    }
    assert group_positions.readers_of(here, set(), None, FLOW) == {}


class Told:
    """What stands at the target: one copy, and one checkpoint."""

    def __init__(self, *_arguments: object) -> None: ...

    def read(self) -> dict[str, OwnedTopic]:
        return {"orders": OwnedTopic("orders", None, "topology", "", "over", "east", "orders", "", 1, "identical", {})}

    def checkpoints(self, _source: str) -> list[Checkpoint]:
        return [Checkpoint("known", "orders", 0, 100, 90)]


class Translates:
    """Says where an offset is that some checkpoint tells of."""

    def __init__(self, answer: Translated) -> None:
        self._answer = answer

    def __enter__(self) -> Translates:
        return self

    def __exit__(self, *_arguments: object) -> None: ...

    def refresh(self, logs: Collection[Log]) -> None:
        assert logs == {("orders", 0)}

    def downstream(self, topic: str, partition: int, offset: int) -> Translated:
        assert (topic, partition, offset) == ("orders", 0, 100)
        return self._answer


TOPOLOGY = Topology("topology", {"west": FakeGroups.cluster}, (FLOW,))


@pytest.mark.parametrize(
    ("answer", "goes_on"),
    [
        (Translated(100, "end"), 100),
        (Translated(95, "ahead", "not so far"), 95),
        (Translated(None, "unknown", "nothing tells"), 90),
        (Translated(None, "expired", "deleted"), None),
    ],
)
def test_a_checkpoint_is_looked_up_in_what_is_copied_by_now(
    monkeypatch: pytest.MonkeyPatch, answer: Translated, goes_on: int | None
) -> None:
    monkeypatch.setattr(group_positions, "Ownership", Told)
    monkeypatch.setattr(group_positions, "MirrorClient", Told)
    monkeypatch.setattr(group_positions, "Translator", lambda *_: Translates(answer))
    (one,) = group_positions.by_checkpoints(TOPOLOGY, FLOW, cast("Groups", FakeGroups({}, {})), None)
    assert (one.offset, one.to_offset) == (100, goes_on)


def test_without_the_source_a_named_group_without_a_checkpoint_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_positions, "Ownership", Told)
    monkeypatch.setattr(group_positions, "MirrorClient", Told)
    monkeypatch.setattr(group_positions, "Translator", lambda *_: Translates(Translated(None, "unknown")))
    there = cast("Groups", FakeGroups({}, {}))
    for chosen in (None, ["known"], ["all"], ["kno.*"]):
        found = group_positions.by_checkpoints(TOPOLOGY, FLOW, there, chosen)
        assert [(one.group, one.offset, one.to_offset) for one in found] == [("known", 100, 90)]
    for chosen in (["known", "typo"], ["kno.*", "typo.*"]):
        with pytest.raises(DeclaredInputError) as error:
            group_positions.by_checkpoints(TOPOLOGY, FLOW, there, chosen)
        (problem,) = error.value.problems
        assert (problem.code, "group typo" in problem.where) == ("AB625", True)


class Deleted:
    """A log that begins at 55, and what is told of offsets in front of it and at its beginning."""

    cluster = Cluster("east", ("localhost:1",))

    def bounds(self, logs: Collection[Log]) -> dict[Log, LogBounds]:
        return {log: LogBounds(55, 100, 100) for log in logs}

    def committed(self, groups: Sequence[str]) -> list[Committed]:
        return []


@pytest.mark.parametrize(
    ("told", "at_first", "goes_on", "is_said"),
    [
        # The copy has deleted it as well, with identical offsets and with its own.
        (None, 55, 55, True),
        (46, 46, 46, True),
        # It has it still: who has not read it reads it there.
        (10, 55, 10, False),
        # It has deleted more than the source: these are lost to the group.
        (None, None, None, False),
    ],
)
def test_a_position_in_front_of_the_first_record_goes_on_where_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, told: int | None, at_first: int | None, goes_on: int | None, is_said: bool
) -> None:
    class Answers(Translates):
        def downstream(self, topic: str, partition: int, offset: int) -> Translated:
            return {10: Translated(told, "expired", "told"), 55: Translated(at_first, "expired", "told")}[offset]

    monkeypatch.setattr(group_positions, "Translator", lambda *_: Answers(Translated(None, "unknown")))
    topology = Topology("topology", {"east": Deleted.cluster, "west": FakeGroups.cluster}, (FLOW,))
    here = cast("Groups", Deleted())
    ways = {"orders": [group_positions.Path(FLOW, "downstream", "orders", "orders")]}
    (one,) = group_positions.carried(topology, here, here, [Committed("low", "orders", 0, 10)], ways)
    assert (one.offset, one.lag, one.to_offset) == (10, 45, goes_on)
    assert (one.why == "offset 10 is deleted at east: it goes on at the first record") is is_said
