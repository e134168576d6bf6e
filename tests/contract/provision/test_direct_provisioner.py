"""Carrying plans out on a real broker: a plan after an apply is empty, and the next apply finishes a killed one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import Refused
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import state_names
from reconciler.model.names.selection import Selection
from reconciler.model.planning.desired import TopicSetting
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.steps import AddPartitions, AlterConfig, CreateTopic, Plan, RecordOwnership, Step
from reconciler.observe.topology import observe
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.state.ownership import Ownership
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import (
    allow,
    create,
    declared,
    delete,
    grow,
    partitions,
    set_config,
    topic_configs,
    topic_id,
)

SOURCE, TARGET = "north", "south"
NO_BOUND = str(2**63 - 1)


def topology(broker: EmbeddedCluster, prefix: str, **fields: object) -> Topology:
    """A flow from a broker to itself: remote topics have the prefix `north.`."""
    flow = replace(Flow("north-south", SOURCE, TARGET, Selection((f"{prefix}.*",))), **fields)  # type: ignore[arg-type]
    clusters = {SOURCE: declared(SOURCE, broker), TARGET: declared(TARGET, broker)}
    return Topology(prefix, clusters, (flow,))


def plan_of(one: Topology) -> Plan:
    return build_plan(one, observe(one, [TARGET]), [TARGET])


def carry_out(one: Topology, plan: Plan | None = None) -> Outcome:
    return DirectProvisioner(one).apply(plan or plan_of(one))


def steps(plan: Plan) -> list[type]:
    return [type(step) for step in plan.steps]


def test_after_an_apply_the_plan_is_empty(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, f"{topic_name}-plain", 4)
    create(source_cluster, f"{topic_name}-set", 2, {"retention.ms": "86400000", "max.message.bytes": "2000000"})
    create(source_cluster, f"{topic_name}-both", 1, {"cleanup.policy": "delete,compact", "compression.type": "gzip"})
    one = topology(source_cluster, topic_name)
    reported: list[Step] = []

    outcome = DirectProvisioner(one, reported.append).apply(plan := plan_of(one))

    assert outcome.is_complete
    assert sorted(map(repr, outcome.done)) == sorted(map(repr, plan.steps)) == sorted(map(repr, reported))
    assert plan_of(one).is_empty
    assert carry_out(one).done == []
    assert partitions(source_cluster, f"north.{topic_name}-plain") == 4
    assert topic_configs(source_cluster, f"north.{topic_name}-set") == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": "2000000",
        "message.timestamp.after.max.ms": NO_BOUND,
        "message.timestamp.before.max.ms": NO_BOUND,
        "message.timestamp.type": "CreateTime",
        "retention.bytes": "-1",
        "retention.ms": "86400000",
        "unclean.leader.election.enable": "false",
    }


def test_what_was_made_is_recorded(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name, 2)
    one = topology(source_cluster, topic_name)
    carry_out(one)

    record = Ownership(one.clusters[TARGET], one.name).read()[f"north.{topic_name}"]
    assert record.topic_id == topic_id(source_cluster, f"north.{topic_name}")
    assert (record.topology, record.digest, record.flow) == (topic_name, one.digest, "north-south")
    assert (record.source, record.source_topic) == (SOURCE, topic_name)
    assert record.source_topic_id == topic_id(source_cluster, topic_name)
    assert (record.partitions, record.offsets) == (2, "identical")
    assert record.configs == topic_configs(source_cluster, f"north.{topic_name}")


def test_brokers_that_have_not_heard_of_a_new_topic_yet_are_asked_again(
    source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name, 2)
    plan = plan_of(one := topology(source_cluster, topic_name))
    whole = AdminClient.describe_topics
    asked: list[int] = []

    def described(self: AdminClient, topics: Any, **options: Any) -> Any:
        names = [f"{name}-unheard" if len(asked) < 2 else name for name in topics.topic_names]
        asked.append(len(names))
        answers = whole(self, TopicCollection(names), **options)
        return {name.removesuffix("-unheard"): future for name, future in answers.items()}

    monkeypatch.setattr(AdminClient, "describe_topics", described)
    outcome = carry_out(one, plan)
    # Twice in vain, then for its id, then for what we may do with it.
    assert (outcome.is_complete, asked) == (True, [1, 1, 1, 1])


def test_changes_at_both_sides_are_followed_and_nothing_else_is_touched(
    source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 1, {"retention.ms": "1000000", "segment.bytes": "2097152"})
    remote = f"north.{topic_name}"
    one = topology(source_cluster, topic_name)
    carry_out(one)

    grow(source_cluster, topic_name, 3)
    set_config(source_cluster, topic_name, "retention.ms", "2000000")
    set_config(source_cluster, topic_name, "segment.bytes", None)
    set_config(source_cluster, remote, "compression.type", "gzip")
    set_config(source_cluster, remote, "flush.ms", "1000")
    plan = plan_of(one)

    assert steps(plan) == [AddPartitions, AlterConfig]
    alter = plan.steps[1]
    assert isinstance(alter, AlterConfig)
    assert [(change.key, change.old, change.new, change.reason) for change in alter.changes] == [
        ("compression.type", "gzip", "producer", "target-change"),
        ("retention.ms", "1000000", "2000000", "source-change"),
        ("segment.bytes", "2097152", None, "obsolete"),
    ]
    assert carry_out(one, plan).is_complete
    assert plan_of(one).is_empty
    assert partitions(source_cluster, remote) == 3
    found = topic_configs(source_cluster, remote)
    assert (found["compression.type"], found["retention.ms"], found["flush.ms"]) == ("producer", "2000000", "1000")
    assert "segment.bytes" not in found


def test_one_bad_topic_stops_no_other(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    for end in ("a", "b", "c"):
        create(source_cluster, f"{topic_name}-{end}")
    one = topology(source_cluster, topic_name)
    plan = plan_of(one)
    (part,) = plan.clusters
    creations = [step for step in part.steps if isinstance(step, CreateTopic)]
    bad = replace(creations[1].topic, settings=(TopicSetting("retention.ms", "-5", "source"),))
    edited = (*(step for step in part.steps if step is not creations[1]), CreateTopic(bad))

    outcome = carry_out(one, replace(plan, clusters=(replace(part, steps=edited),)))

    (failure,) = outcome.failed
    assert failure.step.name == f"north.{topic_name}-b"
    assert (failure.problem.code, "Invalid value -5" in failure.problem.message) == ("AB314", True)
    assert (outcome.is_complete, outcome.in_force) == (False, [TARGET]), "runs go on with the others"
    assert [step.name for step in plan_of(one).steps] == [f"north.{topic_name}-b"]
    assert carry_out(one).is_complete
    assert plan_of(one).is_empty


def test_a_topic_that_somebody_made_since_the_plan_is_not_taken_over(
    source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    one = topology(source_cluster, topic_name)
    plan = plan_of(one)
    create(source_cluster, f"north.{topic_name}", configs={"retention.ms": "77"})

    (failure,) = carry_out(one, plan).failed
    assert failure.problem.code == "AB315"
    with pytest.raises(Refused, match="AB401"):
        plan_of(one)
    assert topic_configs(source_cluster, f"north.{topic_name}") == {"retention.ms": "77"}


def test_an_apply_killed_before_it_made_the_topic(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    one = topology(source_cluster, topic_name)
    carry_out(one)
    meant_again(one, f"north.{topic_name}")
    delete(source_cluster, f"north.{topic_name}")

    assert steps(plan_of(one)) == [CreateTopic]
    assert carry_out(one).is_complete
    assert plan_of(one).is_empty


def test_an_apply_killed_before_it_recorded_the_topic(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    one = topology(source_cluster, topic_name)
    carry_out(one)
    meant_again(one, f"north.{topic_name}")

    assert steps(plan_of(one)) == [RecordOwnership]
    assert carry_out(one).is_complete
    assert plan_of(one).is_empty
    record = Ownership(one.clusters[TARGET], one.name).read()[f"north.{topic_name}"]
    assert record.topic_id == topic_id(source_cluster, f"north.{topic_name}")


def meant_again(one: Topology, remote: str) -> None:
    """Leave the record that stands before a topic's creation is confirmed."""
    ownership = Ownership(one.clusters[TARGET], one.name)
    ownership.write([replace(ownership.read()[remote], topic_id=None)])


