"""The plan: which steps, in which order, and what it leaves alone and says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.base.errors import Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    CreateInternalTopic,
    CreateTopic,
    RecordOwnership,
)
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.build import build_plan
from reconciler.plan.copies.desired import desired_topics
from tests.unit.plan.facts import (
    EAST,
    INTERNAL,
    WEST,
    carried_out,
    cluster,
    flow,
    made,
    plan_of,
    record,
    topic,
    topology,
)


def wanted_of(declared: Topology, *clusters: ObservedCluster) -> DesiredTopic:
    (wanted,) = desired_topics(declared, {one.alias: one for one in clusters}, [WEST])
    return wanted


def applied(declared: Topology, source: ObservedCluster, *more: str, **changes: object) -> ObservedCluster:
    """The target after the one topic of `source` was applied, with `changes` made to it since."""
    wanted = wanted_of(declared, source, cluster(WEST))
    now = replace(made(wanted), **changes)  # type: ignore[arg-type]
    return cluster(WEST, now, *(topic(name) for name in more), owned=[record(wanted, declared)])


def test_a_new_topic_is_made_like_its_original() -> None:
    plan = plan_of(topology(), cluster(EAST, topic("orders", 12)), cluster(WEST))

    (step,) = plan.steps
    assert isinstance(step, CreateTopic)
    assert (step.cluster, step.name) == (WEST, "us-east.orders")
    assert (step.topic.partitions, step.topic.replication_factor) == (12, 3)
    assert (step.topic.source, step.topic.source_topic, step.topic.source_topic_id) == (EAST, "orders", "id-of-orders")
    assert (step.topic.flow, step.topic.offsets) == ("us-east-eu-west", "identical")
    assert (plan.to_add, plan.to_change, plan.is_empty) == (1, 0, False)


def test_the_identity_policy_keeps_the_name() -> None:
    declared = topology(flow(policy=ReplicationPolicy("identity")))
    (step,) = plan_of(declared, cluster(EAST, topic("orders")), cluster(WEST)).steps
    assert step.name == "orders"


@pytest.mark.parametrize(
    ("declared", "original", "brokers", "expected"), [(None, 3, 3, 3), (None, 3, 1, 1), (None, 1, 5, 1), (2, 3, 3, 2)]
)
def test_replication_is_as_declared_or_the_originals_as_far_as_brokers_go(
    declared: int | None, original: int, brokers: int, expected: int
) -> None:
    one = topology(flow(replication_factor=declared))
    (step,) = plan_of(one, cluster(EAST, topic("orders", replication=original)), cluster(WEST, brokers=brokers)).steps
    assert isinstance(step, CreateTopic)
    assert step.topic.replication_factor == expected


def test_topics_for_our_own_state_are_made_first() -> None:
    plan = plan_of(topology(), cluster(EAST, topic("orders")), cluster(WEST, internal=False))
    assert [type(step) for step in plan.steps] == [CreateInternalTopic, CreateInternalTopic, CreateTopic]
    assert tuple(step.name for step in plan.steps[:2]) == INTERNAL
    assert (plan.to_add, plan.own_to_add) == (1, 2)


def test_steps_come_by_kind_and_name_whatever_the_order_of_the_facts() -> None:
    declared = topology()
    originals = [topic(name) for name in ("c", "a", "b")]
    first = plan_of(declared, cluster(EAST, *originals), cluster(WEST))
    second = plan_of(declared, cluster(EAST, *reversed(originals)), cluster(WEST))
    assert first == second
    assert [step.name for step in first.steps] == ["us-east.a", "us-east.b", "us-east.c"]


def test_each_target_has_its_own_part_in_the_order_of_declaration() -> None:
    declared = topology(flow(), flow(WEST, EAST))
    plan = plan_of(declared, cluster(EAST, topic("orders")), cluster(WEST, topic("users")))
    assert [(part.alias, part.datacenter) for part in plan.clusters] == [(EAST, "dc-us-east"), (WEST, "dc-eu-west")]
    assert [[step.name for step in part.steps] for part in plan.clusters] == [["eu-west.users"], ["us-east.orders"]]
    assert [(one.source, one.target, one.tasks, one.topics) for one in plan.clusters[1].flows] == [(EAST, WEST, 1, 1)]


def test_only_the_flows_into_the_chosen_targets_are_planned() -> None:
    declared = topology(flow(), flow(WEST, EAST))
    observed = {EAST: cluster(EAST, topic("orders")), WEST: cluster(WEST, topic("users"))}
    plan = build_plan(declared, observed, [EAST])
    assert [step.name for step in plan.steps] == ["eu-west.users"]
    assert [part.alias for part in plan.clusters] == [EAST]


def test_a_target_without_a_flow_is_said() -> None:
    observed = {EAST: cluster(EAST, topic("orders"), internal=False), WEST: cluster(WEST)}
    plan = build_plan(topology(), observed, [EAST])
    assert plan.is_empty
    assert [notice.message for notice in plan.clusters[0].warnings] == ["no enabled flow leads into it"]


def test_a_topic_does_not_go_back_to_where_it_came_from() -> None:
    plan = plan_of(topology(), cluster(EAST, topic("orders"), topic("eu-west.users")), cluster(WEST))
    assert [step.name for step in plan.steps] == ["us-east.orders"]


def test_partitions_grow_with_the_original() -> None:
    declared = topology()
    target = applied(declared, cluster(EAST, topic("orders", 6)))
    plan = plan_of(declared, cluster(EAST, topic("orders", 8)), target)
    (step,) = plan.steps
    assert isinstance(step, AddPartitions)
    assert (step.found, step.topic.partitions, step.topic_id) == (6, 8, "id-of-us-east.orders")
    assert (plan.to_add, plan.to_change) == (0, 1)


def test_partitions_never_shrink_and_the_plan_says_so() -> None:
    declared = topology()
    target = applied(declared, cluster(EAST, topic("orders", 6)))
    plan = plan_of(declared, cluster(EAST, topic("orders", 4)), target)
    assert plan.is_empty
    (notice,) = plan.clusters[0].warnings
    assert (notice.subject, notice.message) == ("us-east.orders", "has 6 partitions, the original 4: never fewer")


def test_one_topic_that_grows_and_changes_counts_once() -> None:
    declared = topology()
    target = applied(declared, cluster(EAST, topic("orders", 6)))
    plan = plan_of(declared, cluster(EAST, topic("orders", 8, configs={"retention.ms": "5"})), target)
    assert [type(step) for step in plan.steps] == [AddPartitions, AlterConfig]
    assert plan.to_change == 1


def test_another_replication_factor_is_said_and_left() -> None:
    source = cluster(EAST, topic("orders", replication=1))
    target = applied(topology(), source, replication_factor=2)
    assert not plan_of(topology(), source, target).clusters[0].warnings
    plan = plan_of(topology(flow(replication_factor=1)), source, target)
    assert plan.is_empty
    assert "has replication 2, declared is 1" in plan.clusters[0].warnings[0].message


def test_a_killed_apply_is_finished() -> None:
    declared = topology()
    source = cluster(EAST, topic("orders"))
    wanted = wanted_of(declared, source, cluster(WEST))
    target = cluster(WEST, made(wanted), owned=[record(wanted, declared, None)])
    plan = plan_of(declared, source, target)
    (step,) = plan.steps
    assert isinstance(step, RecordOwnership)
    assert (step.reason, step.topic_id) == ("interrupted", "id-of-us-east.orders")
    assert plan_of(declared, source, carried_out(plan, target)).is_empty


def test_a_renamed_flow_takes_its_topics_along() -> None:
    declared = topology()
    source = cluster(EAST, topic("orders"))
    target = applied(declared, source)
    renamed = topology(flow(name="west-copy"))
    (step,) = plan_of(renamed, source, target).steps
    assert isinstance(step, RecordOwnership)
    assert step.reason == "flow-renamed"


def test_a_flow_whose_positions_go_by_its_name_keeps_it() -> None:
    declared = topology(flow(offsets="translated"))
    source = cluster(EAST, topic("orders"))
    target = applied(declared, source)
    assert plan_of(declared, source, target).is_empty
    with pytest.raises(Refused) as caught:
        plan_of(topology(flow(name="west-copy", offsets="translated")), source, target)
    (problem,) = caught.value.problems
    assert problem.code == "AB438"
    assert "was filled by flow us-east-eu-west, and would be by flow west-copy" in problem.message
    assert "let flow us-east-eu-west take orders" in problem.remedy
    # Of several originals of one copy the one on record is taken no longer: nothing of the others is copied anew.
    other = flow("us-west", WEST, policy=ReplicationPolicy("identity"), offsets="translated", name="other")
    both = topology(flow(policy=ReplicationPolicy("identity"), offsets="translated"), other)
    west = cluster("us-west", topic("orders", topic_id="of-us-west"))
    shared = applied(topology(both.flows[0]), source)
    rest = replace(both, flows=(replace(both.flows[0], topics=Selection(("none",))), other))
    seen = {EAST: source, "us-west": west, WEST: shared}
    (step,) = build_plan(rest, seen, [WEST]).steps
    assert isinstance(step, RecordOwnership)
    assert step.reason == "flow-renamed"


def test_a_topic_that_was_deleted_at_the_target_is_made_again() -> None:
    declared = topology()
    source = cluster(EAST, topic("orders"))
    gone = replace(applied(declared, source), topics={}, names=frozenset(INTERNAL))
    (step,) = plan_of(declared, source, gone).steps
    assert isinstance(step, CreateTopic)


@pytest.mark.parametrize(
    ("flows", "source_topics", "why"),
    [
        ((flow(),), ("others",), "us-east's orders is gone"),
        (
            (flow(include=["others"]),),
            ("orders", "others"),
            "flow us-east-eu-west no longer takes us-east's orders; --allow-delete deletes it",
        ),
        (
            (flow(name="new", include=["others"]),),
            ("orders", "others"),
            "no flow us-east-eu-west is declared any more; --allow-delete deletes it",
        ),
    ],
)
def test_what_is_no_longer_asked_for_is_left_alone_and_said(
    flows: tuple[Flow, ...], source_topics: tuple[str, ...], why: str
) -> None:
    target = applied(topology(), cluster(EAST, topic("orders")))
    plan = plan_of(topology(*flows), cluster(EAST, *(topic(name) for name in source_topics)), target)
    assert {type(step) for step in plan.steps} <= {CreateTopic}
    assert "us-east.orders" not in {step.name for step in plan.steps}
    (notice,) = plan.clusters[0].left_alone
    assert (notice.subject, notice.message) == ("us-east.orders", why)


def test_topics_of_a_disabled_flow_are_left_alone() -> None:
    target = applied(topology(), cluster(EAST, topic("orders")))
    declared = topology(flow(enabled=False), flow(name="other", include=["users"]))
    plan = plan_of(declared, cluster(EAST, topic("orders"), topic("users")), target)
    assert [notice.message for notice in plan.clusters[0].left_alone] == ["flow us-east-eu-west is not enabled"]
    assert [one.name for one in plan.clusters[0].flows] == ["other"]


def test_other_topologies_topics_are_not_mentioned() -> None:
    source = cluster(EAST, topic("orders"))
    target = applied(topology(name="another"), source)
    plan = plan_of(topology(flow(include=["users"])), source, target)
    assert plan.clusters[0].left_alone == ()


def test_no_topic_that_matches_is_a_warning() -> None:
    plan = plan_of(topology(flow(include=["nothing.*"])), cluster(EAST, topic("orders")), cluster(WEST))
    assert plan.is_empty
    assert [(notice.subject, notice.message) for notice in plan.clusters[0].warnings] == [
        ("flow us-east-eu-west", "no topic of us-east matches; it waits for one"),
        ("flow us-east-eu-west", "item nothing.* of topics.include matches no topic of us-east"),
    ]


names = st.sampled_from(["orders", "users", "payments", "us", "audit.log"])
configs = st.dictionaries(
    st.sampled_from(["retention.ms", "max.message.bytes", "segment.bytes", "min.insync.replicas", "compression.type"]),
    st.sampled_from(["1", "2", "5000000", "86400000"]),
)
originals = st.lists(
    st.builds(topic, names, st.integers(1, 9), st.integers(1, 3), configs), unique_by=lambda one: one.name, max_size=5
)


@settings(max_examples=60, deadline=None)
@given(originals, originals, st.integers(1, 3))
def test_after_an_apply_there_is_nothing_to_do_whatever_the_source_becomes(
    first: list[object], then: list[object], brokers: int
) -> None:
    declared = topology(flow(topics=Selection((".*",), ("us",))))
    target = cluster(WEST, brokers=brokers, internal=False)
    for topics in (first, then):
        source = cluster(EAST, *topics)  # type: ignore[arg-type]
        plan = plan_of(declared, source, target)
        assert plan == plan_of(declared, source, target)
        target = carried_out(plan, target)
        assert plan_of(declared, source, target).is_empty
