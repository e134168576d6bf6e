"""Plans over several hops: what is made for one flow is an original of the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.acls.binding import Binding, ObservedBindings
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AddPartitions, AlterConfig, CreateTopic, GrantAcl, Plan
from reconciler.plan.ahead import build_plan_ahead
from tests.unit.plan.facts import carried_out, cluster, flow, plan_of, topic, topology

A, B, C = "us-east", "eu-west", "ap-south"
CHAIN = topology(flow(A, B), flow(B, C))
PAIR = topology(flow(A, B), flow(B, A))


def ahead(declared: Topology, *clusters: ObservedCluster) -> Plan:
    observed = {one.alias: one for one in clusters}
    targets = [alias for alias in declared.aliases if any(f.target == alias for f in declared.flows)]
    return build_plan_ahead(declared, observed, targets)


def made(plan: Plan) -> set[tuple[str, str]]:
    return {(step.cluster, step.name) for step in plan.steps if isinstance(step, CreateTopic)}


def seen(one: ObservedCluster, *bindings: Binding) -> ObservedCluster:
    return replace(one, acls=ObservedBindings("seen", frozenset(bindings)))


def test_a_topic_crosses_all_hops_in_one_plan() -> None:
    clusters = (cluster(A, topic("orders", 6, configs={"retention.ms": "5"})), cluster(B), cluster(C))
    plan = ahead(CHAIN, *clusters)
    assert made(plan) == {(B, "us-east.orders"), (C, "eu-west.us-east.orders")}
    (far,) = (step.topic for step in plan.steps if isinstance(step, CreateTopic) and step.cluster == C)
    assert (far.partitions, far.configs["retention.ms"], far.source_topic) == (6, "5", "us-east.orders")

    after = [carried_out(plan, one) for one in clusters]
    again = ahead(CHAIN, *after)
    assert again.changes_nothing
    assert not [notice for one in again.clusters for notice in one.warnings], "nothing looks as if it were made anew"


def test_both_ways_end_where_a_name_has_been() -> None:
    clusters = (cluster(A, topic("orders")), cluster(B, topic("users")))
    plan = ahead(PAIR, *clusters)
    assert made(plan) == {(B, "us-east.orders"), (A, "eu-west.users")}
    assert ahead(PAIR, *(carried_out(plan, one) for one in clusters)).changes_nothing


def test_acls_cross_all_hops_as_well() -> None:
    reader = Binding("topic", ResourcePattern("orders"), "User:alice", "READ")
    clusters = (seen(cluster(A, topic("orders")), reader), seen(cluster(B)), seen(cluster(C)))
    plan = ahead(CHAIN, *clusters)
    granted = {(step.cluster, step.binding.pattern.name) for step in plan.steps if isinstance(step, GrantAcl)}
    assert granted == {(B, "us-east.orders"), (C, "eu-west.us-east.orders")}
    assert ahead(CHAIN, *(carried_out(plan, one) for one in clusters)).changes_nothing


def test_without_hops_it_is_the_plan_of_one_look() -> None:
    one = topology()
    clusters = (cluster(A, topic("orders")), cluster(B))
    assert ahead(one, *clusters) == plan_of(one, *clusters)


def test_what_is_in_the_way_at_any_hop_is_refused() -> None:
    stranger = topic("eu-west.us-east.orders")
    with pytest.raises(Refused) as refused:
        ahead(CHAIN, cluster(A, topic("orders")), cluster(B), cluster(C, stranger))
    assert [problem.code for problem in refused.value.problems] == ["AB401"]
    assert "ap-south" in refused.value.problems[0].where


def test_what_grows_and_changes_does_so_at_all_hops() -> None:
    clusters = (cluster(A, topic("orders", 6, configs={"retention.ms": "5"})), cluster(B), cluster(C))
    before = [carried_out(ahead(CHAIN, *clusters), one) for one in clusters]
    before[0] = replace(before[0], topics={"orders": topic("orders", 8, configs={"retention.ms": "7"})})
    plan = ahead(CHAIN, *before)
    assert [(type(step), step.cluster) for step in plan.steps] == [
        (AddPartitions, B),
        (AlterConfig, B),
        (AddPartitions, C),
        (AlterConfig, C),
    ]
    assert ahead(CHAIN, *(carried_out(plan, one) for one in before)).changes_nothing
