"""What one round does where some groups do not tell, and where copies are not of one flow; clusters are made up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.checkpoints.formats import Checkpoint, CheckpointKey
from reconciler.checkpoints.rounds import Rounds
from reconciler.checkpoints.syncing import Settled
from reconciler.checkpoints.translate import Translator
from reconciler.model.cluster import Cluster as Declared
from reconciler.model.committed import Committed, Move
from reconciler.model.errors import Problem
from reconciler.model.flow import Delivery, Flow, OffsetsMode
from reconciler.model.groups import GroupRules
from reconciler.model.runs import CopyRecord
from reconciler.model.selection import Selection
from reconciler.model.translation import Translated

FLOW = Flow("f", "east", "west", Selection(("orders",)), groups=GroupRules(("b.*", "gone", "old"), sync_offsets=True))


class Cluster:
    """The groups of a cluster: what they have committed, and which of them do not tell."""

    def __init__(self, committed: Mapping[str, int], topic: str, hidden: Collection[str] = ()) -> None:
        self._committed, self._topic, self._hidden = committed, topic, hidden
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
        return [Committed(one, self._topic, 0, self._committed[one], "", None) for one in found], wrong

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

    def __init__(self, *fillers: str) -> None:
        self._shared = {("east.orders", 0): list(fillers)} if fillers else {}
        self.asked: list[object] = []

    def refresh(self, logs: Collection[object], *, only: bool) -> None:
        assert only
        self.asked.append(logs)

    def downstream(self, _topic: str, _partition: int, offset: int) -> Translated:
        return Translated(offset, "record", "")

    def shared(self) -> dict[tuple[str, int], list[str]]:
        return self._shared


def rounds_of(source: Cluster, target: Cluster, writer: Writer, words: Words) -> Any:
    made: Any = object.__new__(Rounds)
    made._flow, made._aliases, made._writer, made._translator = FLOW, ("east", "west"), writer, words
    made._source, made._target = Declared("east", ("e:1",)), Declared("west", ("w:1",))
    made._groups = {"east": source, "west": target}
    made._settled, made._committed_at, made._renew_after = Settled(), {}, 1e9
    made._heart = SimpleNamespace(beat=lambda *_: None)
    return made


def test_a_group_that_does_not_tell_is_named_and_the_others_go_on() -> None:
    """They may be silent at the source, at the target, or have a checkpoint that somebody wrote, and not be listed."""
    source = Cluster({"billing": 5, "books": 6, "bare": 7}, "orders", hidden=("books", "old"))
    target = Cluster({"billing": 1, "bare": 1}, "east.orders", hidden=("bare",))
    writer = Writer("old", "gone", "books", "reports")
    done = rounds_of(source, target, writer, Words()).round()
    assert [one.where for one in done.problems] == ["books", "old", "bare"]
    assert target.done == [("billing", 5)]
    # Whether they are gone nobody knows; and of what the flow does not take nobody asks.
    assert {key.group for key in writer.known} == {"old", "books", "reports", "billing", "bare"}
    assert "reports" not in source.asked
    assert (done.groups, done.written, done.taken_back, done.committed) == (2, 2, 1, 1)


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
    translator = translator_of(FLOW, copies=copies, ids={"orders": ("1", "7")}, wanted=wanted)
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
