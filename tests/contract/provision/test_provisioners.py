"""What holds whoever carries a plan out: directly, with Pulumi, or with the stand-in for it that is always there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from reconciler.declare import load
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import Locked, Problem
from reconciler.model.planning.steps import AddPartitions, AlterConfig, GrantAcl, RecordOwnership, RevokeAcl, Step
from reconciler.state.declarations import Declarations
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import (
    ANSWER_SECONDS,
    ANY_ACL,
    admin,
    create,
    delete,
    grant,
    grow,
    partitions,
    set_config,
    topic_configs,
    topic_id,
)
from tests.support.provision.provisioning import TARGET, Way, make_way, plan_of, write
from tests.support.security.acls import revoke

WAYS = [
    "direct",
    pytest.param("stand-in", marks=pytest.mark.long),
    pytest.param("pulumi", marks=pytest.mark.pulumi),
]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Way:
    return make_way(request.param, tmp_path, monkeypatch)


def test_after_an_apply_the_plan_is_empty(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-plain", 4)
    create(source_cluster, f"{topic_name}-set", 2, {"retention.ms": "86400000", "cleanup.policy": "delete,compact"})
    topology = load((file,))
    reported: list[Step] = []

    outcome = way.apply(file, plan := plan_of(topology), reported.append)

    assert outcome.is_complete
    assert sorted(map(repr, outcome.done)) == sorted(map(repr, plan.steps)) == sorted(map(repr, reported))
    assert plan_of(topology).changes_nothing
    assert partitions(source_cluster, f"north.{topic_name}-plain") == 4
    found = topic_configs(source_cluster, f"north.{topic_name}-set")
    assert (found["retention.ms"], found["cleanup.policy"]) == ("86400000", "delete,compact")


def test_settings_that_brokers_spell_in_another_way_are_set_once(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 1)
    declared = "{min.cleanable.dirty.ratio: '0.50', preallocate: 'FALSE', segment.jitter.ms: '+7'}"
    file.write_text(file.read_text().replace("defaults:\n", f"defaults:\n  configs: {{set: {declared}}}\n"))
    assert way.apply(file).is_complete
    found = topic_configs(source_cluster, f"north.{topic_name}")
    written = (found["min.cleanable.dirty.ratio"], found["preallocate"], found["segment.jitter.ms"])
    assert written == ("0.5", "false", "7")
    assert plan_of(load((file,))).changes_nothing


def test_what_was_made_is_recorded_and_the_declaration_in_force(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    outcome = way.apply(file)

    topology = load((file,))
    record = Ownership(topology.clusters[TARGET], topology.name).read()[f"north.{topic_name}"]
    assert record.topic_id == topic_id(source_cluster, f"north.{topic_name}")
    assert (record.topology, record.digest, record.flow) == (topology.name, topology.digest, "north-south")
    assert record.configs == topic_configs(source_cluster, f"north.{topic_name}")
    assert outcome.in_force == [TARGET]
    declarations = Declarations(topology.clusters[TARGET], topology.name)
    in_force = declarations.current().in_force
    declarations.close()
    assert in_force is not None


def test_changes_at_both_sides_are_followed_and_nothing_else_is_touched(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 1, {"retention.ms": "1000000", "segment.bytes": "2097152"})
    remote = f"north.{topic_name}"
    way.apply(file)
    first = topic_id(source_cluster, remote)

    grow(source_cluster, topic_name, 3)
    set_config(source_cluster, topic_name, "retention.ms", "2000000")
    set_config(source_cluster, topic_name, "segment.bytes", None)
    set_config(source_cluster, remote, "compression.type", "gzip")
    set_config(source_cluster, remote, "flush.ms", "1000")
    topology = load((file,))
    plan = plan_of(topology)

    assert [type(step) for step in plan.steps] == [AddPartitions, AlterConfig]
    assert way.apply(file, plan).is_complete
    assert plan_of(topology).changes_nothing
    assert (partitions(source_cluster, remote), topic_id(source_cluster, remote)) == (3, first)
    found = topic_configs(source_cluster, remote)
    assert (found["compression.type"], found["retention.ms"], found["flush.ms"]) == ("producer", "2000000", "1000")
    assert "segment.bytes" not in found


def test_what_a_killed_apply_made_is_taken_over(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    way.apply(file)
    topology = load((file,))
    ownership = Ownership(topology.clusters[TARGET], topology.name)
    ownership.write([replace(ownership.read()[f"north.{topic_name}"], topic_id=None)])

    plan = plan_of(topology)
    assert [type(step) for step in plan.steps] == [RecordOwnership]
    assert way.apply(file, plan).is_complete
    assert ownership.read()[f"north.{topic_name}"].topic_id == topic_id(source_cluster, f"north.{topic_name}")


def test_what_somebody_deleted_is_made_again(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-a")
    create(source_cluster, f"{topic_name}-b")
    way.apply(file)
    delete(source_cluster, f"north.{topic_name}-a")
    kept = topic_id(source_cluster, f"north.{topic_name}-b")

    assert way.apply(file).is_complete
    assert plan_of(load((file,))).changes_nothing
    assert topic_id(source_cluster, f"north.{topic_name}-b") == kept


def test_a_topic_that_is_not_copied_any_more_stays(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-a")
    create(source_cluster, f"{topic_name}-b")
    way.apply(file)
    kept = topic_id(source_cluster, f"north.{topic_name}-b")
    file.write_text(file.read_text().replace(f"{topic_name}.*", f"{topic_name}-[ac]"))
    create(source_cluster, f"{topic_name}-c")

    assert way.apply(file).is_complete
    assert topic_id(source_cluster, f"north.{topic_name}-b") == kept
    assert partitions(source_cluster, f"north.{topic_name}-c") == 1


def test_nothing_is_changed_without_the_lock(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    gone = Locked(Problem("AB502", "south", "somebody else may have taken the lock", ""))

    def lost(alias: str) -> None:
        raise gone

    outcome = way.apply(file, may_change=lost)
    assert [one.step.name for one in outcome.skipped] == [f"north.{topic_name}"]
    assert (outcome.failed, outcome.in_force) == ([], [])
    client = admin(source_cluster)
    assert f"north.{topic_name}" not in client.list_topics(timeout=ANSWER_SECONDS).topics


USERS = {user: f"{user}-secret-word" for user in ("admin", "alice")}

SECURED = """\
version: 1
name: {name}
clusters:
  north:
    bootstrap: ["{source}"]
    datacenter: dc1
    security: {{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: admin, password: "env:ADMIN_PASSWORD"}}
  south:
    bootstrap: ["{target}"]
    datacenter: dc2
    security: {{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: admin, password: "env:ADMIN_PASSWORD"}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: north, to: south}}