def test_a_refused_acl_fails_its_step_and_is_named(
    make_clusters: MakeClusters, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = {"admin": "admin-secret", "alice": "alice-secret"}
    (secured,) = make_clusters("secured", options=ClusterOptions(users=users))
    create(source_cluster, topic_name)
    monkeypatch.setenv("ADMIN_PASSWORD", users["admin"])
    monkeypatch.setenv("ALICE_PASSWORD", users["alice"])

    def into_secured(user: str) -> Topology:
        security = Security("SASL_PLAINTEXT", "PLAIN", user, Reference("env", f"{user.upper()}_PASSWORD"))
        target = Cluster(TARGET, tuple(secured.bootstrap.split(",")), security=security)
        one = topology(source_cluster, topic_name)
        return replace(one, clusters={**one.clusters, TARGET: target})

    plan = plan_of(into_secured("admin"))
    outcome = carry_out(into_secured("alice"), plan)
    assert outcome.done == []
    assert [step.name for step in (skipped.step for skipped in outcome.skipped)] == [f"north.{topic_name}"]
    assert {failure.problem.where.partition(",")[0] for failure in outcome.failed} == {
        f"cluster {TARGET} ({secured.bootstrap})"
    }

    # The topics of our own state are there and may be written; the remote topic is still to be made.
    (part,) = plan.clusters
    carry_out(into_secured("admin"), replace(plan, clusters=(replace(part, steps=part.steps[:-1]),)))
    allow(secured, "alice", state_names(plan.topology).journals, AclOperation.WRITE, AclOperation.DESCRIBE)
    outcome = carry_out(into_secured("alice"), plan)
    (failure,) = outcome.failed
    assert (failure.problem.code, failure.step.name) == ("AB313", f"north.{topic_name}")
    assert failure.problem.message == f"user alice is not allowed CREATE on topic north.{topic_name}"
