"""Originals that were made anew: their copies stay as they are, and on record as what they are copies of, or go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import AddPartitions, AlterConfig, ClusterPlan, RecordOwnership
from reconciler.model.recorded.ownership import kafka_id
from reconciler.plan.guardrails.left_out import hindered
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, plan_of, topic, topology

REMOTE = "us-east.orders"
MADE_ANEW = "us-east's orders was made anew since the last apply"


def applied(declared: Topology, *, partitions: int = 2, ends: Sequence[int | None] = (7, 0)) -> ObservedCluster:
    """The target after the former original was applied, with a copy that holds so much."""
    source = cluster(EAST, topic("orders", partitions, configs={"retention.ms": "1000"}))
    target = carried_out(plan_of(declared, source, cluster(WEST)), cluster(WEST))
    copy = replace(target.topics[REMOTE], starts=tuple(0 for _ in ends), ends=tuple(ends))
    return replace(target, topics={REMOTE: copy})


def anew(partitions: int = 3, **configs: str) -> ObservedTopic:
    return topic("orders", partitions, configs={"retention.ms": "1000"} | configs, topic_id="another")


def planned(declared: Topology, original: ObservedTopic, target: ObservedCluster) -> ClusterPlan:
    (found,) = plan_of(declared, cluster(EAST, original), target).clusters
    return found


@pytest.mark.parametrize(
    "original",
    [anew(3), anew(1), anew(2), anew(3, **{"retention.ms": "5", "segment.ms": "60000"})],
    ids=["more partitions", "fewer", "as many", "other settings"],
)
@pytest.mark.parametrize("mode", ["auto", "translated"])
@pytest.mark.parametrize("count", [None, 8], ids=["as the original", "declared partitions"])
def test_nothing_is_done_with_the_copy_of_a_topic_made_anew(
    original: ObservedTopic, mode: str, count: int | None
) -> None:
    declared = topology(flow(offsets=mode))
    target = applied(declared)
    declared = topology(flow(offsets=mode, partitions=count))
    plan = planned(declared, original, target)
    assert plan.steps == ()
    message = next(notice.message for notice in plan.warnings if notice.subject == REMOTE)
    assert message.startswith(f"{MADE_ANEW}: its copy stays as it is")
    assert "`anabranch recreate --target us-east.orders` begins the copy anew, and `on-recreate: restart`" in message
    observed = {EAST: cluster(EAST, original), WEST: target}
    assert hindered(declared, observed, (WEST,)) == {"us-east-eu-west": {"orders": message}}


def test_what_changed_at_the_target_is_set_back_and_the_former_original_stays_on_record() -> None:
    declared = topology()
    target = applied(declared)
    copy = replace(target.topics[REMOTE], configs={**target.topics[REMOTE].configs, "retention.ms": "9"})
    plan = planned(declared, anew(), replace(target, topics={REMOTE: copy}))
    (step,) = plan.steps
    assert isinstance(step, AlterConfig)
    assert [(change.key, change.new) for change in step.changes] == [("retention.ms", "1000")]
    assert (step.topic.source_topic_id, step.topic.partitions) == ("id-of-orders", 2)


@pytest.mark.parametrize("ends", [(7, 0), (7, None), ()], ids=["some", "not all are known", "none is known"])
def test_a_copy_that_may_hold_something_is_kept(ends: Sequence[int | None]) -> None:
    declared = topology()
    assert planned(declared, anew(), applied(declared, ends=ends)).steps == ()


def test_a_copy_that_never_held_anything_goes_on_with_the_new_topic() -> None:
    declared = topology()
    target = applied(declared, ends=(0, 0))
    (step,) = planned(declared, anew(), target).steps
    assert isinstance(step, AddPartitions)
    assert (step.topic.source_topic_id, step.topic.partitions) == ("another", 3)
    assert hindered(declared, {EAST: cluster(EAST, anew()), WEST: target}, (WEST,)) == {}


@pytest.mark.parametrize(
    ("partitions", "kinds"), [(3, [AddPartitions]), (2, [RecordOwnership]), (1, [RecordOwnership])]
)
def test_what_is_declared_to_go_on_does_and_is_recorded_once(partitions: int, kinds: list[type]) -> None:
    declared = topology(flow(on_recreate="restart"))
    target, source = applied(topology()), cluster(EAST, anew(partitions))
    plan = plan_of(declared, source, target)
    assert [type(step) for step in plan.steps] == kinds
    assert {step.reason for step in plan.steps if isinstance(step, RecordOwnership)} <= {"made-anew"}
    messages = [notice.message for notice in plan.clusters[0].warnings]
    assert f"{MADE_ANEW}: its copy goes on with the new records" in messages
    after = carried_out(plan, target)
    assert after.owned[REMOTE].source_topic_id == "another"
    assert plan_of(declared, source, after).steps == ()
    assert MADE_ANEW not in str(plan_of(declared, source, after).clusters[0].warnings)


def test_a_copy_that_was_deleted_is_made_of_the_new_topic() -> None:
    declared = topology()
    target = replace(applied(declared), topics={}, names=cluster(WEST).names)
    plan = plan_of(declared, cluster(EAST, anew()), target)
    after = carried_out(plan, target)
    assert (after.topics[REMOTE].partitions, after.owned[REMOTE].source_topic_id) == (3, "another")


def test_an_id_is_the_same_in_both_alphabets() -> None:
    # Failback recorded ids of originals that it had made anew in Kafka's own spelling; clients spell them otherwise.
    declared = topology()
    target = applied(declared)
    record = replace(target.owned[REMOTE], source_topic_id="DKFa8mx0SPSMbr8-AwMd_A")
    target = replace(target, owned={REMOTE: record})
    original = replace(anew(3), topic_id="DKFa8mx0SPSMbr8+AwMd/A")
    plan = planned(declared, original, target)
    assert [type(step) for step in plan.steps][:1] == [AddPartitions]
    assert not any(notice.message.startswith(MADE_ANEW) for notice in plan.warnings)
    assert kafka_id("0ca15af2-6c74-48f4-8c6e-bf3e03031dfc") == "DKFa8mx0SPSMbr8+AwMd/A"
