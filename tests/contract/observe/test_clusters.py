"""Observing a real broker: what is seen, and how failures are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AclOperation

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Unreachable
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import state_names
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import (
    EFFECTIVE_KEYS,
    OLD_TIMESTAMP_KEYS,
    PASSAGE_KEYS,
    TIMESTAMP_KEYS,
    ObservedCluster,
)
from reconciler.observe.topology import observe
from tests.support.clusters.consumers import leave_behind
from tests.support.clusters.kafka import allow, create, declared, topic_id

SOURCE, TARGET = "north", "south"
USERS = {"admin": "admin-secret", "alice": "alice-secret"}


def topology(source: Cluster, target: Cluster, *include: str) -> Topology:
    flow = Flow("north-south", SOURCE, TARGET, Selection(include))
    return Topology("observed", {SOURCE: source, TARGET: target}, (flow,))


def both(broker: EmbeddedCluster, *include: str) -> dict[str, ObservedCluster]:
    one = topology(declared(SOURCE, broker), declared(TARGET, broker), *include)
    return observe(one, [TARGET])


def unused(alias: str = SOURCE) -> Cluster:
    return Cluster(alias, ("127.0.0.1:1",))


def test_topics_are_seen_with_what_is_set_on_them_alone(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name, 3, {"retention.ms": "7000", "cleanup.policy": "compact,delete"})

    seen = both(source_cluster, topic_name)[SOURCE]
    assert (seen.cluster_id, seen.brokers) == (source_cluster.cluster_id, 1)
    assert topic_name in seen.names
    assert list(seen.topics) == [topic_name]
    topic = seen.topics[topic_name]
    assert topic.topic_id == topic_id(source_cluster, topic_name)
    assert (topic.partitions, topic.replication_factor) == (3, 1)
    assert topic.configs == {"retention.ms": "7000", "cleanup.policy": "compact,delete"}
    assert set(topic.effective) == {*EFFECTIVE_KEYS, *PASSAGE_KEYS} - set(OLD_TIMESTAMP_KEYS)
    assert (topic.effective["retention.ms"], topic.effective["max.message.bytes"]) == ("7000", "1048588")


def test_what_the_brokers_know_is_seen(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    seen = both(source_cluster, topic_name)[SOURCE]
    assert seen.timestamp_keys == TIMESTAMP_KEYS
    assert seen.knows_key("segment.bytes")
    assert not seen.knows_key("message.format.version")


def test_only_topics_that_flows_touch_are_asked_about(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    names = [f"{topic_name}-a", f"{topic_name}-b", f"north.{topic_name}-a", f"north.{topic_name}-c"]
    for name in names:
        create(source_cluster, name)
    seen = both(source_cluster, f"{topic_name}-a")
    assert list(seen[SOURCE].topics) == [f"{topic_name}-a"]
    # Other tests' remote topics may be there too, and are asked about where records say that they are ours.
    assert [name for name in seen[TARGET].topics if topic_name in name] == [f"north.{topic_name}-a"]
    assert seen[TARGET].names.issuperset(names)


def test_a_literal_topic_that_does_not_exist_is_simply_not_there(
    source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    seen = both(source_cluster, topic_name)
    assert topic_name not in seen[SOURCE].names | seen[SOURCE].topics.keys()


def test_groups_are_listed_where_a_flow_names_some(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    leave_behind(source_cluster, f"team+app-{topic_name}", {(topic_name, 0): 0})
    one = topology(declared(SOURCE, source_cluster), declared(TARGET, source_cluster), topic_name)

    def seen(*include: str) -> frozenset[str] | None:
        flows = (replace(one.flows[0], groups=GroupRules(include)),)
        return observe(replace(one, flows=flows), [TARGET])[SOURCE].groups

    groups = seen("biling")
    assert groups is not None and f"team+app-{topic_name}" in groups
    assert (seen(), seen(".*")) == (None, None), "nobody asks where nothing is said of them"


def test_the_json_form_comes_back_the_same(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name, configs={"retention.ms": "7000"})
    for cluster in both(source_cluster, topic_name).values():
        assert ObservedCluster.from_json(cluster.to_json()) == cluster


def test_every_cluster_that_does_not_answer_is_named_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    clusters = {
        "a": Cluster("a", ("127.0.0.1:1",)),
        "b": Cluster("b", ("no-such-host.invalid:9092",)),
    }
    with pytest.raises(Unreachable) as raised:
        observe(Topology("t", clusters, (Flow("a-b", "a", "b", Selection((".*",))),)), ["b"])
    first, second = raised.value.problems
    assert (first.code, first.where) == ("AB310", "cluster a (127.0.0.1:1)")
    assert "127.0.0.1:1: Connection refused" in first.message
    assert (second.code, second.where) == ("AB310", "cluster b (no-such-host.invalid:9092)")
    assert "resolve" in second.message
    assert raised.value.exit_code == 6
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture
def as_user(secured: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The secured cluster as alice declares it."""
    monkeypatch.setenv("ALICE_PASSWORD", USERS["alice"])
    security = Security("SASL_PLAINTEXT", "PLAIN", "alice", Reference("env", "ALICE_PASSWORD"))
    yield Cluster(SOURCE, tuple(secured.bootstrap.split(",")), security=security)


