"""ACLs of originals on a real broker: granted to copies, revoked again, and never anybody else's touched.

Both sides are one cluster; names keep them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.acls.binding import Binding, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.planning.steps import GrantAcl, Plan, RevokeAcl
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.observe.connection import Connection
from reconciler.observe.topology import observe, observe_owned
from reconciler.operate.flows.following import growing
from reconciler.plan.acls.requirements import needed_acls
from reconciler.plan.build import build_plan
from reconciler.plan.findings.drift import drift_of
from reconciler.plan.removal.prune import cleared
from reconciler.provision.direct import DirectProvisioner
from reconciler.provision.grants import Grants
from reconciler.state.confluent import bindings
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import ANSWER_SECONDS, admin, create, declared, grant
from tests.support.security.acls import as_user, give
from tests.support.waiting import eventually

SOURCE, TARGET = "north", "south"
USERS = {user: f"{user}-secret" for user in ("admin", "alice", "weak")}


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)


def topology(broker: EmbeddedCluster, name: str, user: str = "admin", **fields: object) -> Topology:
    flow = replace(Flow("north-south", SOURCE, TARGET, Selection((f"{name}.*",))), **fields)  # type: ignore[arg-type]
    return Topology(name, {alias: as_user(alias, broker, user) for alias in (SOURCE, TARGET)}, (flow,))


def plan_of(one: Topology) -> Plan:
    return build_plan(one, observe(one, [TARGET]), [TARGET])


def apply(one: Topology) -> None:
    outcome = DirectProvisioner(one).apply(plan_of(one))
    assert outcome.is_complete, outcome
    assert plan_of(one).changes_nothing


def kafka_acl(name: str, operation: AclOperation = AclOperation.READ, **changes: object) -> AclBinding:
    parts: dict[str, object] = {
        "restype": ResourceType.TOPIC,
        "name": name,
        "resource_pattern_type": ResourcePatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": AclPermissionType.ALLOW,
    }
    return AclBinding(**(parts | changes))


def on(broker: EmbeddedCluster, start: str) -> list[str]:
    """All ACLs on topics whose pattern begins so, in words."""
    client = admin(broker)
    found = client.describe_acls(bindings.EVERY, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
    known = [one for one in map(bindings.from_kafka, found) if one is not None]
    return sorted(str(one) for one in known if one.pattern.name.startswith(start))


def remove(broker: EmbeddedCluster, *gone: AclBinding) -> None:
    client = admin(broker)
    known = [one for one in map(bindings.from_kafka, gone) if one is not None]
    for future in client.delete_acls([bindings.exactly(one) for one in known]).values():
        assert len(future.result(ANSWER_SECONDS)) == 1
    eventually(
        "the bindings are gone", lambda: {str(one) for one in known} & set(on(broker, "")), lambda left: not left
    )


def may_read(broker: EmbeddedCluster, topic: str) -> bool:
    """Whether alice is let in to a topic."""
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": USERS["alice"],
            "group.id": "none",
            "log_level": "2",
        }
    )
    try:
        return client.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].error is None
    except KafkaException:
        return False
    finally:
        client.close()


def words(*found: str, denied: Sequence[str] = ()) -> list[str]:
    return sorted([*(f"User:alice {one}" for one in found), *(f"DENY User:alice {one}" for one in denied)])


def test_readers_of_originals_may_read_copies_until_they_may_no_more(secured: EmbeddedCluster, topic_name: str) -> None:
    one, two = f"{topic_name}-one", f"{topic_name}-two"
    for topic in (one, two):
        create(secured, topic, 1)
    literal, prefix = kafka_acl(one), kafka_acl(topic_name[:-1], resource_pattern_type=ResourcePatternType.PREFIXED)
    denied = kafka_acl(two, AclOperation.ALL, permission_type=AclPermissionType.DENY, host="10.1.2.3")
    grant(secured, [literal, prefix, denied, kafka_acl(one, AclOperation.WRITE)])
    one_way = topology(secured, topic_name)

    apply(one_way)

    copy, other = f"on topic north.{one}", f"on topic north.{two}"
    barred = [f"{what} on topic north.{two}, from 10.1.2.3" for what in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")]
    assert on(secured, f"north.{topic_name[:-1]}") == words(f"READ {copy}", f"READ {other}", denied=barred)
    assert may_read(secured, f"north.{one}")

    theirs = kafka_acl(f"north.{one}", AclOperation.DESCRIBE_CONFIGS)
    grant(secured, [theirs])
    remove(secured, literal, prefix)
    plan = plan_of(one_way)
    assert [type(step) for step in plan.steps] == [RevokeAcl, RevokeAcl]
    assert (plan.to_add, plan.to_delete) == (0, 2)
    apply(one_way)
    assert on(secured, f"north.{topic_name[:-1]}") == words(f"DESCRIBE_CONFIGS {copy}", denied=barred)
    assert not may_read(secured, f"north.{one}")
    assert {str(record.binding) for record in _records(one_way)} == set(words(denied=barred))


def _records(one: Topology) -> Sequence[OwnedBinding]:
    acls = Ownership(one.clusters[TARGET], one.name).read_all().acls
    return [record for record in acls if record.topology == one.name]


def test_another_policy_gives_each_copy_its_own(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, f"{topic_name}-one", 1)
    grant(secured, [kafka_acl(topic_name[:-1], resource_pattern_type=ResourcePatternType.PREFIXED)])
    renamed = ReplicationPolicy("rename", rules=(RenameRule(f"^{topic_name}-(.*)$", f"copy-{topic_name}-\\1"),))
    apply(topology(secured, topic_name, policy=renamed))
    assert on(secured, f"copy-{topic_name}") == words(f"READ on topic copy-{topic_name}-one")


def test_what_another_topology_granted_too_stays(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name, 1)
    original = kafka_acl(topic_name)
    grant(secured, [original])
    one_way = topology(secured, topic_name)
    apply(one_way)
    (record,) = _records(one_way)
    Journal(one_way.clusters[TARGET], own(f"x{topic_name}").owned).ensure()
    another = Ownership(one_way.clusters[TARGET], f"x{topic_name}")
    another.write_bindings([replace(record, topology=f"x{topic_name}")])
    remove(secured, original)
    (step,) = plan_of(one_way).steps
    assert isinstance(step, RevokeAcl)
    assert step.is_kept
    apply(one_way)
    assert on(secured, f"north.{topic_name}") == words(f"READ on topic north.{topic_name}")
    assert _records(one_way) == []


def test_an_apply_that_was_killed_before_it_granted_is_gone_on_with(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name, 1)
    one_way = topology(secured, topic_name)
    apply(one_way)
    grant(secured, [kafka_acl(topic_name)])
    meant = Binding("topic", ResourcePattern(f"north.{topic_name}"), "User:alice", "READ")
    Ownership(one_way.clusters[TARGET], topic_name).write_bindings([OwnedBinding(meant, topic_name, "north-south")])
    (step,) = plan_of(one_way).steps
    assert step == GrantAcl(TARGET, meant, "north-south")
    apply(one_way)
    assert on(secured, f"north.{topic_name}") == words(f"READ on topic north.{topic_name}")


def test_drift_tells_and_apply_mends_what_somebody_took_away(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name, 1)
    grant(secured, [kafka_acl(topic_name)])
    one_way = topology(secured, topic_name)
    apply(one_way)
    copy = f"north.{topic_name}"
    remove(secured, kafka_acl(copy))
    grant(secured, [kafka_acl(copy, AclOperation.WRITE)])

    observed, unseen = observe_owned(one_way, [TARGET])
    found = [(one.kind, one.topic, one.field, one.desired, one.found) for one in drift_of(one_way, observed)]
    assert (found, unseen) == (
        [
            ("missing", copy, "acl", f"User:alice READ on topic {copy}", None),
            ("unmanaged", copy, "acl", None, f"User:alice WRITE on topic {copy}"),
        ],
        [],
    )
    apply(one_way)
    assert on(secured, copy) == words(f"READ on topic {copy}", f"WRITE on topic {copy}")
    # What others granted goes where somebody allows it.
    seen = observe(one_way, [TARGET])
    clean = cleared(build_plan(one_way, seen, [TARGET]), one_way, seen)
    assert DirectProvisioner(one_way).apply(clean).is_complete
    assert on(secured, copy) == words(f"READ on topic {copy}")


def test_the_loop_follows_what_is_granted_and_revoked(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name, 1)
    one_way = topology(secured, topic_name)
    apply(one_way)
    follow = growing(one_way)
    original = kafka_acl(topic_name)
    grant(secured, [original])
    assert [type(step) for step in follow("north-south").outcome.done] == [GrantAcl]
    assert on(secured, f"north.{topic_name}") == words(f"READ on topic north.{topic_name}")
    remove(secured, original)
    assert [type(step) for step in follow("north-south").outcome.done] == [RevokeAcl]
    assert on(secured, f"north.{topic_name}") == []


def test_who_may_not_see_or_change_acls_is_told_and_revokes_nothing(secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name, 1)
    original = kafka_acl(topic_name)
    grant(secured, [original])
    apply(topology(secured, topic_name))
    weak = topology(secured, topic_name, "weak")
    give(secured, "weak", [acl for acl in needed_acls(weak, weak.flows) if not acl.is_optional])
    remove(secured, original)
    plan = plan_of(weak)
    assert plan.steps == ()
    (warned,) = [notice.message for notice in plan.clusters[0].warnings]
    assert "user weak is not allowed DESCRIBE on cluster north: grant it, or declare `acls: false`" in warned
    assert plan_of(topology(secured, topic_name, "weak", acls=False)).clusters[0].warnings == ()

    cluster = kafka_acl("kafka-cluster", AclOperation.DESCRIBE, restype=ResourceType.BROKER, principal="User:weak")
    grant(secured, [cluster, original, kafka_acl(topic_name, AclOperation.DESCRIBE_CONFIGS)])
    plan = plan_of(weak)
    (warned,) = [notice.message for notice in plan.clusters[0].warnings]
    assert (plan.steps, "user weak is not allowed ALTER on cluster south" in warned) == ((), True)


def test_what_cannot_be_granted_is_told(
    secured: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    meant = Binding("topic", ResourcePattern(topic_name), "User:alice", "READ")
    weak = topology(secured, topic_name, "weak")
    give(secured, "weak", [acl for acl in needed_acls(weak, weak.flows) if not acl.is_optional])
    for there in (declared(TARGET, target_cluster), topology(secured, topic_name).clusters[TARGET]):
        Journal(there, own(topic_name).owned).ensure()
    for cluster, code, words in (
        (weak.clusters[TARGET], "AB313", "user weak is not allowed alter on the cluster"),
        (declared(TARGET, target_cluster), "AB314", "no authorizer"),
    ):
        outcome = Grants(cluster, weak.name).change([GrantAcl(TARGET, meant, "north-south")])
        (failure,) = outcome.failed
        assert (failure.problem.code, words in failure.problem.message.lower()) == (code, True), failure
        assert outcome.done == []


def test_a_cluster_without_an_authorizer_is_known_as_such(target_cluster: EmbeddedCluster) -> None:
    assert Connection(declared(TARGET, target_cluster)).bindings() == ("off", frozenset())
