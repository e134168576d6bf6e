"""What one round does where some groups do not tell, and where copies are not of one flow; clusters are made up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.checkpoints.groups.bounds import Refusals, Topic, TopicRefused
from reconciler.checkpoints.mirrormaker.formats import Checkpoint, CheckpointKey
from reconciler.checkpoints.service.rounds import Rounds
from reconciler.checkpoints.service.syncing import SyncedOffsets
from reconciler.checkpoints.translation.sides import LogSides
from reconciler.checkpoints.translation.translate import Translator
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster as Declared
from reconciler.model.declared.flow import Delivery, Flow, OffsetsMode
from reconciler.model.declared.groups import GroupRules
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Committed, Log, LogBounds, Move
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.offsets.translation import Translated

FLOW = Flow("f", "east", "west", Selection(("orders",)), groups=GroupRules(("b.*", "gone", "old"), sync_offsets=True))


class Cluster:
    """The groups of a cluster: what they have committed, and which of them do not tell."""

    def __init__(
        self, committed: Mapping[str, int], topic: str, hidden: Collection[str] = (), others: Mapping[str, str] = {}
    ) -> None:
        self._committed, self._topic, self._hidden, self._others = committed, topic, hidden, others
        self.partitions = {topic: 1}
        self.asked: list[str] = []
        self.done: list[tuple[str, int]] = []

    def refresh(self) -> None: ...

    def kinds(self) -> dict[str, str]:
        return dict.fromkeys(self._committed, "consumer")

    def against(self, _group: str, _kinds: object, *, may_create: bool) -> None:
        assert may_create

    def told(self, groups: Sequence[str]) -> tuple[list[Committed], dict[str, Problem]]:
        self.asked += groups
        found = [one for one in groups if one in self._committed and one not in self._hidden]
        wrong = {one: Problem("AB313", one, "hidden", "") for one in groups if one in self._hidden}
        topics = [self._others.get(one, self._topic) for one in found]
        return [Committed(one, topic, 0, self._committed[one]) for one, topic in zip(found, topics, strict=True)], wrong

    def commit(self, moves: Mapping[str, Sequence[Move]]) -> dict[Move, Problem]:
        self.done += [(one.owner, one.after) for some in moves.values() for one in some]
        return {}


class Writer:
    """The topic of checkpoints."""

    def __init__(self, *groups: str) -> None:
        self.known = {one.key: one for one in (Checkpoint(group, "east.orders", 0, 1, 1) for group in groups)}

    def standing(self) -> dict[CheckpointKey, Checkpoint]:
        return self.known

    def refresh(self) -> dict[CheckpointKey, Checkpoint]:
        return self.known

    def emit(self, checkpoints: Collection[Checkpoint]) -> int:
        self.known |= {one.key: one for one in checkpoints}
        return len(checkpoints)

    def take_back(self, is_gone: Callable[[CheckpointKey], bool]) -> int:
        gone = [key for key in self.known if is_gone(key)]
        for key in gone:
            del self.known[key]
        return len(gone)


class Words:
    """A translator to which all offsets are the same."""

    def __init__(self, *fillers: str, closed: Mapping[str, Problem] | None = None, unread: str = "") -> None:
        self._shared = {("east.orders", 0): list(fillers)} if fillers else {}
        self.asked: list[object] = []
        self.closed = closed or {}
        self._unread = unread

    def refresh(self, logs: Collection[object], *, only: bool) -> None:
        assert only
        self.asked.append(logs)

    def downstream(self, topic: str, _partition: int, offset: int) -> Translated:
        if topic == self._unread:
            raise TopicRefused(Problem("AB313", topic, "not READ", ""))
        return Translated(None, "unknown", "closed") if topic in self.closed else Translated(offset, "record", "")

    def shared(self) -> dict[tuple[str, int], list[str]]:
        return self._shared


def rounds_of(source: Cluster, target: Cluster, writer: Writer, words: Words, flow: Flow = FLOW) -> Any:
    made: Any = object.__new__(Rounds)
    made._flow, made._aliases, made._writer, made._translator = flow, ("east", "west"), writer, words
    made._source, made._target = Declared("east", ("e:1",)), Declared("west", ("w:1",))
    made._groups = {"east": source, "west": target}
    made._synced, made._committed_at, made._renew_after = SyncedOffsets(), {}, 1e9
    made._round_of, made.looks = {"books": 5.0}, []
    made._heart = SimpleNamespace(beat=lambda *_: None)
    made._look = SimpleNamespace(write=made.looks.append)
    # Nothing there is on record of others.
    made._of_others = lambda _: set()
    return made


def test_a_group_that_does_not_tell_is_named_and_the_others_go_on() -> None:
    """They may be silent at the source, at the target, or have a checkpoint that somebody wrote, and not be listed."""
    source = Cluster({"billing": 5, "books": 6, "bare": 7}, "orders", hidden=("books", "old"))
    target = Cluster({"billing": 1, "bare": 1}, "east.orders", hidden=("bare",))
    writer = Writer("old", "gone", "books", "reports")
    rounds = rounds_of(source, target, writer, Words())
    done = rounds.round()
    assert [one.where for one in done.problems] == ["books", "old", "bare"]
    # What is refused has its reason and keeps the time of the last round that synced it.
    (look,) = rounds.looks
    assert [(group.name, bool(group.code)) for group in look.by_group] == [
        ("books", True),
        ("bare", False),
        ("billing", False),
    ]
    assert look.by_group[0].time == 5.0
    assert {group.time for group in look.by_group[1:]} == {look.time}
    assert target.done == [("billing", 5)]
    # Whether they are gone nobody knows; and of what the flow does not take nobody asks.
    assert {key.group for key in writer.known} == {"old", "books", "reports", "billing", "bare"}
    assert "reports" not in source.asked
    assert (done.groups, done.written, done.taken_back, done.committed) == (2, 2, 1, 1)


def test_topics_that_are_closed_to_us_are_named_and_groups_of_others_go_on() -> None:
    """One may not be described, and another not be read, where syncs do not tell what stands in it."""
    flow = replace(FLOW, topics=Selection((".*",)))
    source = Cluster({"billing": 5, "books": 6, "bare": 7}, "orders", others={"books": "secret", "bare": "unread"})
    source.partitions |= {"secret": 1, "unread": 1}
    closed = {
        "secret": Problem("AB313", "secret", "not DESCRIBE", ""),
        "of-before": Problem("AB313", "of-before", "", ""),
    }
    writer = Writer("books")
    writer.known |= {one.key: one for one in [Checkpoint("books", "east.secret", 0, 3, 3)]}
    done = rounds_of(source, Cluster({}, "x"), writer, Words(closed=closed, unread="unread"), flow).round()
    assert [one.where for one in done.problems] == ["secret", "unread"]
    assert done.unknown == {
        "secret": "secret/0 of group books: closed",
        "unread": "unread/0 of group bare: not READ",
    }
    # What was told of it before stays.
    assert {(key.group, key.topic) for key in writer.known} == {("billing", "east.orders"), ("books", "east.secret")}


class Asked:
    """An asker of which some topics are not to be described, or their partitions not."""

    def __init__(self, *, no_topic: str = "", no_bounds: str = "") -> None:
        self._no_topic, self._no_bounds = no_topic, no_bounds
        self.end = 9

    def topics(self, names: Collection[str], refusals: Refusals) -> dict[str, Topic]:
        refusals |= {name: refusal(name) for name in names if name == self._no_topic}
        return {name: Topic("id", 1) for name in names if name != self._no_topic}

    def bounds(self, logs: Collection[Log], refusals: Refusals | None = None) -> dict[Log, LogBounds]:
        if refusals is not None:
            refusals |= {topic: refusal(topic) for topic, _ in logs if topic == self._no_bounds}
        return {log: LogBounds(0, self.end, self.end) for log in logs if log[0] != self._no_bounds}


def refusal(topic: str) -> TopicRefused:
    return TopicRefused(Problem("AB313", topic, f"not DESCRIBE on {topic}", ""))


def sides_of(source: Asked, target: Asked, *, one_by_one: bool) -> Any:
    made: Any = LogSides(Declared("east", ("e:1",)), Declared("west", ("w:1",)), FLOW, 1.0, one_by_one=one_by_one)
    made._source, made._target = source, target
    return made


CLOSED = [
    ({"no_topic": "a"}, {}),
    ({"no_bounds": "a"}, {}),
    ({}, {"no_topic": "east.a"}),
    ({}, {"no_bounds": "east.a"}),
]


@pytest.mark.parametrize(("source", "target"), CLOSED)
def test_a_topic_that_is_closed_on_one_side_leaves_the_others(source: dict[str, str], target: dict[str, str]) -> None:
    logs = {("a", 0), ("b", 0), ("b", 1)}
    sides = sides_of(Asked(**source), Asked(**target), one_by_one=True)
    assert sides.look(logs) == {("b", 0)}
    assert list(sides.closed) == ["a"]
    assert sides.why_not["a"].startswith("not DESCRIBE on ")
    assert ("b", 0) in sides.at_source
    assert ("b", 0) in sides.at_target
    with pytest.raises(TopicRefused, match="not DESCRIBE on"):
        sides_of(Asked(**source), Asked(**target), one_by_one=False).look(logs)
    # Open again.
    sides._source, sides._target = Asked(), Asked()
    assert sides.look(logs) == {("a", 0), ("b", 0)}
    assert (sides.closed, sides.why_not) == ({}, {})


def test_what_has_come_since_a_look_is_not_lost() -> None:
    target = Asked()
    sides = sides_of(Asked(), target, one_by_one=False)
    sides.look({("a", 0), ("b", 0)})
    assert sides.lost({("a", 0): 9}) == {}
    target.end = 11
    assert sides.lost({("a", 0): 10, ("b", 0): 12, ("c", 0): 13}) == {("b", 0): 11}


def test_in_a_copy_that_another_flow_fills_too_nothing_is_committed() -> None:
    source, target = Cluster({"billing": 5}, "orders"), Cluster({}, "east.orders")
    done = rounds_of(source, target, Writer(), Words("north-west")).round()
    (problem,) = done.problems
    assert (problem.code, done.written, target.done) == ("AB716", 1, [])
    assert "topic east.orders" in problem.where
    assert "flow north-west" in problem.message


def translator_of(flow: Flow, **attributes: object) -> Any:
    made: Any = object.__new__(Translator)
    made._flow = flow
    for name, value in attributes.items():
        setattr(made, f"_{name}", value)
    return made


def test_other_flows_count_that_have_copied_into_the_topic_of_today() -> None:
    others = {
        "same": CopyRecord("1", "7"),
        "announced": CopyRecord("1", "7", is_begun=False),
        "before": CopyRecord("1", "6"),
    }
    copies = SimpleNamespace(of_others=lambda *asked: others if asked == ("f", "east.orders", 0) else {})
    wanted = {("orders", 0), ("orders", 1), ("gone", 0)}
    translator = translator_of(FLOW, copies=copies, sides=SimpleNamespace(ids={"orders": ("1", "7")}), wanted=wanted)
    assert translator.shared() == {("east.orders", 0): ["same"]}


@pytest.mark.parametrize(
    ("declared", "chosen", "delivery", "told", "is_behind", "expected"),
    [
        ("auto", {}, "exactly-once", [], False, True),
        ("auto", {}, "exactly-once", [1], False, False),
        ("auto", {}, "exactly-once", [], True, False),
        ("auto", {}, "at-least-once", [], False, False),
        ("auto", {"orders": "identical"}, "exactly-once", [1], True, True),
        ("auto", {"orders": "translated"}, "exactly-once", [], False, False),
        ("identical", {}, "exactly-once", [], True, True),
    ],
)
def test_what_nobody_has_chosen_yet_is_identical_only_where_syncs_would_tell(
    declared: OffsetsMode, chosen: dict[str, str], delivery: Delivery, told: list[int], is_behind: bool, expected: bool
) -> None:
    flow = Flow("f", "east", "west", Selection(("orders",)), offsets=declared, delivery=delivery)
    history = SimpleNamespace(is_behind=is_behind, runs=lambda _: told)
    assert translator_of(flow, modes=chosen, history=history)._is_identical(("orders", 0)) is expected
