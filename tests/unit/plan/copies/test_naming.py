"""Copies without a name of their own: refused by a plan, left out by a running flow, never written to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.names.renames import RenameRule
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.copies.refused_names import one_metric_name
from reconciler.plan.guardrails.left_out import contenders, contested, left_out
from reconciler.plan.whole import whole_topics
from tests.support.security.policy_classes import offer
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, plan_of, record, topic, topology

RULES = (
    RenameRule(r"orders[.-](.*)", r"all-\1", place="shop.yaml:9:7 (policy.rules[0])"),
    RenameRule("users", "people", place="shop.yaml:10:7 (policy.rules[1])"),
)
RENAMING = ReplicationPolicy("rename", rules=RULES, place="shop.yaml:8:5 (policy.rules)")
SOURCE = cluster(EAST, topic("orders.eu"), topic("orders-eu"), topic("users"))


def refusals(declared_flow: Flow, source: ObservedCluster, target: ObservedCluster | None = None) -> list[Problem]:
    with pytest.raises(Refused) as refused:
        plan_of(topology(declared_flow), source, target or cluster(WEST))
    assert refused.value.exit_code == 4
    return list(refused.value.problems)


def test_renamed_topics_are_planned_under_their_names() -> None:
    source = cluster(EAST, topic("orders.eu"), topic("users"), topic("payments"))
    plan = plan_of(topology(flow(policy=RENAMING)), source, cluster(WEST))
    assert [step.name for step in plan.steps] == ["all-eu", "people", "us-east.payments"]


def test_two_topics_of_one_name_are_one_refusal_that_names_the_rule() -> None:
    (problem,) = refusals(flow(policy=RENAMING), SOURCE)
    assert (problem.code, problem.where) == ("AB408", "shop.yaml:9:7 (policy.rules[0])")
    said = "expected a name of its own for each copy; found all-eu for orders-eu, orders.eu of us-east"
    assert problem.message == f"flow us-east-eu-west: {said}"
    assert problem.remedy.startswith("change the rename rules so that the names differ, or exclude all of them but one")


def test_one_name_for_two_is_one_refusal_also_where_identical_offsets_are_demanded() -> None:
    assert [problem.code for problem in refusals(flow(policy=RENAMING, offsets="identical"), SOURCE)] == ["AB408"]


def test_two_rules_that_give_one_name_are_told_at_the_list_of_rules() -> None:
    rules = (*RULES, RenameRule("clients", "people", place="shop.yaml:11:7 (policy.rules[2])"))
    policy = replace(RENAMING, rules=rules)
    (problem,) = refusals(flow(policy=policy), cluster(EAST, topic("users"), topic("clients")))
    assert (problem.code, problem.where) == ("AB408", "shop.yaml:8:5 (policy.rules)")


def test_many_topics_of_one_name_are_counted() -> None:
    policy = ReplicationPolicy("rename", rules=(RenameRule(".*", "all"),))
    (problem,) = refusals(flow(policy=policy), cluster(EAST, *(topic(name) for name in "abcde")))
    assert problem.message.endswith("found all for a, b, c and 2 more of us-east")


def test_what_is_copied_already_keeps_its_name_and_a_newcomer_is_left_out() -> None:
    declared = topology(flow(policy=RENAMING))
    before = cluster(EAST, topic("orders-eu"), topic("users"))
    orders, users = desired_topics(declared, {EAST: before, WEST: cluster(WEST)}, [WEST])
    west = cluster(WEST, made(orders), made(users), owned=[record(orders, declared), record(users, declared)])
    found = left_out(declared, {EAST: SOURCE, WEST: west}, [WEST])
    assert {name: list(reasons) for name, reasons in found.items()} == {"us-east-eu-west": ["orders.eu"]}
    assert "all-eu for orders-eu, orders.eu of us-east; it is the copy of orders-eu" in str(found)
    (problem,) = refusals(flow(policy=RENAMING), SOURCE, west)
    assert problem.code == "AB408"
    assert left_out(declared, {EAST: before, WEST: west}, [WEST]) == {}


def test_a_newcomer_does_not_inherit_the_copy_of_a_topic_that_is_gone() -> None:
    declared = topology(flow(policy=RENAMING))
    (orders,) = desired_topics(declared, {EAST: cluster(EAST, topic("orders-eu")), WEST: cluster(WEST)}, [WEST])
    west = cluster(WEST, made(orders), owned=[record(orders, declared)])
    found = left_out(declared, {EAST: cluster(EAST, topic("orders.eu")), WEST: west}, [WEST])
    assert "holds the copy of us-east's orders-eu" in found["us-east-eu-west"]["orders.eu"]
    assert "[AB405]" in found["us-east-eu-west"]["orders.eu"]


def both_to_x() -> tuple[Flow, Flow]:
    """Two flows of one source whose rules give two of its topics one name."""
    named = [ReplicationPolicy("rename", rules=(RenameRule(f"{name}.*", "x"),)) for name in ("orders", "users")]
    return flow(include=["orders.*"], policy=named[0]), flow(include=["users.*"], policy=named[1], name="q")


def test_two_flows_of_one_source_are_refused_one_name_for_two_topics() -> None:
    declared = topology(*both_to_x())
    source = cluster(EAST, topic("orders"), topic("users"), topic("payments"))
    with pytest.raises(Refused) as refused:
        plan_of(declared, source, cluster(WEST))
    assert [problem.code for problem in refused.value.problems] == ["AB408", "AB408"]
    assert "found x for orders, users of us-east (by other flows: users)" in refused.value.problems[0].message
    found = left_out(declared, {EAST: source, WEST: cluster(WEST)}, [WEST])
    assert {name: list(reasons) for name, reasons in found.items()} == {
        "us-east-eu-west": ["orders"],
        "q": ["users"],
    }
    assert plan_of(declared, cluster(EAST, topic("orders"), topic("payments")), cluster(WEST)).steps


def test_what_one_flow_copies_already_keeps_its_name_from_the_other_flow() -> None:
    first, second = both_to_x()
    before = cluster(EAST, topic("orders"))
    (orders,) = desired_topics(topology(first), {EAST: before, WEST: cluster(WEST)}, [WEST])
    west = cluster(WEST, made(orders), owned=[record(orders, topology(first))])
    found = left_out(
        topology(first, second), {EAST: cluster(EAST, topic("orders"), topic("users")), WEST: west}, [WEST]
    )
    assert {name: list(reasons) for name, reasons in found.items()} == {"q": ["users"]}
    assert "it is the copy of orders and stays that" in found["q"]["users"]


def test_where_nothing_is_copied_yet_all_of_one_name_are_left_out_and_the_rest_goes_on() -> None:
    declared = topology(flow(policy=RENAMING))
    found = left_out(declared, {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])
    assert set(found["us-east-eu-west"]) == {"orders.eu", "orders-eu"}
    assert all("[AB408]" in why for why in found["us-east-eu-west"].values())


def test_a_class_that_fails_for_one_topic_hinders_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, choosy="Choosy")
    policy = ReplicationPolicy("class", entry_point="choosy", place="shop.yaml:7:30 (policy.class)")
    source = cluster(EAST, topic("good"), topic("bad-1"), topic("bad-2"))
    problems = refusals(flow(policy=policy), source)
    assert {(problem.code, problem.where) for problem in problems} == {("AB406", policy.place)}
    assert [problem.message.rpartition(": ")[2] for problem in problems] == ["no rule for bad-1", "no rule for bad-2"]
    assert problems[0].remedy == "correct the policy class choosy, or exclude bad-1 from flow us-east-eu-west"
    found = left_out(topology(flow(policy=policy)), {EAST: source, WEST: cluster(WEST)}, [WEST])
    assert set(found["us-east-eu-west"]) == {"bad-1", "bad-2"}


def test_a_class_that_maps_two_topics_to_one_name_is_refused_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, lumping="Silent")
    policy = ReplicationPolicy("class", entry_point="lumping", options=(("*", "all"),), place="shop.yaml:7:30 (p)")
    (problem,) = refusals(flow(policy=policy), cluster(EAST, topic("a"), topic("b")))
    assert (problem.code, problem.where) == ("AB408", "shop.yaml:7:30 (p)")
    assert problem.message.endswith("found all for a, b of us-east")
    with pytest.raises(Refused):
        whole_topics(
            topology(flow(policy=policy)), {EAST: cluster(EAST, topic("a"), topic("b")), WEST: cluster(WEST)}, [WEST]
        )


def test_a_topic_that_would_come_back_is_refused_with_its_ring() -> None:
    there = ReplicationPolicy("rename", rules=(RenameRule(r"o\.(.*)", r"p.\1"),), place="shop.yaml:8:5 (p)")
    back = ReplicationPolicy("rename", rules=(RenameRule(r"p\.(.*)", r"o.\1"),))
    declared = topology(flow(policy=there), flow(WEST, EAST, policy=back))
    with pytest.raises(Refused) as refused:
        plan_of(declared, cluster(EAST, topic("o.x"), topic("users")), cluster(WEST))
    (problem,) = refused.value.problems
    assert (problem.code, problem.where) == ("AB409", "shop.yaml:8:5 (p)")
    assert problem.message == "flow us-east-eu-west: us-east's o.x would go round for ever: us-east → eu-west → us-east"
    standby = topology(flow(policy=there), flow(WEST, EAST, policy=back, enabled=False))
    assert plan_of(standby, cluster(EAST, topic("o.x"), topic("users")), cluster(WEST)).steps


def test_the_name_of_a_topic_that_stands_already_is_not_taken() -> None:
    (problem,) = refusals(flow(policy=RENAMING), cluster(EAST, topic("users")), cluster(WEST, topic("people")))
    assert problem.code == "AB401"


def test_rules_of_different_sources_contend_for_names() -> None:
    policies = ReplicationPolicy("rename", rules=(RenameRule(r"orders[.](.*)", r"all-\1"), RenameRule("x", "y")))
    one, other = flow(policy=RENAMING), flow("ap-south", policy=policies)
    declared = topology(one, other)
    assert contenders(declared, one) == (other,)
    source = cluster(EAST, topic("orders.eu"), topic("users"), topic("payments"))
    assert contested(declared, one, {EAST: source, WEST: cluster(WEST)}) == {
        "us-east-eu-west": {"orders.eu": "all-eu may be the copy of a topic of ap-south (flow ap-south-eu-west)"}
    }


def test_names_that_brokers_take_for_one_are_refused() -> None:
    """The second one is never made: with another copy's name, or with that of a topic of others."""
    source = cluster(EAST, topic("a.b"), topic("a_b"), topic("c"), topic("d"))
    target = cluster(WEST, topic("us-east_c"))
    with pytest.raises(Refused) as refused:
        plan_of(topology(), source, target)
    assert [(one.code, one.where.partition(", ")[2]) for one in refused.value.problems] == [
        ("AB452", "topic us-east.a_b"),
        ("AB452", "topic us-east.c"),
    ]
    assert "differs from topic us-east_c in . and _ alone" in refused.value.problems[1].message
    assert "exclude c from flow us-east-eu-west" in refused.value.problems[1].remedy
    # A running flow goes on with the others.
    found = left_out(topology(), {EAST: source, WEST: target}, [WEST])
    assert {name: list(reasons) for name, reasons in found.items()} == {"us-east-eu-west": ["a_b", "c"]}
    # What is there already was made by a cluster that takes both.
    (wanted,) = desired_topics(topology(), {EAST: cluster(EAST, topic("c")), WEST: cluster(WEST)}, [WEST])
    both = cluster(WEST, topic("us-east_c"), made(wanted), owned=[record(wanted, topology())])
    assert plan_of(topology(), cluster(EAST, topic("c")), both).is_empty


def test_two_flows_of_one_plan_make_no_two_names_that_brokers_take_for_one() -> None:
    identity = ReplicationPolicy("identity")
    declared = topology(flow(policy=identity), flow("ap-south", policy=identity))
    with pytest.raises(Refused, match=r"AB452") as refused:
        plan_of(declared, cluster(EAST, topic("a.b")), cluster("ap-south", topic("a_b")), cluster(WEST))
    assert len(refused.value.problems) == 1
    assert list(one_metric_name([], ["a.b", "a_b"])) == []
    assert list(one_metric_name(["a.b", "x"], ["a_b", "c"])) == [("a.b", "a_b")]
    assert list(one_metric_name(["a.b"], ["a.b", "a_b"])) == []
