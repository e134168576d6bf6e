"""Which copies get identical offsets, which cannot have them and why, and what is padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.start import Start
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.padding import Padding
from reconciler.model.planning.steps import CreateTopic, Plan
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.copies.offsets import LARGEST_PADDING, choices
from reconciler.plan.whole import whole_topics
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, made, plan_of, record, topic, topology

SOUTH = "ap-south"
IDENTITY = ReplicationPolicy("identity")
TWO = (flow(policy=IDENTITY), flow(SOUTH, policy=IDENTITY))


def logs(name: str, *bounds: tuple[int, int] | None, **fields: object) -> ObservedTopic:
    """A topic whose partitions' logs begin and end there; None where nobody knows."""
    starts = tuple(None if one is None else one[0] for one in bounds)
    ends = tuple(None if one is None else one[1] for one in bounds)
    made_topic = replace(topic(name, len(bounds)), starts=starts, ends=ends)
    return replace(made_topic, **fields)  # type: ignore[arg-type]


def sources(*names: str) -> tuple[ObservedCluster, ObservedCluster]:
    return cluster(EAST, *(topic(name) for name in names)), cluster(SOUTH, *(topic(name) for name in names))


def created(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps if isinstance(step, CreateTopic)]


def problems(flows: Sequence[Flow], *clusters: ObservedCluster) -> list[str]:
    with pytest.raises(EnvironmentFault) as raised:
        plan_of(topology(*flows), *clusters)
    assert raised.value.exit_code == 1
    return [f"{problem.code} {problem.where}: {problem.message}" for problem in raised.value.problems]


def test_a_topic_with_a_copy_of_its_own_has_identical_offsets() -> None:
    plan = plan_of(topology(), cluster(EAST, topic("orders")), cluster(WEST))
    (planned,) = plan.clusters[0].flows
    assert (planned.offsets, planned.offsets_reason) == (
        "identical",
        "each copy has one original and only we write there",
    )
    assert plan.clusters[0].not_started == ()


@pytest.mark.parametrize(
    ("start", "mode"),
    [
        (Start(), "identical"),
        (Start("latest"), "translated"),
        (Start("timestamp", 1), "translated"),
        (Start("offsets", 0, (("orders", (3,)),)), "translated"),
        (Start("offsets", 0, (("users", (3,)),)), "identical"),
    ],
)
def test_a_copy_that_begins_elsewhere_has_translated_offsets_unless_it_is_begun(start: Start, mode: str) -> None:
    declared, east = topology(flow(start=start)), cluster(EAST, logs("orders", (0, 9)))
    plan = plan_of(declared, east, cluster(WEST))
    assert [step.topic.offsets for step in plan.steps if isinstance(step, CreateTopic)] == [mode]
    assert f"(start: {start.at})" in plan.clusters[0].flows[0].offsets_reason or mode == "identical"
    begun = carried_out(plan_of(topology(), east, cluster(WEST)), cluster(WEST))
    assert plan_of(declared, east, begun).clusters[0].flows[0].offsets == "identical"


@pytest.mark.parametrize("offsets", ["auto", "translated"])
def test_what_may_be_repeated_has_translated_offsets_unless_it_is_begun(offsets: str) -> None:
    declared, east = topology(flow(delivery="at-least-once", offsets=offsets)), cluster(EAST, topic("orders"))
    plan = plan_of(declared, east, cluster(WEST))
    assert [step.topic.offsets for step in plan.steps if isinstance(step, CreateTopic)] == ["translated"]
    assert plan.clusters[0].flows[0].offsets_reason.endswith("; records may be repeated")
    if offsets == "auto":
        begun = carried_out(plan_of(topology(), east, cluster(WEST)), cluster(WEST))
        (planned,) = plan_of(declared, east, begun).clusters[0].flows
        assert (planned.offsets, "repeated" in planned.offsets_reason) == ("identical", False)


def test_two_originals_of_one_copy_have_translated_offsets_and_the_others_identical_ones() -> None:
    east = cluster(EAST, topic("orders"), topic("users"))
    south = cluster(SOUTH, topic("orders"), topic("parts"))
    plan = plan_of(topology(*TWO), east, south, cluster(WEST))
    assert created(plan) == ["orders", "parts", "users"]
    assert plan.clusters[0].not_started == ()
    planned = {one.name: one for one in plan.clusters[0].flows}
    assert (planned["us-east-eu-west"].topics, planned["us-east-eu-west"].offsets) == (2, "identical")
    assert planned["us-east-eu-west"].offsets_reason == (
        "1 of 2 topics have translated ones; orders: orders would be the copy of ap-south's orders (flow "
        "ap-south-eu-west) and us-east's orders (flow us-east-eu-west): one offset cannot be two"
    )


