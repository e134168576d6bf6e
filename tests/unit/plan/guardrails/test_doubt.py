"""Records of ownership that the declaration would not have led to: what they name is deleted by its name alone."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import Plan, RevokeAcl
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.build import build_plan
from reconciler.plan.guardrails.doubtful_records import doubt
from reconciler.plan.removal.deletion_limit import check_deletions
from reconciler.plan.removal.destroy import destroy_plan
from reconciler.plan.removal.prune import pruned
from reconciler.report.plan.to_json import plan_json
from reconciler.report.plan.to_markdown import plan_markdown
from reconciler.report.plan.to_text import plan_text
from tests.unit.plan.facts import EAST, WEST, cluster, flow, topic, topology

SAME, DASHED = ReplicationPolicy("identity"), ReplicationPolicy(separator="-")
RENAMED = ReplicationPolicy("rename", rules=(RenameRule("a", "copy"),))


def owned(name: str, original: str, **changes: object) -> OwnedTopic:
    made = OwnedTopic(
        *(name, f"id-of-{name}", "payments", "0123", f"{EAST}-{WEST}", EAST, original, f"id-of-{original}"),
        *(6, "identical", {}),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def target(*records: OwnedTopic, **changes: object) -> ObservedCluster:
    topics = [topic(record.name) for record in records]
    return replace(cluster(WEST, *topics, owned=records), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flows", "record", "is_sure"),
    [
        ([flow()], owned("us-east.a", "a"), True),
        # What the declaration has given up, and what was made by a flow or under a policy that is gone.
        ([flow(topics=Selection((".*",), ("a",)))], owned("us-east.a", "a"), True),
        ([flow(include=("b",))], owned("us-east.a", "a"), True),
        ([flow(name="other", include=("b",))], owned("us-east.a", "a"), True),
        ([flow(target="far"), flow("far", EAST, name="back")], owned("us-east.a", "a"), True),
        ([flow(policy=SAME)], owned("us-east.a", "a"), True),
        ([flow(policy=DASHED)], owned("us-east-a", "a"), True),
        ([flow(policy=DASHED)], owned("us-east.a", "a"), True),
        ([flow(policy=RENAMED)], owned("copy", "a"), True),
        ([flow(policy=SAME)], owned("a", "a"), True),
        ([flow(policy=SAME, topics=Selection((".*",), ("a",)))], owned("a", "a"), True),
        ([flow()], owned("us-east.heartbeats", "heartbeats"), True),
        # A name that any topic of somebody else may have.
        ([flow()], owned("billing", "billing"), False),
        ([flow()], owned("billing", "a"), False),
        ([flow()], owned("us-east.billing", "a"), False),
        ([flow(policy=SAME, include=("b",))], owned("billing", "billing"), False),
        ([flow(policy=RENAMED)], owned("copy", "b"), False),
        ([flow()], owned("copy", "a"), False),
        # With the alias of a cluster that nobody declares, every name with a dot would be a copy.
        ([flow()], owned("orders.v1", "v1", source="orders"), False),
        ([flow("us-two", WEST)], owned("us-east.a", "a"), False),
    ],
)
def test_the_declaration_tells_what_it_may_have_made(flows: list[Flow], record: OwnedTopic, is_sure: bool) -> None:
    assert (doubt(topology(*flows), WEST, record) == "") == is_sure


FORGED = owned("billing", "a")


def destroyed(there: ObservedCluster, *only: str) -> Plan:
    return destroy_plan(topology(), {WEST: there}, [WEST], only)


def test_it_is_destroyed_by_its_name_alone() -> None:
    there = target(FORGED, owned("us-east.a", "a"))
    plan = destroyed(there)
    assert [(step.name, bool(step.doubt)) for step in plan.steps if isinstance(step, DeleteTopic)] == [
        ("billing", True),
        ("us-east.a", False),
    ]
    for named in ((), ("us-east.a",)):
        with pytest.raises(Refused) as refused:
            check_deletions(plan, {WEST: there}, {"topic": 2}, named)
        (problem,) = refused.value.problems
        assert (problem.code, refused.value.exit_code) == ("AB445", 4)
        assert "topic billing" in problem.where
        assert "payments would not have made it: no flow from us-east names the copy of a so" in problem.message
        assert "--target billing" in problem.remedy
    check_deletions(destroyed(there, "billing"), {WEST: there}, {"topic": 1}, ("billing",))
    check_deletions(destroyed(there, "us-east.a"), {WEST: there}, {"topic": 1}, ("us-east.a",))
    with pytest.raises(Refused, match="AB420"):
        check_deletions(destroyed(there, "billing"), {WEST: there}, {}, ("billing",))


def test_it_is_pruned_by_its_name_alone() -> None:
    declared = topology(flow(include=("b",)))
    there = target(FORGED, owned("us-east.a", "a"), owned("us-east.b", "b"))
    observed = {EAST: cluster(EAST, topic("a"), topic("b")), WEST: there}
    plain = build_plan(declared, observed, [WEST])
    told = {notice.subject: notice.message for notice in plain.clusters[0].left_alone}
    assert "payments would not have made it" in told["billing"]
    assert "only `--target billing` and --allow-delete together delete it" in told["billing"]
    assert told["us-east.a"].endswith("; --allow-delete deletes it")
    plan = pruned(plain, declared, observed)
    assert [step.name for step in plan.steps if isinstance(step, DeleteTopic)] == ["billing", "us-east.a"]
    with pytest.raises(Refused, match="AB445"):
        check_deletions(plan, observed, {"topic": 9})


def test_the_plan_lists_it_apart() -> None:
    plan = destroyed(target(FORGED, owned("us-east.a", "a")))
    console = Console(file=StringIO(), width=500, color_system=None, soft_wrap=True)
    console.print(plan_text(plan))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    (head,) = [
        number for number, line in enumerate(lines) if "on record as ours, but this declaration would not" in line
    ]
    assert "us-east.a" in "".join(lines[:head])
    assert "billing" not in "".join(lines[:head])
    assert ("billing" in lines[head + 1], "no flow from us-east" in lines[head + 1]) == (True, True)
    assert "**on record as ours, but this declaration would not have made them**" in plan_markdown(plan)
    told = {step["topic"]: step.get("doubt") for step in plan_json(plan)["clusters"][0]["steps"]}
    assert told["us-east.a"] is None
    assert told["billing"] is not None


def granted(*records: OwnedBinding) -> ObservedBindings:
    return ObservedBindings("seen", frozenset(one.binding for one in records), records)


OURS = OwnedBinding(Binding("topic", ResourcePattern("us-east.a"), "User:x", "READ"), "payments", f"{EAST}-{WEST}")
UNDER = replace(OURS, binding=replace(OURS.binding, pattern=ResourcePattern("us-east.", prefixed=True)))
THEIRS = [
    replace(OURS, binding=replace(OURS.binding, pattern=ResourcePattern("billing"))),
    replace(OURS, binding=replace(OURS.binding, pattern=ResourcePattern("*"))),
    replace(OURS, binding=replace(OURS.binding, pattern=ResourcePattern("b", prefixed=True))),
    replace(OURS, binding=replace(OURS.binding, kind="group", pattern=ResourcePattern("us-east.a"))),
    replace(OURS, binding=replace(OURS.binding, operation="ALTER")),
]


def revoked(plan: Plan) -> set[Binding]:
    return {step.binding for step in plan.steps if isinstance(step, RevokeAcl)}


@pytest.mark.parametrize("theirs", THEIRS, ids=str)
def test_what_it_would_not_have_granted_is_not_revoked(theirs: OwnedBinding) -> None:
    declared: Topology = topology(flow(acls=True))
    there = target(owned("us-east.a", "a"), acls=granted(OURS, UNDER, theirs))
    here = replace(cluster(EAST, topic("a")), acls=ObservedBindings("seen"))
    observed = {EAST: here, WEST: there}
    plan = build_plan(declared, observed, [WEST])
    assert revoked(plan) == {OURS.binding, UNDER.binding}
    (notice,) = [one for one in plan.clusters[0].warnings if "would not have granted it" in one.message]
    assert notice.subject == f"ACL {theirs.binding}"
    gone = destroyed(there)
    assert revoked(gone) == {OURS.binding, UNDER.binding}
    assert [one.subject for one in gone.clusters[0].left_alone if one.subject.startswith("ACL")] == [notice.subject]