"""


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


def may(topic: str, who: str, operation: AclOperation = AclOperation.READ, host: str = "*") -> AclBinding:
    pattern, kind = ResourcePatternType.LITERAL, ResourceType.TOPIC
    return AclBinding(kind, topic, pattern, f"User:{who}", host, operation, AclPermissionType.ALLOW)


def acls_of(broker: EmbeddedCluster, topic: str) -> set[tuple[str, str, str]]:
    client = admin(broker)
    found = client.describe_acls(ANY_ACL, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
    return {(one.principal, one.operation.name, one.host) for one in found if one.name == topic}


def test_acls_of_originals_are_followed_and_revoked_and_foreign_ones_stay(
    way: Way, secured: EmbeddedCluster, tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", USERS["admin"])
    file, remote = write(tmp_path, secured, secured, topic_name, SECURED), f"north.{topic_name}"
    create(secured, topic_name)
    configs = may(topic_name, "alice", AclOperation.DESCRIBE_CONFIGS)
    foreign = may(remote, "alice", host="10.0.0.1")
    grant(secured, [may(topic_name, "alice"), configs, foreign])

    topology = load((file,))
    plan = plan_of(topology)
    assert {type(step) for step in plan.steps} >= {GrantAcl}
    assert way.apply(file, plan).is_complete
    ours = {("User:alice", "READ", "*"), ("User:alice", "DESCRIBE_CONFIGS", "*")}
    theirs = {("User:alice", "READ", "10.0.0.1")}
    assert acls_of(secured, remote) == ours | theirs
    assert plan_of(topology).changes_nothing

    revoke(secured, configs)
    revoking = plan_of(topology)
    assert [type(step) for step in revoking.steps] == [RevokeAcl]
    assert way.apply(file, revoking).is_complete
    assert acls_of(secured, remote) == {("User:alice", "READ", "*")} | theirs
    assert plan_of(topology).changes_nothing
