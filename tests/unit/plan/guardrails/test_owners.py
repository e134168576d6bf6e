"""Whose declaration is in force, and that another owner's files end it only where that is allowed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.model.base.errors import Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.changes import Change, FieldChange
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.recorded.declaration import DESTROYED, DeclarationHistory, Declared, InForce
from reconciler.plan.findings.moved import moved
from reconciler.plan.guardrails.owners import check_owner
from reconciler.report.plan.to_json import plan_json
from reconciler.report.text.words import summary
from tests.support.commands.reports import check
from tests.unit.declare.declaring import HEAD, load, said
from tests.unit.plan.facts import EAST, WEST, plan_of, topology
from tests.unit.plan.inforce import SOURCE, applied, text

FLOWS = "flows:\n  - {from: a, to: b}\n"


def owned(declared: Topology, owner: str | None) -> ObservedCluster:
    """Return the target where a declaration of an owner is in force."""
    target = applied(declared)
    assert target.in_force is not None
    return replace(target, in_force=replace(target.in_force, owner=owner, targets=(WEST,)))


def files(owner: str | None) -> Topology:
    return replace(topology(), owner=owner)


def test_files_say_whose_they_are_once(tmp_path: Path) -> None:
    head = HEAD.replace("name: shop", "name: shop\nowner: git.example/team/shop")
    assert load(tmp_path, head, FLOWS.replace("flows:", "version: 1\nowner: git.example/team/shop\nflows:")).owner
    assert load(tmp_path, HEAD + FLOWS).owner is None
    assert said(tmp_path, head + FLOWS, "version: 1\nowner: another\n") == ["1.yaml:2:1 (owner) AB106"]


@pytest.mark.parametrize(
    ("there", "here", "told"),
    [
        ("team-a", "team-b", "these files are team-b's"),
        ("team-a", None, "these files name no owner"),
    ],
)
def test_another_owners_files_are_refused(there: str, here: str | None, told: str) -> None:
    target = owned(topology(), there)
    with pytest.raises(Refused) as caught:
        check_owner(files(here), {EAST: SOURCE, WEST: target}, [WEST], take_over=False)
    (problem,) = caught.value.problems
    assert (problem.code, caught.value.exit_code) == ("AB447", 4)
    assert "applied by ops@host, owner team-a; " in problem.message
    assert problem.message.endswith(told)
    assert "--take-over" in problem.remedy
    check_owner(files(here), {EAST: SOURCE, WEST: target}, [WEST], take_over=True)
    check_owner(files(here), {EAST: SOURCE, WEST: target}, [], take_over=False)


@pytest.mark.parametrize(("there", "here"), [("team-a", "team-a"), (None, "team-b"), (None, None)])
def test_the_owner_and_who_comes_first_may(there: str | None, here: str | None) -> None:
    check_owner(files(here), {WEST: owned(topology(), there)}, [WEST], take_over=False)


def test_what_was_destroyed_is_nobodys() -> None:
    target = owned(topology(), "team-a")
    assert target.in_force is not None
    gone = replace(target, in_force=replace(target.in_force, digest=DESTROYED))
    check_owner(files("team-b"), {WEST: gone}, [WEST], take_over=False)


def test_a_change_of_hands_is_shown_and_counted_and_put_in_force() -> None:
    for there, here, old, new in (("team-a", "team-b", "team-a", "team-b"), (None, "team-b", "none", "team-b")):
        planned = plan_of(files(here), SOURCE, owned(topology(), there))
        expected = Change("topology", "payments", "changes", (FieldChange("owner", old, new),))
        assert planned.clusters[0].changes == (expected,)
        assert summary(planned) == "0 to add, 1 to change, 0 to delete."
        assert planned.to_put_in_force
        assert ["owner", old, "→", new] in [line.split() for line in text(planned)]
        report = json.loads(json.dumps(plan_json(planned)))
        check("plan", report)
        assert report["clusters"][0]["declared"]["in_force"]["owner"] == there
    assert plan_of(files("team-b"), SOURCE, owned(topology(), "team-b")).changes_nothing
    # Of a declaration that a former release put in force nothing else is known, and nothing else changes.
    unrecorded = replace(owned(topology(), None), declaration=None)
    assert plan_of(files("team-b"), SOURCE, unrecorded).to_change == 1


def test_a_plan_file_does_not_hold_when_hands_have_changed_since() -> None:
    made, now = (plan_json(plan_of(topology(), SOURCE, owned(topology(), one))) for one in (None, "team-a"))
    assert moved(made, now) == ("eu-west: declaration in force: owner was not there, is team-a",)
    for cluster in made["clusters"]:
        # As a former release wrote it.
        del cluster["declared"]["in_force"]["owner"]
    assert moved(made, plan_json(plan_of(topology(), SOURCE, owned(topology(), None)))) == ()


def test_the_plan_files_digest_counts_the_owner() -> None:
    assert files("team-a").digest != topology().digest
    assert files(None).digest == topology().digest


def test_what_runs_goes_by_the_digest_alone() -> None:
    entry = InForce("abc", 1.0, "ops", "team-a")
    assert DeclarationHistory((entry,)).objection("abc", "") is None
    assert not Declared("abc", entry, owner="team-b").is_in_force


def test_an_owner_is_kept_and_records_of_former_releases_have_none() -> None:
    kept = DeclarationHistory((InForce("abc", 1.0, "ops", "team-a", ("west",)),))
    assert DeclarationHistory.from_json(json.loads(json.dumps(kept.to_json()))) == kept
    former = {"history": [{"digest": "abc", "since": 1.0, "by": "ops"}]}
    assert DeclarationHistory.from_json(former).in_force == InForce("abc", 1.0, "ops")
    assert str(kept.in_force).endswith("applied by ops, owner team-a")
