"""Overrides laid over files: what counts then, what is checked, and that it is as if the files said so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.declare import lay_over
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.base.shape import Misfit
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.declaration import (
    DeclarationHistory,
    Declared,
    InForce,
    declaration_into,
    digest_into,
)
from tests.unit.declare.declaring import HEAD, load

FILE = f"""{HEAD}defaults: {{topics: {{exclude: [tmp-.*]}}}}
replication:
  - {{fan-out: {{from: a, to: [b, c]}}, topics: {{include: [orders]}}, tasks: 4, groups: {{include: [app]}}}}
"""


def over(topology: Topology, flow: str = "a-b", **entry: Any) -> Topology:
    source, _, target = flow.partition("-")
    return lay_over(topology, [FlowOverride(flow, source, target, entry)])


@pytest.mark.parametrize(
    ("entry", "written"),
    [
        ({"tasks": 2}, "tasks: 2"),
        ({"topics": {"include": ["payments", "orders"]}}, "topics: {include: [orders, payments]}"),
        ({"topics": {"exclude": []}}, "topics: {exclude: []}"),
        ({"enabled": False}, "enabled: false"),
        ({"groups": {"sync-offsets": True}, "heartbeats": "5s"}, "groups: {sync-offsets: true}, heartbeats: 5s"),
        ({"start": {"offsets": {"orders": [3]}}}, "start: {offsets: {orders: [3]}}"),
    ],
)
def test_a_flow_is_as_if_its_file_said_so(tmp_path: Path, entry: dict[str, Any], written: str) -> None:
    declared = load(tmp_path, FILE)
    laid = over(declared, **entry)
    said = load(tmp_path, f"{FILE}flows:\n  - {{from: a, to: b, {written}}}\n")
    assert declaration_into(laid, "b") == declaration_into(said, "b") != declaration_into(declared, "b")
    assert digest_into(laid, "c") == digest_into(declared, "c"), "other targets are as they were"
    assert laid.files == declared.files


def test_an_override_of_a_flow_that_is_not_there_any_more_changes_nothing(tmp_path: Path) -> None:
    declared = load(tmp_path, FILE)
    assert over(declared, "a-d", tasks=2) == declared
    assert lay_over(declared, [FlowOverride("a-b", "c", "b", {"tasks": 2})]) == declared, "its ends are others"


def test_a_new_flow_has_the_defaults_of_the_file(tmp_path: Path) -> None:
    new = FlowOverride("second", "b", "c", {"topics": {"include": ["x"]}}, is_new=True)
    laid = lay_over(load(tmp_path, FILE), [new])
    (flow,) = (one for one in laid.flows if one.name == "second")
    assert (flow.source, flow.target, flow.topics.exclude, flow.tasks) == ("b", "c", ("tmp-.*",), 1)
    ended = lay_over(load(tmp_path, FILE), [replace(new, is_removed=True)])
    assert [one.enabled for one in ended.flows if one.name == "second"] == [False]


@pytest.mark.parametrize(
    ("new", "code", "place"),
    [
        (FlowOverride("a-b", "a", "b", {"tasks": 0}), "AB104", "override of flow a-b:6:"),
        (FlowOverride("a-b", "a", "b", {"taks": 2}), "AB103", "override of flow a-b:6:"),
        (FlowOverride("x", "a", "b", {"topics": {"include": ["orders"]}}, is_new=True), "AB116", "override of flow x:"),
        (FlowOverride("x", "a", "nowhere", {}, is_new=True), "AB105", "override of flow x:5:"),
        (FlowOverride("x", "a", "d", {"topics": {"include": ["("]}}, is_new=True), "AB1", "override of flow x:"),
    ],
)
def test_it_is_checked_as_a_file_is(tmp_path: Path, new: FlowOverride, code: str, place: str) -> None:
    with pytest.raises(DeclaredInputError) as caught:
        lay_over(load(tmp_path, FILE), [new])
    (problem,) = caught.value.problems
    assert problem.code.startswith(code), problem
    assert problem.where.startswith(place), problem


def test_fields_come_together_and_start_is_one_value() -> None:
    one = FlowOverride("a-b", "a", "b", {"topics": {"include": ["x"]}, "start": {"timestamp": "2026-01-01T00:00:00Z"}})
    two = one.changed({"topics": {"exclude": ["y"]}, "start": {"offsets": {"x": [1]}}, "tasks": 3})
    assert two.entry == {
        "topics": {"include": ["x"], "exclude": ["y"]},
        "start": {"offsets": {"x": [1]}},
        "tasks": 3,
    }


def test_the_record_of_what_is_in_force_has_them_until_the_next_one(tmp_path: Path) -> None:
    laid = over(load(tmp_path, FILE), tasks=2)
    one, entry = declaration_into(laid, "b"), InForce(digest_into(laid, "b"), 1.0, "ops@host")
    history = DeclarationHistory().followed_by(entry, one, laid.overrides)
    kept = json.loads(json.dumps(history.to_json()))
    assert DeclarationHistory.from_json(kept) == replace(history, entries=(replace(entry, targets=()),))
    assert history.followed_by(replace(entry, digest="other")).overrides == ()
    hostile = kept | {"overrides": [{"flow": 3}]}
    assert DeclarationHistory.from_json(hostile).overrides == ()
    with pytest.raises(Misfit):
        FlowOverride.from_json(laid.overrides[0].to_json() | {"new": "yes"})


def test_what_has_other_overrides_is_not_recorded_yet(tmp_path: Path) -> None:
    laid = over(load(tmp_path, FILE), tasks=4)
    one = declaration_into(laid, "b")
    declared = Declared(one.digest, InForce(one.digest, 1.0, "ops"), one, one, former_overrides=laid.overrides)
    assert declared.is_in_force
    assert not declared.is_recorded
    assert replace(declared, overrides=laid.overrides).is_recorded
