"""Whether the declaration of a plan comes into force where single topics lack, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Problem
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.steps import CreateInternalTopic, CreateTopic, GrantAcl, Plan, PlanStep, RevokeAcl, Step
from reconciler.report.plan.outcome import outcome_lines
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, plan_of, topic, topology

REFUSED = Problem("AB314", "west, topic x", "refused by a policy", "")
SOURCE = cluster(EAST, topic("orders"), topic("users"), topic("audit"))


def planned(*names: str) -> Plan:
    return plan_of(topology(flow(include=names or (".*",))), SOURCE, cluster(WEST))


def made(plan: Plan, name: str) -> CreateTopic:
    (step,) = (step for step in plan.steps if isinstance(step, CreateTopic) and step.name == f"us-east.{name}")
    return step


def of(plan: Plan, *failed: Step, skipped: tuple[Step, ...] = ()) -> Outcome:
    done: list[PlanStep] = [step for step in plan.steps if step not in failed]
    return Outcome(done, [Failure(step, REFUSED) for step in failed], [Skipped(step, "why") for step in skipped])


def binding(name: str) -> Binding:
    return Binding("topic", ResourcePattern(name), "User:alice", "READ")


def test_where_flows_alone_change_no_steps_are_counted() -> None:
    assert [line.plain for line in outcome_lines(Outcome([], [], [], in_force=[WEST]))] == [
        "No topic and no ACL had to be changed: flows alone.",
        "This declaration is now in force at eu-west.",
    ]


def test_one_topic_of_several_does_not_hold_the_others_back() -> None:
    plan = planned()
    outcome = of(plan, made(plan, "users"), skipped=(GrantAcl(WEST, binding("us-east.users"), "f"),))
    assert not outcome.holds_back(plan)
    assert not outcome.is_complete, "the exit code tells"
    outcome.in_force = [WEST]
    assert [line.plain for line in outcome_lines(outcome)][-2:] == [
        "This declaration is now in force at eu-west.",
        "Missing: us-east.users. Flows copy the others; `replicate` and the next `apply` try again.",
    ]


def test_a_setting_that_is_refused_does_not_either() -> None:
    first = planned()
    there = carried_out(first, cluster(WEST))
    grown = cluster(EAST, topic("orders", 9), topic("users"), topic("audit"))
    plan = plan_of(topology(flow()), grown, there)
    (step,) = plan.steps
    outcome = of(plan, step)
    assert not outcome.holds_back(plan)
    outcome.in_force = [WEST]
    assert [line.plain for line in outcome_lines(outcome)][-1].startswith(
        "Not as they should be: us-east.orders. Flows"
    )


def test_what_concerns_more_than_one_topic_holds_back() -> None:
    plan = planned()
    internal = CreateInternalTopic(WEST, "anabranch.payments.owned.internal")
    for step in (
        internal,
        RevokeAcl(WEST, binding("us-east.users"), "f"),
        GrantAcl(WEST, binding("us-east.users"), "f"),
    ):
        assert of(plan, step).holds_back(plan), step
        assert of(plan, made(plan, "users"), step).holds_back(plan), step
    # What was not tried for another reason: the lock may be lost.
    assert of(plan, made(plan, "users"), skipped=(made(plan, "orders"),)).holds_back(plan)
    assert of(plan, skipped=(made(plan, "orders"),)).holds_back(plan)
    for other in (Outcome(stopped=REFUSED), Outcome(not_in_force=[REFUSED])):
        assert other.holds_back(plan)
    assert not of(plan).holds_back(plan)


@pytest.mark.parametrize("names", [("users",), ("users", "orders")])
def test_where_no_topic_is_left_nothing_comes_into_force(names: tuple[str, ...]) -> None:
    plan = planned(*names)
    assert of(plan, *(made(plan, name) for name in names)).holds_back(plan)


def test_each_target_needs_topics_of_its_own() -> None:
    two = topology(flow(), flow(target="north", include=("users",)))
    plan = plan_of(two, SOURCE, cluster(WEST), cluster("north"))
    (alone,) = (step for step in plan.steps if isinstance(step, CreateTopic) and step.cluster == "north")
    assert of(plan, alone).holds_back(plan)
    beside = replace(plan, clusters=plan.clusters[:1])
    assert not of(beside, made(beside, "users")).holds_back(beside)
