"""Carrying deletions out on a real broker, when something has changed since the plan that nobody looked at again."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from confluent_kafka.admin import AclOperation

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Locked, Problem
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic
from reconciler.model.planning.steps import ClusterPlan, CreateTopic, Plan
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.tasks.status import TaskStatus
from reconciler.observe.topology import observe_owned
from reconciler.plan.removal.destroy import destroy_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.provision.removal import AT_ONCE
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from reconciler.state.status import StatusWriter
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import allow, create, declared, delete, names, topic_id
from tests.support.replicator.alive import alive

NORTH, SOUTH = "north", "south"


def topology(broker: EmbeddedCluster, prefix: str) -> Topology:
    flow = Flow(f"{prefix}-flow", NORTH, SOUTH, Selection((f"{prefix}.*",)))
    return Topology(prefix, {alias: declared(alias, broker) for alias in (NORTH, SOUTH)}, (flow,))


def owning(broker: EmbeddedCluster, one: Topology, *topics: str) -> list[str]:
    """Make copies, and records of them as an apply does."""
    for journal in own(one.name).all:
        Journal(declared(SOUTH, broker), journal).ensure()
    records = []
    for topic in topics:
        create(broker, f"{NORTH}.{topic}")
        ids = (topic_id(broker, f"{NORTH}.{topic}"), "id")
        records.append(
            OwnedTopic(
                f"{NORTH}.{topic}", ids[0], one.name, "", one.flows[0].name, NORTH, topic, ids[1], 1, "identical", {}
            )
        )
    Ownership(declared(SOUTH, broker), one.name).write(records)
    return [record.name for record in records]


def destroy_of(one: Topology) -> Plan:
    observed, unseen = observe_owned(one, [SOUTH])
    assert unseen == []
    plan = destroy_plan(one, observed, [SOUTH])
    return replace(plan, clusters=tuple(replace(cluster, declared=None) for cluster in plan.clusters))


def records(broker: EmbeddedCluster, one: Topology) -> set[str]:
    return set(Ownership(declared(SOUTH, broker), one.name).read())


def failures(outcome: Outcome) -> dict[str, str]:
    return {failure.step.name: failure.problem.code for failure in outcome.failed}


def test_what_was_made_anew_since_the_plan_stays_with_its_record(
    source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    one = topology(source_cluster, topic_name)
    a, b, c, d = owning(source_cluster, one, *(f"{topic_name}-{end}" for end in "abcd"))
    delete(source_cluster, d)
    plan = destroy_of(one)
    assert [type(step) for step in plan.steps] == [DeleteTopic, DeleteTopic, DeleteTopic, ForgetTopic]
    delete(source_cluster, a, b)
    create(source_cluster, a)
    create(source_cluster, d)

    outcome = DirectProvisioner(one).apply(plan)
    # b is gone as it should be, whoever did it.
    assert failures(outcome) == {a: "AB315", d: "AB315"}
    assert [step.name for step in outcome.done] == [b, c]
    assert {a, b, c, d} & names(source_cluster) == {a, d}
    assert {a, b, c, d} & records(source_cluster, one) == {a, d}


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -3600.0])
def test_who_begins_to_copy_since_the_plan_keeps_its_topics(
    source_cluster: EmbeddedCluster, topic_name: str, ahead: float
) -> None:
    one = topology(source_cluster, topic_name)
    (copy,) = owning(source_cluster, one, topic_name)
    plan = destroy_of(one)
    writer = StatusWriter(declared(SOUTH, source_cluster), one.name)
    word = TaskStatus(one.flows[0].name, NORTH, SOUTH, "a-run", 0, 1, time.time(), False, None, 0, 0, 0.0, 0.0, ())
    with alive(writer, word, ahead):
        outcome = DirectProvisioner(one).apply(plan)
    assert failures(outcome) == {copy: "AB421"}
    assert copy in names(source_cluster) & records(source_cluster, one)
    # One that waits, one whose last word it was, and those that have died copy nothing.
    writer.post_last(replace(word, tasks=0, waiting="until its declaration is in force"))
    writer.post_last(replace(word, run="ended", stopped=True))
    writer.post_last(replace(word, run="died", time=time.time() + ahead))
    outcome = DirectProvisioner(one).apply(plan)
    assert (outcome.is_complete, copy in names(source_cluster) | records(source_cluster, one)) == (True, False)


def test_a_process_that_only_fails_now_may_copy_in_a_minute(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    one = topology(source_cluster, topic_name)
    (copy,) = owning(source_cluster, one, topic_name)
    word = TaskStatus.of_process(one.flows[0], "a-run", "", failing="Spark ended")
    with alive(StatusWriter(declared(SOUTH, source_cluster), one.name), word):
        assert failures(DirectProvisioner(one).apply(destroy_of(one))) == {copy: "AB421"}


def test_behind_a_failure_nothing_is_deleted(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    one = topology(source_cluster, topic_name)
    (copy,) = owning(source_cluster, one, topic_name)
    create(source_cluster, f"{copy}-foreign")
    new = DesiredTopic(SOUTH, f"{copy}-foreign", one.flows[0].name, NORTH, "x", "id", 1, 1, "identical", ())
    (part,) = destroy_of(one).clusters
    plan = Plan(one.name, one.digest, (replace(part, steps=(*part.steps, CreateTopic(new))),))
    outcome = DirectProvisioner(one).apply(plan)
    assert failures(outcome) == {new.name: "AB315"}
    assert [skipped.step.name for skipped in outcome.skipped] == [copy]
    assert copy in names(source_cluster) & records(source_cluster, one)


def test_without_the_lock_nothing_more_is_deleted(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    one = topology(source_cluster, topic_name)
    topics = [f"{topic_name}-{number:03}" for number in range(AT_ONCE + 2)]
    copies = owning(source_cluster, one, *topics)
    asked: list[str] = []

    def lost_later(alias: str) -> None:
        asked.append(alias)
        # Asked before what is made, before what is changed, and before each portion of what is deleted.
        if len(asked) > 3:
            raise Locked(Problem("AB502", alias, "the lock is lost", ""))

    outcome = DirectProvisioner(one, may_change=lost_later).apply(destroy_of(one))
    assert (len(outcome.done), {skipped.why for skipped in outcome.skipped}) == (AT_ONCE, {"the lock is lost"})
    left = set(copies[AT_ONCE:])
    assert set(copies) & names(source_cluster) == set(copies) & records(source_cluster, one) == left
    assert DirectProvisioner(one).apply(destroy_of(one)).is_complete


def test_what_may_not_be_deleted_or_seen_stays_on_record(
    make_clusters: MakeClusters, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = {"admin": "admin-secret", "alice": "alice-secret"}
    (secured,) = make_clusters("secured", options=ClusterOptions(users=users))
    monkeypatch.setenv("ALICE_PASSWORD", users["alice"])
    monkeypatch.setenv("ADMIN_PASSWORD", users["admin"])

    def seen_by(user: str) -> Topology:
        security = Security("SASL_PLAINTEXT", "PLAIN", user, Reference("env", f"{user.upper()}_PASSWORD"))
        target = Cluster(SOUTH, tuple(secured.bootstrap.split(",")), security=security)
        one = topology(secured, topic_name)
        return replace(one, clusters={NORTH: target, SOUTH: target})

    chief, one = seen_by("admin"), seen_by("alice")
    for journal in own(one.name).all:
        Journal(chief.clusters[SOUTH], journal).ensure()
    copy = f"{NORTH}.{topic_name}"
    create(secured, copy)
    record = OwnedTopic(
        copy, topic_id(secured, copy), one.name, "", one.flows[0].name, NORTH, topic_name, "id", 1, "identical", {}
    )
    Ownership(chief.clusters[SOUTH], one.name).write([record])
    allow(secured, "alice", own(one.name).names, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS)
    # Hidden from us it must not look as if it were gone.
    with pytest.raises(EnvironmentFault, match="AB313"):
        observe_owned(one, [SOUTH])
    plan = destroy_of(chief)
    forget = ForgetTopic(SOUTH, copy, one.flows[0].name, NORTH, topic_name)
    blind = replace(plan, clusters=(ClusterPlan(SOUTH, "dc1", (forget,)),))
    assert failures(DirectProvisioner(one).apply(blind)) == {copy: "AB313"}
    allow(secured, "alice", [copy], AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    outcome = DirectProvisioner(one).apply(destroy_of(one))
    assert failures(outcome) == {copy: "AB313"}
    assert outcome.failed[0].problem.message == f"user alice is not allowed DELETE on topic {copy}"
    assert set(Ownership(chief.clusters[SOUTH], one.name).read()) == {copy}
    allow(secured, "alice", [copy], AclOperation.DELETE)
    assert DirectProvisioner(one).apply(destroy_of(one)).is_complete
    assert Ownership(chief.clusters[SOUTH], one.name).read() == {}
