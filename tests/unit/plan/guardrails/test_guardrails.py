"""What a plan refuses, with which code, and what it tells the user to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AddPartitions, CreateTopic, RecordOwnership
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.build import build_plan
from reconciler.plan.copies.desired import desired_topics
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, made, plan_of, record, topic, topology

IDENTITY = ReplicationPolicy("identity")
SOURCE = cluster(EAST, topic("orders"))
REMOTE = topic("us-east.orders")


def problems(declared: Topology, *clusters: ObservedCluster) -> list[Problem]:
    with pytest.raises(Refused) as refused:
        plan_of(declared, *clusters)
    assert refused.value.exit_code == 4
    assert all(problem.where and problem.message and problem.remedy for problem in refused.value.problems)
    return list(refused.value.problems)


def owned_by(declared: Topology, topic_id: str | None = "", **fields: object) -> ObservedCluster:
    (wanted,) = desired_topics(declared, {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])
    changed = replace(record(wanted, declared, topic_id), **fields)  # type: ignore[arg-type]
    return cluster(WEST, made(wanted), owned=[changed])


def test_a_topic_that_nobody_of_us_made_is_not_touched() -> None:
    (problem,) = problems(topology(), SOURCE, cluster(WEST, REMOTE))
    assert problem.code == "AB401"
    assert problem.where == "cluster eu-west (eu-west.example:9092), topic us-east.orders"
    assert "exists and is not ours: no apply of payments made it" in problem.message
    assert "`anabranch adopt --target us-east.orders` takes it over" in problem.remedy


def test_a_topic_of_another_topology_is_not_touched() -> None:
    (problem,) = problems(topology(), SOURCE, owned_by(topology(name="billing")))
    assert (problem.code, "the topology billing made it" in problem.message) == ("AB401", True)


def test_a_topic_that_was_made_again_by_somebody_else_is_not_touched() -> None:
    (problem,) = problems(topology(), SOURCE, owned_by(topology(), "former-id"))
    assert problem.code == "AB401"
    assert "topic id former-id then, id-of-us-east.orders now" in problem.message


@pytest.mark.parametrize("fields", [{"partitions": 5}, {"configs": {"retention.ms": "1"}}])
def test_a_topic_that_only_has_the_name_that_an_interrupted_apply_meant_is_not_touched(
    fields: dict[str, object],
) -> None:
    (problem,) = problems(topology(), SOURCE, owned_by(topology(), None, **fields))
    assert (problem.code, "an interrupted apply was about to make it" in problem.message) == ("AB401", True)


def test_throttles_of_a_rebalance_make_what_an_interrupted_apply_made_no_other_topic() -> None:
    declared = topology()
    there = owned_by(declared, None)
    copy = there.topics[REMOTE.name]
    throttled = {**copy.configs, "leader.replication.throttled.replicas": "0:1"}
    there = replace(there, topics={REMOTE.name: replace(copy, configs=throttled)})
    assert [type(step) for step in plan_of(declared, SOURCE, there).steps] == [RecordOwnership]


def test_a_topic_of_somebody_else_is_told_with_what_stands_against_copying_into_it() -> None:
    settings = {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd", "cleanup.policy": "delete"}
    bounds = {"message.timestamp.before.max.ms": "9223372036854775807", "message.timestamp.after.max.ms": "3600000"}
    foreign = replace(REMOTE, partitions=2, effective=settings | bounds, starts=(5, 0), ends=(1205, None))
    (problem,) = problems(topology(), SOURCE, cluster(WEST, foreign))
    assert problem.code == "AB401"
    assert problem.message.endswith(
        "; it holds 1,200 offsets of its own, message.timestamp.type is LogAppendTime, not CreateTime, "
        "compression.type is zstd, not producer, message.timestamp.after.max.ms is 3600000, below the maximum: "
        "identical offsets could not be held in it"
    )


@pytest.mark.parametrize("fields", [{"offsets": "translated"}, {"delivery": "at-least-once"}])
def test_what_identical_offsets_could_not_be_held_in_is_told_of_these_alone(fields: dict[str, str]) -> None:
    foreign = replace(REMOTE, starts=(5,), ends=(1205,), effective={"message.timestamp.type": "LogAppendTime"})
    (problem,) = problems(topology(flow(**fields)), SOURCE, cluster(WEST, foreign))
    assert problem.code == "AB401"
    assert "identical" not in problem.message


def test_an_empty_topic_of_somebody_else_with_the_right_settings_is_only_not_ours() -> None:
    right = {"message.timestamp.type": "CreateTime", "compression.type": "producer"}
    (problem,) = problems(topology(), SOURCE, cluster(WEST, replace(REMOTE, effective=right, starts=(0,), ends=(0,))))
    assert "identical" not in problem.message


def test_two_flows_must_not_fill_one_topic_from_one_original() -> None:
    declared = topology(flow(), flow(name="again"))
    (problem,) = problems(declared, SOURCE, cluster(WEST))
    assert problem.code == "AB402"
    assert "us-east's orders (flow again) and us-east's orders (flow us-east-eu-west)" in problem.message


def test_replication_beyond_the_brokers_is_refused() -> None:
    declared = topology(flow(replication_factor=3, origin="flows[0]"))
    (problem,) = problems(declared, SOURCE, cluster(WEST, brokers=2))
    assert (problem.code, problem.where) == ("AB403", "flow us-east-eu-west (flows[0])")
    assert "replication factor 3 is declared, and eu-west has 2 brokers" in problem.message


def test_a_required_topic_must_exist() -> None:
    declared = topology(flow(topics=Selection(("orders", "users", "more.*"), required=True)))
    (problem,) = problems(declared, SOURCE, cluster(WEST))
    assert (problem.code, problem.where) == ("AB404", "cluster us-east (us-east.example:9092), topic users")
    assert "required: true" in problem.remedy


def test_a_copy_keeps_its_original() -> None:
    declared = topology(flow(policy=IDENTITY))
    target = owned_by(declared, source="ap-south", source_topic="orders", source_topic_id="of-another-cluster")
    (problem,) = problems(declared, SOURCE, target)
    assert problem.code == "AB405"
    assert "holds the copy of ap-south's orders" in problem.message


def test_a_name_that_is_too_long_is_named_before_kafka_refuses_it() -> None:
    long = "x" * 245
    (problem,) = problems(topology(), cluster(EAST, topic(long)), cluster(WEST))
    assert problem.code == "AB406"
    assert "its name has 253 characters, Kafka allows 249" in problem.message
    # Where its policy stands in no file the flow is the place, and is named once.
    assert (problem.where, problem.message.count("flow ")) == ("flow us-east-eu-west", 0)


def test_all_refusals_are_shown_together() -> None:
    declared = topology(flow(replication_factor=9, topics=Selection((".*", "missing"), required=True)))
    codes = [problem.code for problem in problems(declared, SOURCE, cluster(WEST, REMOTE))]
    assert sorted(codes) == ["AB401", "AB403", "AB404"]


def test_offsets_at_which_no_copy_can_begin() -> None:
    """All are told; what is begun has a position of its own, and a topic that is not there yet has no offsets."""
    start = Start("offsets", 0, (("new", (7,)), ("orders", (2, 10, 11)), ("users", (0, 5))))
    orders = replace(topic("orders", 3), starts=(3, 3, 3), ends=(10, 10, 10))
    users = replace(topic("users", 1), starts=(0,), ends=(5,))
    declared = topology(flow(start=start))
    found = problems(declared, cluster(EAST, orders, users), cluster(WEST))
    assert {problem.code for problem in found} == {"AB410"}
    assert [(problem.where.partition(", ")[2], problem.message) for problem in found] == [
        ("topic orders, partition 0", "has offsets 3 to 10, and flow us-east-eu-west would begin at 2"),
        ("topic orders, partition 2", "has offsets 3 to 10, and flow us-east-eu-west would begin at 11"),
        ("topic users", "has 1 partitions, and flow us-east-eu-west names 2 to begin at"),
    ]
    begun = carried_out(plan_of(topology(), cluster(EAST, orders, users), cluster(WEST)), cluster(WEST))
    assert plan_of(declared, cluster(EAST, orders, users), begun).is_empty


def test_fewer_partitions_than_a_copy_was_made_with_are_refused() -> None:
    first = topology(flow(partitions=12))
    plan = plan_of(first, SOURCE, cluster(WEST))
    before = carried_out(plan, cluster(WEST))
    assert before.topics["us-east.orders"].partitions == 12
    assert plan_of(first, SOURCE, before).changes_nothing

    (problem,) = problems(topology(flow(partitions=11)), SOURCE, before)
    assert (problem.code, problem.message) == (
        "AB430",
        "has 12 partitions, and flow us-east-eu-west declares 11",
    )
    assert "set partitions to 12" in problem.remedy
    more = plan_of(topology(flow(partitions=13)), SOURCE, before)
    assert [step.topic.partitions for step in more.steps if isinstance(step, AddPartitions)] == [13]
    assert plan_of(topology(), SOURCE, before).is_empty, "copies keep what they have more"


def test_partitions_that_somebody_added_are_no_refusal() -> None:
    first = topology(flow(partitions=12))
    before = carried_out(plan_of(first, SOURCE, cluster(WEST)), cluster(WEST))
    grown = replace(before.topics["us-east.orders"], partitions=20)
    there = replace(before, topics={"us-east.orders": grown})
    assert [type(step) for step in plan_of(first, SOURCE, there).steps] == [RecordOwnership]


def test_originals_with_more_partitions_than_asked_for_decide() -> None:
    source = cluster(EAST, topic("orders", 16))
    (step,) = plan_of(topology(flow(partitions=12)), source, cluster(WEST)).steps
    assert isinstance(step, CreateTopic)
    assert step.topic.partitions == 16


def test_a_source_under_another_alias_is_refused() -> None:
    former = topology(flow("us-west", WEST))
    before = replace(SOURCE, alias="us-west")
    there = carried_out(plan_of(former, before, cluster(WEST)), cluster(WEST))
    (problem,) = problems(topology(), SOURCE, there)
    assert (problem.code, "was declared as us-west before" in problem.message) == ("AB432", True)
    assert "name it us-west again" in problem.remedy
    other = cluster(EAST, replace(topic("orders"), topic_id="of-another-cluster"))
    planned = plan_of(topology(), other, there)
    assert [type(step) for step in planned.steps] == [CreateTopic], "another cluster has a topic of that name"
    both = topology(flow("us-west", WEST), flow())
    begun = plan_of(both, before, SOURCE, there).steps
    assert [type(step) for step in begun] == [CreateTopic], "one cluster may have two aliases"
    together = carried_out(plan_of(both, before, SOURCE, there), there)
    assert plan_of(topology(), SOURCE, together).to_add == 0, "and then be left with one of them"


def test_a_target_under_another_alias_is_refused() -> None:
    there = replace(cluster(WEST), aliases=frozenset({"eu-former"}))
    (problem,) = problems(topology(), SOURCE, there)
    assert (problem.code, "was declared as eu-former before" in problem.message) == ("AB432", True)
    assert plan_of(topology(), SOURCE, replace(there, aliases=frozenset({EAST}))).to_add == 1


def test_a_file_without_flows_is_refused() -> None:
    empty = replace(topology(), flows=())
    with pytest.raises(Refused) as refused:
        build_plan(empty, {}, ())
    assert [problem.code for problem in refused.value.problems] == ["AB422"]
    assert build_plan(topology(flow(enabled=False)), {WEST: cluster(WEST)}, [WEST]).is_empty
