"""Secured clusters: what ACLs refuse is named, parks its own topic, and goes on by itself once it is granted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.task import rounds
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.listener import Listener
from reconciler.wire import NotLetIn
from tests.support.clusters.kafka import allow, create, grant
from tests.support.replicator.copying import REMOTE, Running, at, code, fill, identical, log_end, spec_of
from tests.support.wire.wires import ask

USERS = {"admin": "admin-secret", "replicator": "replicator-secret", "stranger": "stranger-secret"}
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
SECONDS = 300.0


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with running(EmbeddedCluster("secured", ClusterOptions(users=USERS))) as (cluster,):
        yield cluster


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)
    monkeypatch.setenv("WRONG_PASSWORD", "hunter2")


def as_user(alias: str, broker: EmbeddedCluster, user: str, password: str | None = None) -> Cluster:
    security = Security("SASL_PLAINTEXT", "PLAIN", user, Reference("env", f"{password or user.upper()}_PASSWORD"))
    return Cluster(alias, tuple(broker.bootstrap.split(",")), security=security)


def allow_named(broker: EmbeddedCluster, user: str, kind: ResourceType, operation: AclOperation) -> None:
    """Allow `user` an operation on everything of a kind that has one of our names."""
    binding = AclBinding(
        kind, "anabranch.", ResourcePatternType.PREFIXED, f"User:{user}", "*", operation, AclPermissionType.ALLOW
    )
    grant(broker, [binding])


TOPICS = ("open", "no-read", "no-write", "no-read-there", "hidden")


def test_what_is_refused_is_named_and_goes_on_once_it_is_granted(secured: EmbeddedCluster) -> None:
    overseer = as_user("west", secured, "admin")
    for journal in (own("tests").status, own("tests").control, own("tests").copies):
        Journal(overseer, journal).ensure()
    for name in TOPICS:
        create(secured, name, 2)
        create(secured, f"east.{name}", 2, REMOTE)
        fill(secured, name, 100, 2)
    allow(secured, "replicator", [own("tests").status.name], WRITE)
    allow(secured, "replicator", [own("tests").control.name], READ)
    allow(secured, "replicator", [own("tests").copies.name], READ, WRITE)
    allow_named(secured, "replicator", ResourceType.TRANSACTIONAL_ID, WRITE)
    allow(secured, "replicator", [*TOPICS, *(f"east.{name}" for name in TOPICS if name != "hidden")], DESCRIBE)
    allow(secured, "replicator", ["open", "no-write", "no-read-there", "hidden"], READ)
    allow(secured, "replicator", ["east.open", "east.no-read", "east.no-write"], READ)
    allow(secured, "replicator", ["east.open", "east.no-read", "east.no-read-there"], WRITE)

    spec = spec_of(as_user("east", secured, "replicator"), as_user("west", secured, "replicator"), *TOPICS)
    expected = {
        "no-read": "READ on topic no-read is refused (TOPIC_AUTHORIZATION_FAILED)",
        "no-write": "WRITE on topic east.no-write is refused",
        "no-read-there": "READ on topic east.no-read-there is refused",
        "hidden": "DESCRIBE on topic east.hidden is refused",
    }

    def all_said(status: TaskStatus) -> bool:
        refused = all(code(at(status, name, n)) == "AB213" for name in expected for n in range(2))
        return refused and all(at(status, "open", n).position == 50 for n in range(2))

    def no_group(status: TaskStatus) -> bool:
        words = "READ on group anabranch.tests.east-west is refused (GROUP_AUTHORIZATION_FAILED)"
        return all(code(p) == "AB213" and words in str(p.reason) for p in status.partitions)

    with Running(spec, overseer=overseer) as copying:
        copying.wait(no_group)
        assert {log_end(overseer, f"east.{name}", n) for name in TOPICS for n in range(2)} == {0}
        allow_named(secured, "replicator", ResourceType.GROUP, READ)
        status = copying.wait(all_said)
        for name, words in expected.items():
            for partition in range(2):
                found = at(status, name, partition)
                assert found.state is PartitionState.PARKED
                assert words in str(found.reason)
                assert log_end(overseer, f"east.{name}", partition) == 0
        allow(secured, "replicator", ["no-read", "east.no-read-there", "east.hidden"], READ)
        allow(secured, "replicator", ["east.no-write", "east.hidden"], WRITE)
        copying.wait(lambda status: all(p.position == 50 and p.reason is None for p in status.partitions))
    assert identical(spec_of(as_user("east", secured, "admin"), overseer), *TOPICS) == 100 * len(TOPICS)


def test_a_wrong_password_is_said_and_never_the_password(secured: EmbeddedCluster) -> None:
    wrong = as_user("east", secured, "admin", "WRONG")
    with pytest.raises(NotLetIn, match=r"does not let user admin in: .*Authentication failed") as lost:
        ask(wrong, lambda wire: wire.topics(["open"]), timeout=1.5)
    with pytest.raises(EnvironmentFault, match="does not let user admin in") as caught:
        discovery.matching(spec_of(wrong, wrong, "open"))
    assert [problem.code for problem in caught.value.problems] == ["AB312"]
    assert not any("hunter2" in str(error.value) for error in (lost, caught))


def test_a_mechanism_that_the_cluster_does_not_have_is_said(secured: EmbeddedCluster) -> None:
    plain = as_user("east", secured, "admin")
    other = replace(plain, security=replace(plain.security, mechanism="SCRAM-SHA-256"))
    with pytest.raises(NotLetIn, match=r"does not let user admin in: UNSUPPORTED_SASL_MECHANISM") as lost:
        ask(other, lambda wire: wire.topics(["open"]), timeout=1.0)
    with pytest.raises(EnvironmentFault, match=r"does not let user admin in: .*SCRAM-SHA-256") as caught:
        discovery.matching(spec_of(other, other, "open"))
    assert [problem.code for problem in caught.value.problems] == ["AB312"]
    assert not any(USERS["admin"] in str(error.value) for error in (lost, caught))


def test_a_journal_that_may_not_be_read_is_no_empty_journal(secured: EmbeddedCluster) -> None:
    Journal(as_user("west", secured, "admin"), own("tests").control).ensure()
    stranger = as_user("west", secured, "stranger")
    with pytest.raises(EnvironmentFault) as caught:
        Journal(stranger, own("tests").control, timeout=5.0).read()
    assert not isinstance(caught.value, Unreachable)
    (problem,) = caught.value.problems
    assert problem.code == "AB311"
    assert own("tests").control.name in problem.where


def test_a_journal_that_may_be_described_but_not_read_is_refused(secured: EmbeddedCluster) -> None:
    overseer = as_user("west", secured, "admin")
    Journal(overseer, own("tests").control).ensure()
    Journal(overseer, own("tests").control).write("somebody", {"command": "none"})
    allow(secured, "stranger", [own("tests").control.name], DESCRIBE)
    with pytest.raises(EnvironmentFault) as caught:
        Journal(as_user("west", secured, "stranger"), own("tests").control, timeout=5.0).read()
    assert not isinstance(caught.value, Unreachable)
    assert [problem.code for problem in caught.value.problems] == ["AB311"]


def test_a_task_that_may_not_hear_commands_does_not_begin(secured: EmbeddedCluster) -> None:
    spec = spec_of(as_user("east", secured, "admin"), as_user("west", secured, "stranger"), "open")
    with pytest.raises(EnvironmentFault) as caught:
        rounds.run(spec, Assignment(0, 1, ()))
    assert own("tests").control.name in str(caught.value)


def test_a_journal_that_may_not_be_written_is_refused(secured: EmbeddedCluster) -> None:
    Journal(as_user("west", secured, "admin"), own("tests").status).ensure()
    with pytest.raises(EnvironmentFault) as caught:
        Journal(as_user("west", secured, "stranger"), own("tests").status, timeout=5.0).write("a", {})
    (problem,) = caught.value.problems
    assert problem.code == "AB311"
    assert "stranger-secret" not in str(problem)


def test_a_listener_needs_to_read(secured: EmbeddedCluster) -> None:
    Journal(as_user("west", secured, "admin"), own("tests").control).ensure()
    with pytest.raises(EnvironmentFault):
        Listener(as_user("west", secured, "stranger"), Seal("tests", "run", "east-west", new_key()))
