"""What the reconcile loop carries out of a plan: topics that are made or grow, for one flow, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from reconciler.cli.reconcile import only_growth
from reconciler.model.desired import DesiredTopic
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
)
UNWANTED: tuple[Step, ...] = (
    CreateTopic(OTHER),
    AddPartitions(OTHER, "id", 2),
    AlterConfig(TOPIC, "id", ()),
    RecordOwnership(TOPIC, "id", "flow-renamed"),
)


def test_only_what_makes_or_enlarges_the_flows_topics_is_left() -> None:
    plan = Plan("tests", "digest", (ClusterPlan("west", "dc1", (*UNWANTED, *WANTED)),))
    left = only_growth(plan, "east-west")
    assert left.steps == WANTED
    assert (left.topology, left.digest) == ("tests", "digest")