def test_a_copy_of_several_originals_has_the_partitions_of_the_largest_and_one_record() -> None:
    east, south = (
        cluster(EAST, topic("orders", 3)),
        cluster(SOUTH, replace(topic("orders", 5), topic_id="in-the-south")),
    )
    plan = plan_of(topology(*TWO), east, south, cluster(WEST))
    assert {one.offsets for one in plan.clusters[0].flows} == {"translated"}
    (step,) = [step for step in plan.steps if isinstance(step, CreateTopic)]
    assert (step.topic.partitions, step.topic.offsets, step.topic.padding) == (5, "translated", {})
    west = carried_out(plan, cluster(WEST))
    assert west.owned["orders"].offsets == "translated"
    assert plan_of(topology(*TWO), east, south, west).is_empty
    # One of the two alone goes on as it was begun.
    (alone,) = plan_of(topology(TWO[0]), east, west).clusters[0].flows
    assert alone.offsets_reason == "orders: the copy was begun with translated offsets"


def test_a_copy_of_several_originals_is_declared_for_pulumi_once() -> None:
    observed = {one.alias: one for one in (*sources("orders"), cluster(WEST))}
    assert [one.name for one in whole_topics(topology(*TWO), observed, [WEST])] == ["orders"]


def test_translated_offsets_can_be_demanded_but_not_of_a_copy_with_identical_ones() -> None:
    east = cluster(EAST, topic("orders"))
    demanded = topology(flow(offsets="translated"))
    plan = plan_of(demanded, east, cluster(WEST))
    (planned,) = plan.clusters[0].flows
    assert (planned.offsets, planned.offsets_reason, created(plan)) == (
        "translated",
        "as demanded",
        ["us-east.orders"],
    )
    west = carried_out(plan_of(topology(), east, cluster(WEST)), cluster(WEST))
    (left,) = plan_of(demanded, east, west).clusters[0].not_started
    assert left.why.startswith("not started: us-east.orders was begun with identical offsets: delete it")


def test_the_first_original_of_a_copy_stays_pinned_when_a_second_comes() -> None:
    east, south = sources("orders")
    first = topology(TWO[0])
    west = carried_out(plan_of(first, east, cluster(WEST)), cluster(WEST))
    assert west.owned["orders"].offsets == "identical"
    plan = plan_of(topology(*TWO), east, south, west)
    assert created(plan) == []
    (left,) = plan.clusters[0].not_started
    assert (left.flow, left.reason) == (
        "ap-south-eu-west",
        "orders is the copy of us-east's orders, with identical offsets",
    )
    assert {one.name: one.offsets for one in plan.clusters[0].flows} == {
        "us-east-eu-west": "identical",
        "ap-south-eu-west": "translated",
    }
    assert plan.clusters[0].left_alone == ()


def test_identical_offsets_that_cannot_be_had_are_an_error_with_the_reason() -> None:
    flows = (replace(TWO[0], offsets="identical"), TWO[1])
    (problem,) = problems(flows, *sources("orders"), cluster(WEST))
    assert problem.startswith(
        "AB361 cluster eu-west (eu-west.example:9092), topic orders: flow us-east-eu-west demands identical offsets, "
        "and they cannot be held: orders would be the copy of ap-south's orders"
    )
    declared = replace(TWO[0], offsets="identical")
    (planned,) = plan_of(topology(declared), sources("orders")[0], cluster(WEST)).clusters[0].flows
    assert planned.offsets_reason == "as demanded"


def test_a_log_that_begins_above_0_is_padded_in_new_and_empty_partitions_only() -> None:
    original = logs("orders", (100, 200), (0, 50), (30, 30), None, (7, 9))
    new = plan_of(topology(), cluster(EAST, original), cluster(WEST))
    assert new.clusters[0].flows[0].padding == Padding(137, 3)
    wanted = next(iter(desired_topics(topology(), {EAST: cluster(EAST, original), WEST: cluster(WEST)}, [WEST])))
    assert wanted.padding == {0: 100, 2: 30, 4: 7}
    assert wanted.operations == ("READ", "WRITE", "DESCRIBE", "DELETE")
    # Partition 0 was half padded when its task ended, 2 has records, the others are still to be made or unknown.
    copy = replace(made(wanted), partitions=4, starts=(60, 0, 20, 0), ends=(60, 50, 25, 0))
    west = cluster(WEST, copy, owned=[record(wanted, topology())])
    (found,) = choices(topology(), {EAST: cluster(EAST, original), WEST: west}, [WEST])
    assert found.padding == {0: 40, 4: 7}


def test_padding_is_bounded() -> None:
    most = plan_of(topology(), cluster(EAST, logs("orders", (LARGEST_PADDING, 2 * 10**9))), cluster(WEST))
    assert created(most) == ["us-east.orders"]
    assert most.clusters[0].flows[0].padding.seconds == 200
    more = cluster(EAST, logs("orders", (LARGEST_PADDING, 2 * 10**9), (1, 1)))
    plan = plan_of(topology(), more, cluster(WEST))
    assert created(plan) == ["us-east.orders"]
    assert plan.clusters[0].flows[0].offsets_reason == (
        "orders: its logs begin 1,000,000,001 offsets above the copy's end, and at most 1,000,000,000 are padded in a "
        "topic"
    )
    (problem,) = problems([flow(offsets="identical")], more, cluster(WEST))
    assert "AB361" in problem


