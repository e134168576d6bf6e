"""Taking topics over: what is recorded is fit to be a copy, and no record of others is taken for the original's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import AnabranchError, Problem, Refused
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import AddPartitions, AlterConfig, CreateInternalTopic, Plan, RecordOwnership
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.adopt import adopt_plan
from tests.unit.plan.facts import EAST, INTERNAL, WEST, carried_out, cluster, flow, plan_of, topic, topology

SOURCE = cluster(EAST, replace(topic("orders"), starts=(0,) * 6, ends=(100,) * 6))
AT_OFFSETS = Start("offsets", offsets=(("orders", (90,) * 6),))


def standing(
    partitions: int = 6, ends: tuple[int | None, ...] = (0,) * 6, start: int = 0, **configs: str
) -> ObservedTopic:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    found = topic("us-east.orders", partitions, configs=named)
    return replace(found, starts=(start,) * partitions, ends=ends[:partitions])


def adopted(
    there: ObservedCluster, declared: Topology | None = None, *only: str, source: ObservedCluster = SOURCE
) -> Plan:
    return adopt_plan(declared or topology(), {EAST: source, WEST: there}, [WEST], only)


def problems(there: ObservedCluster, declared: Topology | None = None) -> tuple[Problem, ...]:
    with pytest.raises(Refused) as refused:
        adopted(there, declared)
    return refused.value.problems


def test_an_empty_topic_is_made_fit_and_recorded_last() -> None:
    there = cluster(WEST, standing(4, flush_ms="1000", retention_ms="5"), internal=False)
    plan = adopted(there)
    kinds = [type(step) for step in plan.steps]
    assert kinds == [*([CreateInternalTopic] * len(INTERNAL)), AddPartitions, AlterConfig, RecordOwnership]
    (alter,) = (step for step in plan.steps if isinstance(step, AlterConfig))
    assert {change.reason for change in alter.changes} == {"missing"}
    assert "flush.ms" not in {change.key for change in alter.changes}
    record = plan.steps[-1]
    assert isinstance(record, RecordOwnership)
    assert (record.reason, record.topic.offsets, record.topic_id) == ("adopted", "identical", "id-of-us-east.orders")
    assert (plan.to_add, plan.own_to_add, plan.to_change, plan.to_delete) == (0, len(INTERNAL), 1, 0)
    assert plan.to_put_in_force == ()
    # The plan after it has nothing to do there.
    after = carried_out(plan, there)
    assert plan_of(topology(), SOURCE, after).is_empty
    assert adopted(after).changes_nothing


def test_what_holds_records_gets_translated_offsets_from_where_the_flow_says() -> None:
    declared = topology(flow(start=AT_OFFSETS))
    there = cluster(WEST, standing(ends=(90,) * 6))
    plan = adopted(there, declared)
    record = plan.steps[-1]
    assert isinstance(record, RecordOwnership)
    assert (record.topic.offsets, dict(record.topic.padding)) == ("translated", {})
    (notice,) = plan.clusters[0].warnings
    assert "its 540 offsets stay" in notice.message
    after = carried_out(plan, there)
    assert after.owned["us-east.orders"].offsets == "translated"
    assert plan_of(declared, SOURCE, after).is_empty


@pytest.mark.parametrize(
    "existing",
    [
        standing(ends=(0, 0, 0, 0, 0, 1)),
        # Its records were deleted, or nobody knows of one partition.
        standing(ends=(7,) * 6, start=7),
        standing(ends=(0, 0, 0, 0, 0, None)),
        replace(standing(), starts=(), ends=()),
    ],
)
def test_only_what_is_certainly_empty_is_taken_for_empty(existing: ObservedTopic) -> None:
    (problem,) = problems(cluster(WEST, existing))
    assert problem.code == "AB425"
    assert "start: {offsets: {orders: [OFFSET, …]}}" in problem.remedy
    (problem,) = problems(cluster(WEST, existing), topology(flow(offsets="identical")))
    assert (problem.code, "demands identical offsets" in problem.message) == ("AB425", True)


def test_nobody_elses_topic_is_adopted() -> None:
    mine = carried_out(adopted(cluster(WEST, standing())), cluster(WEST, standing()))
    (problem,) = problems(mine, topology(name="billing"))
    assert (problem.code, problem.message) == ("AB425", "the topology payments owns it")


def test_one_of_ours_that_others_made_anew_is_adopted_as_it_is_now() -> None:
    mine = carried_out(adopted(cluster(WEST, standing())), cluster(WEST, standing()))
    anew = replace(mine, topics={"us-east.orders": replace(standing(), topic_id="another")})
    plan = adopted(anew)
    assert isinstance(plan.steps[-1], RecordOwnership)
    assert carried_out(plan, anew).owned["us-east.orders"].topic_id == "another"


def test_more_partitions_than_the_original_are_refused() -> None:
    (problem,) = problems(cluster(WEST, standing(7, ends=(0,) * 7)))
    assert (problem.code, "has 7 partitions, and its original 6" in problem.message) == ("AB425", True)


def test_a_topic_of_several_originals_needs_a_start_for_each() -> None:
    merged = ReplicationPolicy("identity")
    held = replace(topic("orders"), starts=(0,) * 6, ends=(5,) * 6)
    flows = (flow(policy=merged, start=AT_OFFSETS), flow("us-two", WEST, policy=merged))
    facts = {EAST: SOURCE, "us-two": replace(SOURCE, alias="us-two"), WEST: cluster(WEST, held)}
    with pytest.raises(AnabranchError) as refused:
        adopt_plan(topology(*flows), facts, [WEST])
    assert [(one.code, "flow us-two-eu-west" in one.message) for one in refused.value.problems] == [("AB425", True)]
    both = topology(flows[0], replace(flows[1], start=AT_OFFSETS))
    (step,) = (one for one in adopt_plan(both, facts, [WEST]).steps if isinstance(one, RecordOwnership))
    assert (step.topic.offsets, step.name) == ("translated", "orders")


def test_what_is_named_and_not_to_be_adopted_is_told() -> None:
    source = cluster(EAST, *(replace(topic(name), starts=(0,) * 6, ends=(9,) * 6) for name in ("orders", "users")))
    plan = adopted(cluster(WEST, standing()), None, "us-east.users", source=source)
    assert plan.steps == ()
    (notice,) = plan.clusters[0].left_alone
    assert (notice.subject, notice.message) == ("us-east.users", "does not exist: `anabranch apply` makes it")