def faults(source: Cluster, target: Cluster, *include: str) -> AnabranchError:
    with pytest.raises(EnvironmentFault) as raised:
        observe(topology(source, target, *include), [TARGET])
    return raised.value


def test_a_wrong_password_is_told_apart_and_never_printed(
    as_user: Cluster,
    source_cluster: EmbeddedCluster,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ALICE_PASSWORD", "wrong-secret")
    fault = faults(as_user, declared(TARGET, source_cluster), "orders")
    (problem,) = fault.problems
    assert (problem.code, problem.where, fault.exit_code) == ("AB312", as_user.where, 1)
    assert "user alice" in problem.message
    assert "wrong-secret" not in str(fault) + "".join(capfd.readouterr())


def test_a_cluster_that_wants_passwords_is_told_apart(as_user: Cluster, source_cluster: EmbeddedCluster) -> None:
    fault = faults(Cluster(SOURCE, as_user.bootstrap), declared(TARGET, source_cluster), "orders")
    assert "is this no PLAINTEXT listener?" in fault.problems[0].message


def test_a_missing_acl_is_named_with_user_operation_and_topic(
    as_user: Cluster, secured: EmbeddedCluster, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(secured, topic_name)
    (problem,) = faults(as_user, declared(TARGET, source_cluster), topic_name).problems
    assert (problem.code, problem.where) == ("AB313", as_user.where)
    assert problem.message == f"user alice is not allowed DESCRIBE on topic {topic_name}"

    allow(secured, "alice", [topic_name], AclOperation.DESCRIBE)
    (problem,) = faults(as_user, declared(TARGET, source_cluster), topic_name).problems
    assert problem.message == f"user alice is not allowed DESCRIBE_CONFIGS on topic {topic_name}"

    allow(secured, "alice", [topic_name], AclOperation.DESCRIBE_CONFIGS)
    seen = observe(topology(as_user, declared(TARGET, source_cluster), topic_name), [TARGET])
    assert list(seen[SOURCE].topics) == [topic_name]


def test_ownership_records_that_are_hidden_are_not_taken_for_none(
    as_user: Cluster, secured: EmbeddedCluster, source_cluster: EmbeddedCluster
) -> None:
    problems = faults(declared(SOURCE, source_cluster), replace(as_user, alias=TARGET), "orders").problems
    journals = state_names("observed").journals
    assert [problem.code for problem in problems] == ["AB313"] * len(journals)
    assert problems[0].message == f"user alice is not allowed DESCRIBE on topic {journals[0]}"


def test_problems_of_all_clusters_come_together(as_user: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALICE_PASSWORD")
    fault = faults(as_user, unused(TARGET), "orders")
    assert [problem.code for problem in fault.problems] == ["AB304", "AB310"]
    assert isinstance(fault, Unreachable)
