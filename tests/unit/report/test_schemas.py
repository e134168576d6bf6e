"""What commands print as JSON has a schema that users get, and the schema knows everything that is printed."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator

from reconciler.cli.main import main
from reconciler.model.acls.binding import Binding, Permission
from reconciler.model.acls.requirements import RESOURCE_KINDS, ResourcePattern
from reconciler.model.base.errors import Problem
from reconciler.model.planning.changes import Change, FieldChange, StoppedTopic
from reconciler.model.planning.desired import DesiredTopic, Reason, TopicSetting
from reconciler.model.planning.drift import Drift, Drifted, DriftKind
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic, RemovalReason
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    ChangeReason,
    ClusterPlan,
    ConfigChange,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Notice,
    NotStarted,
    OwnershipReason,
    Plan,
    PlannedFlow,
    RecordOwnership,
    RevokeAcl,
    Step,
)
from reconciler.model.recorded.declaration import Declared, InForce
from reconciler.model.recorded.event import EventKind, RecordedEvent
from reconciler.report.plan.drift import drift_json
from reconciler.report.plan.to_json import outcome_json, plan_json
from reconciler.report.status.events import events_json
from tests.support.commands.reports import check

WEST, EAST = "eu-west", "us-east"
TOPIC = DesiredTopic(
    WEST, "us-east.orders", "f", EAST, "orders", "id", 3, 2, "identical", (TopicSetting("retention.ms", "1", "source"),)
)
ACL = Binding("topic", ResourcePattern("us-east.orders"), "User:alice", "READ")
STEPS: tuple[Step, ...] = (
    CreateInternalTopic(WEST, "anabranch.payments.owned.internal"),
    CreateTopic(TOPIC),
    AddPartitions(TOPIC, "id", 2),
    AlterConfig(TOPIC, "id", (ConfigChange("retention.ms", None, "1", "missing"),)),
    RecordOwnership(TOPIC, "id", "grown"),
    GrantAcl(WEST, ACL, "f", role="own"),
    RevokeAcl(WEST, ACL, "f", is_foreign=True),
    DeleteTopic(WEST, "us-east.old", "id", "f", EAST, "old", "renamed"),
    ForgetTopic(WEST, "us-east.gone", "f", EAST, "gone"),
)
PROBLEM = Problem("AB310", "cluster west", "does not answer", "")
PLAN = Plan(
    "shop",
    "0123456789abcdef",
    (
        ClusterPlan(
            WEST,
            "dc2",
            STEPS,
            (PlannedFlow("f", EAST, WEST, 2, 1, "identical"),),
            (NotStarted("f", EAST, "a", "us-east.a", "why"),),
            (Notice("us-east.b", "why"),),
            (Notice("flow f", "what"),),
            Declared("0123456789abcdef", InForce("fedcba9876543210", 1_800_000_000.0, "ops@host")),
            -2,
            (
                Change("topology", "shop", "changes", (FieldChange("clusters", None, "north"),)),
                Change("flow", "f", "changes", (FieldChange("tasks", "1", "4"),)),
                Change("flow", "g", "ends", (), (StoppedTopic("a", "us-east.a", 7),), "enabled: false"),
                Change("flow", "h", "begins"),
            ),
        ),
        ClusterPlan(EAST, "dc1"),
    ),
)
OUTCOME = Outcome(
    done=list(STEPS),
    failed=[Failure(STEPS[0], PROBLEM)],
    skipped=[Skipped(STEPS[5], "why")],
    in_force=[WEST],
    not_in_force=[PROBLEM],
    closed=[EAST],
    stopped=PROBLEM,
)


def printed(capsys: pytest.CaptureFixture[str], of: str) -> dict[str, Any]:
    assert main(["schema", of]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    Draft7Validator.check_schema(found)
    return found


def test_everything_that_a_plan_can_hold_is_in_its_schema() -> None:
    assert {type(step) for step in STEPS} == set(get_args(Step))
    check("plan", json.loads(json.dumps(plan_json(PLAN))))
    for command in ("apply", "adopt", "destroy"):
        check(command, json.loads(json.dumps({"plan": plan_json(PLAN), "outcome": outcome_json(OUTCOME)})))
        check(command, json.loads(json.dumps({"plan": plan_json(PLAN), "outcome": outcome_json(Outcome())})))


@pytest.mark.parametrize("unseen", [(), (PROBLEM,)])
@pytest.mark.parametrize("drifted", [(), (Drifted(WEST, "missing", "us-east.a", "topic", "3 partitions", None, "x"),)])
def test_everything_that_drift_can_hold_is_in_its_schema(
    drifted: tuple[Drifted, ...], unseen: tuple[Problem, ...]
) -> None:
    check("drift", json.loads(json.dumps(drift_json(Drift("shop", (WEST,), drifted, unseen)))))


def test_all_that_is_on_record_is_in_its_schema() -> None:
    events = [RecordedEvent(1.5, WEST, kind, "flow a", "ops@host") for kind in get_args(EventKind)]
    check("events", json.loads(json.dumps(events_json(events, [PROBLEM]))))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 2, "1 was expected"),
        ("summary", {}, "'add' is a required property"),
        ("more", 1, "Additional properties are not allowed"),
    ],
)
def test_what_is_otherwise_is_found(field: str, value: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check("plan", {**json.loads(json.dumps(plan_json(PLAN))), field: value})


def test_its_words_are_those_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    known = printed(capsys, "plan")["definitions"]
    steps = {action: one for one in known["step"]["oneOf"] for action in one["properties"]["action"]["enum"]}

    def words(of: dict[str, Any], field: str) -> set[str]:
        return set(of["properties"][field]["enum"])

    assert words(steps["record-ownership"], "reason") == set(get_args(OwnershipReason))
    assert words(steps["delete-topic"], "reason") == set(get_args(RemovalReason))
    assert words(known["change"], "reason") == set(get_args(ChangeReason))
    assert words(known["setting"], "reason") == set(get_args(Reason))
    assert words(known["binding"], "kind") == set(RESOURCE_KINDS)
    assert words(known["binding"], "permission") == set(get_args(Permission))
    assert words(known["drifted"], "kind") == set(get_args(DriftKind))


@pytest.mark.parametrize("of", ["plan", "apply", "drift"])
def test_every_field_says_what_it_means(capsys: pytest.CaptureFixture[str], of: str) -> None:
    def silent(node: Any, at: str) -> list[str]:
        if not isinstance(node, dict):
            return []
        found = [
            f"{at}.{name}"
            for name, field in node.get("properties", {}).items()
            if not field.get("description") and "$ref" not in field
        ]
        return found + [one for key, value in node.items() for one in silent(value, f"{at}.{key}")]

    assert silent(printed(capsys, of), of) == []


def test_the_schema_of_topologies_is_what_is_meant_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == printed(capsys, "topology")
    assert main(["schema", "nonsense"]) == 2
