"""What the reconcile loop carries out of a plan: what follows the originals of one flow, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.planning.desired import DesiredTopic, TopicSetting
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    ConfigChange,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Plan,
    RecordOwnership,
    RevokeAcl,
    Step,
)
from reconciler.operate.flows.following import only_following

TOPIC = DesiredTopic("west", "east.orders", "east-west", "east", "orders", "id", 4, 1, "identical", ())
OTHER = replace(TOPIC, name="east.users", flow="users")
BINDING = Binding("topic", ResourcePattern("east.orders"), "User:alice", "READ")
WANTED: tuple[Step, ...] = (
    CreateInternalTopic("west", "anabranch.payments.owned.internal"),
    CreateTopic(TOPIC),
    AddPartitions(TOPIC, "id", 2),
    RecordOwnership(TOPIC, "id", "interrupted"),
    AlterConfig(TOPIC, "id", (ConfigChange("retention.ms", "1", "2", "source-change"),)),
    AlterConfig(TOPIC, "id", (ConfigChange("retention.ms", "1", None, "obsolete"),)),
    GrantAcl("west", BINDING, "east-west"),
    RevokeAcl("west", BINDING, "east-west"),
)
UNWANTED: tuple[Step, ...] = (
    CreateTopic(OTHER),
    AddPartitions(OTHER, "id", 2),
    AlterConfig(TOPIC, "id", (ConfigChange("retention.ms", "1", "2", "target-change"),)),
    AlterConfig(TOPIC, "id", (ConfigChange("retention.ms", "1", "2", "missing"),)),
    GrantAcl("west", BINDING, "users"),
    RevokeAcl("west", BINDING, "users"),
    RecordOwnership(TOPIC, "id", "flow-renamed"),
)


def test_only_what_follows_the_flows_originals_is_left() -> None:
    plan = Plan("tests", "digest", (ClusterPlan("west", "dc1", (*UNWANTED, *WANTED)),))
    left = only_following(plan, "east-west", {})
    assert left.steps == WANTED
    assert (left.topology, left.digest) == ("tests", "digest")


def test_a_record_goes_on_saying_what_was_applied_last() -> None:
    grown = replace(TOPIC, settings=(TopicSetting("retention.ms", "2", "source"),))
    before = replace(
        TOPIC, settings=(TopicSetting("retention.ms", "1", "source"), TopicSetting("segment.ms", "3", "source"))
    )
    plan = Plan("tests", "digest", (ClusterPlan("west", "dc1", (CreateTopic(OTHER), AddPartitions(grown, "id", 2))),))
    (step,) = only_following(plan, "east-west", {TOPIC.name: before.owned("tests", "digest", "id")}).steps
    assert isinstance(step, AddPartitions)
    record = step.topic.owned("tests", "digest", "id")
    assert (record.configs, record.partitions) == ({"retention.ms": "1", "segment.ms": "3"}, 4)


def test_of_changes_those_that_follow_are_made_and_recorded() -> None:
    before = replace(
        TOPIC, settings=(TopicSetting("retention.ms", "1", "source"), TopicSetting("segment.ms", "3", "source"))
    )
    changes = (
        ConfigChange("retention.ms", "1", "2", "source-change"),
        ConfigChange("max.message.bytes", "9", "8", "target-change"),
        ConfigChange("segment.ms", "3", None, "obsolete"),
    )
    plan = Plan("tests", "digest", (ClusterPlan("west", "dc1", (AlterConfig(TOPIC, "id", changes),)),))
    (step,) = only_following(plan, "east-west", {TOPIC.name: before.owned("tests", "digest", "id")}).steps
    assert isinstance(step, AlterConfig)
    assert step.changes == (changes[0], changes[2])
    assert step.topic.owned("tests", "digest", "id").configs == {"retention.ms": "2"}
