"""What the reconcile loop carries out of a plan: topics that are made or grow, for one flow, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from reconciler.cli.reconcile import only_growth
from reconciler.model.desired import DesiredTopic, Setting
from reconciler.model.steps import (
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Plan,
    RecordOwnership,
    Step,
)

TOPIC = DesiredTopic("west", "east.orders", "east-west", "east", "orders", "id", 4, 1, "identical", ())
OTHER = replace(TOPIC, name="east.users", flow="users")
WANTED: tuple[Step, ...] = (
    CreateInternalTopic("west", "anabranch-owned.internal"),
    CreateTopic(TOPIC),
    AddPartitions(TOPIC, "id", 2),
    RecordOwnership(TOPIC, "id", "interrupted"),
)
UNWANTED: tuple[Step, ...] = (
    CreateTopic(OTHER),
    AddPartitions(OTHER, "id", 2),
    AlterConfig(TOPIC, "id", ()),
    RecordOwnership(TOPIC, "id", "flow-renamed"),
)


def test_only_what_makes_or_enlarges_the_flows_topics_is_left() -> None:
    plan = Plan("tests", "digest", (ClusterPlan("west", "dc1", (*UNWANTED, *WANTED)),))
    left = only_growth(plan, "east-west", {})
    assert left.steps == WANTED
    assert (left.topology, left.digest) == ("tests", "digest")


def test_a_record_goes_on_saying_what_was_applied_last() -> None:
    grown = replace(TOPIC, settings=(Setting("retention.ms", "2", "source"),))
    before = replace(TOPIC, settings=(Setting("retention.ms", "1", "source"), Setting("segment.ms", "3", "source")))
    plan = Plan("tests", "digest", (ClusterPlan("west", "dc1", (CreateTopic(OTHER), AddPartitions(grown, "id", 2))),))
    (step,) = only_growth(plan, "east-west", {TOPIC.name: before.owned("tests", "digest", "id")}).steps
    assert isinstance(step, AddPartitions)
    record = step.topic.owned("tests", "digest", "id")
    assert (record.configs, record.partitions) == ({"retention.ms": "1", "segment.ms": "3"}, 4)