def test_a_compacted_topic_cannot_be_padded() -> None:
    compacted = {"cleanup.policy": "compact"}
    trimmed = logs("orders", (5, 9), effective=compacted)
    plan = plan_of(topology(), cluster(EAST, trimmed), cluster(WEST))
    assert "cleanup.policy=compact" in plan.clusters[0].flows[0].offsets_reason
    whole = logs("orders", (0, 9), effective=compacted)
    assert created(plan_of(topology(), cluster(EAST, whole), cluster(WEST))) == ["us-east.orders"]


def test_padding_needs_delete_on_a_copy_that_exists() -> None:
    source = cluster(EAST, logs("orders", (5, 9)))
    (wanted,) = desired_topics(topology(), {EAST: source, WEST: cluster(WEST)}, [WEST])
    operations = frozenset({"READ", "WRITE", "DESCRIBE"})
    copy = replace(made(wanted), operations=operations, starts=(0,), ends=(0,))
    west = cluster(WEST, copy, owned=[record(wanted, topology())])
    plan = plan_of(topology(), source, west)
    assert "padding needs DELETE on the copy" in plan.clusters[0].not_started[0].reason
    allowed = replace(copy, operations=operations | {"DELETE"})
    west = cluster(WEST, allowed, owned=[record(wanted, topology())])
    assert plan_of(topology(), source, west).clusters[0].not_started == ()


def test_plans_do_not_differ_because_a_log_was_trimmed_meanwhile() -> None:
    first = plan_of(topology(), cluster(EAST, logs("orders", (5, 9))), cluster(WEST))
    then = plan_of(topology(), cluster(EAST, logs("orders", (6, 12))), cluster(WEST))
    assert first.clusters[0].flows[0].padding != then.clusters[0].flows[0].padding
    assert first == then


def test_a_copy_that_is_ahead_of_its_original_is_said() -> None:
    source = cluster(EAST, logs("orders", (0, 10), (0, 10), (0, 10)))
    (wanted,) = desired_topics(topology(), {EAST: source, WEST: cluster(WEST)}, [WEST])
    copy = replace(made(wanted), starts=(0, 0, 0), ends=(10, 12, 11))
    west = cluster(WEST, copy, owned=[record(wanted, topology())])
    (notice,) = plan_of(topology(), source, west).clusters[0].warnings
    assert notice.subject == "us-east.orders"
    assert notice.message.startswith("partition 1 ends at 12, its original at 10, and 1 more such partitions")


def test_without_takes_nothing_of_what_is_named() -> None:
    one = flow(include=["orders.*", "users"])
    less = one.without(["orders-a", "orders-a", "users"])
    assert [name for name in ("orders-a", "orders-b", "users") if less.takes(name, [EAST, WEST])] == ["orders-b"]
    assert one.without([]) is one
    assert less.without(["users"]) is less


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("moment", ["whole", "behind", "begun elsewhere"])
def test_a_healthy_copy_with_translated_offsets_is_no_warning(delivery: str, moment: str) -> None:
    """Markers of transactions, and records that were written twice, make it longer; a start makes it shorter."""
    declared = topology(flow(offsets="translated", delivery=delivery))
    source = cluster(EAST, logs("orders", (0, 100), (0, 10)))
    (wanted,) = desired_topics(declared, {EAST: source, WEST: cluster(WEST)}, [WEST])
    ends = {"whole": (202, 21), "behind": (50, 5), "begun elsewhere": (3, 202)}[moment]
    copy = replace(made(wanted), starts=(0, 0), ends=ends)
    west = cluster(WEST, copy, owned=[record(wanted, declared)])
    (part,) = plan_of(declared, source, west).clusters
    assert (part.warnings, part.left_alone, part.not_started, part.steps) == ((), (), (), ())


def test_a_flow_without_copies_of_identical_offsets_fills_nothing() -> None:
    source = cluster(EAST, logs("orders", (0, 100)))
    (translated,) = plan_of(topology(flow(offsets="translated")), source, cluster(WEST)).clusters[0].flows
    assert translated.fill_reason == "not needed: translated offsets leave no gap to fill"
    repeated = topology(flow(delivery="at-least-once"))
    assert plan_of(repeated, source, cluster(WEST)).clusters[0].flows[0].fill_reason == translated.fill_reason
    identical = plan_of(topology(), source, cluster(WEST)).clusters[0].flows[0]
    assert identical.fill_reason.startswith("exact except across a coordinator's restart")
