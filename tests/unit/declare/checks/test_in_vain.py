"""What would be declared in vain is an error: names that nothing has, and switches of what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.declare.declaring import HEAD, load, refused

BEGUN = "start: {offsets: {orders: [5]}}"
SYNCED = "groups: {sync-offsets: true}"


def flow(more: str) -> str:
    return f"{HEAD}flows: [{{from: a, to: b, {more}}}]\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (flow(f"topics: {{include: [users]}}, {BEGUN}"), "no flow that begins so takes a topic orders"),
        (
            f"{HEAD}flows: [{{from: a, to: b, topics: {{exclude: [orders]}}}}]\ndefaults: {{{BEGUN}}}\n",
            "a topic orders",
        ),
        (flow(SYNCED), "sync-offsets takes no group along, as groups.include names none"),
        (f"{HEAD}flows: [{{from: a, to: b}}, {{from: b, to: a}}]\ndefaults: {{{SYNCED}}}\n", "takes no group along"),
    ],
)
def test_what_would_change_nothing_is_told_once(tmp_path: Path, body: str, message: str) -> None:
    (problem,) = refused(tmp_path, body)
    assert problem.code == "AB104"
    assert message in problem.message


@pytest.mark.parametrize(
    "body",
    [
        flow(f"topics: {{include: ['ord.*']}}, {BEGUN}"),
        # It is enough that one of those takes it to whom it is said.
        f"{HEAD}flows: [{{from: a, to: b}}, {{from: b, to: a, topics: {{include: [x]}}}}]\ndefaults: {{{BEGUN}}}\n",
        f"{HEAD}flows: [{{from: a, to: b, groups: {{include: [x]}}}}, {{from: b, to: a}}]\ndefaults: {{{SYNCED}}}\n",
        flow("groups: {sync-offsets: false}"),
    ],
)
def test_what_changes_something_somewhere_is_right(tmp_path: Path, body: str) -> None:
    assert load(tmp_path, body).flows


@pytest.mark.parametrize(
    ("field", "item", "is_wrong"),
    [
        *(("topics", "orders.*,users", True), ("topics", "a,b", True), ("configs", "retention.ms,x", True)),
        *(("groups", "a,b", True), ("groups", "console-consumer-.*,connect-.*,__.*", True)),
        *(("topics", "or{1,2}ders", False), ("groups", "a[,;]b", False), ("groups", "a{1,2}", False)),
    ],
)
def test_a_list_in_one_item_is_none(tmp_path: Path, field: str, item: str, is_wrong: bool) -> None:
    body = flow(f"{field}: {{exclude: ['{item}']}}")
    if not is_wrong:
        assert load(tmp_path, body).flows
        return
    (problem,) = refused(tmp_path, body)
    assert problem.message.endswith(f"found '{item}', with a comma")
    own_comma = "; the comma of a group's own name is written [,]" if field == "groups" else ""
    assert problem.remedy == f"make each an item of its own{own_comma}"


@pytest.mark.parametrize("item", ["compression.type", "message.timestamp.type", "unclean.leader.election.enable"])
def test_what_no_copy_has_from_its_original_is_not_included(tmp_path: Path, item: str) -> None:
    (problem,) = refused(tmp_path, flow(f"configs: {{include: [min.insync.replicas, {item}]}}"))
    assert problem.code == "AB124"
    assert problem.where.endswith("(flows[0].configs.include[1])")
    assert load(tmp_path, flow(f"configs: {{exclude: [{item}]}}")).flows


def test_numbers_with_a_dot_are_taken_where_a_setting_has_some(tmp_path: Path) -> None:
    (one,) = load(tmp_path, flow("configs: {set: {min.cleanable.dirty.ratio: 0.50, retention.ms: 7.0}}")).flows
    assert one.configs.set == (("min.cleanable.dirty.ratio", "0.5"), ("retention.ms", "7"))
    (problem,) = refused(tmp_path, flow("configs: {set: {retention.ms: 0.5}}"))
    assert (problem.code, problem.message) == ("AB104", "expected a whole number; found 0.5")
