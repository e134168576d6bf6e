"""Short ways to make and look at topics on a test's broker, past the code under test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import KafkaError, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import LOST
from tests.support.waiting import DEADLINE_SECONDS, eventually

ANSWER_SECONDS = 120
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
VISIBLE_SECONDS = 300
# What a cluster answers while a broker goes, comes or begins to lead; the next answer may be another one.
_PASSING = {
    *LOST,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
}

T = TypeVar("T")


def patient(cluster: EmbeddedCluster, topic: str, **config: object) -> Producer:
    """Return a producer that sends what there is for a topic as one batch when it is flushed."""
    producer = Producer(cluster.client_config() | {"linger.ms": 60_000, "log_level": "2"} | config)
    # Otherwise it learns of the topic while it is flushed, and may send a record before the next one is there.
    producer.list_topics(topic, VISIBLE_SECONDS)
    return producer


def declared(alias: str, broker: EmbeddedCluster, datacenter: str = "dc1") -> Cluster:
    return Cluster(alias, tuple(broker.bootstrap.split(",")), datacenter)


# A client must outlive its futures: when it is collected they fail.
def admin(broker: EmbeddedCluster) -> AdminClient:
    return AdminClient(broker.client_config() | {"log_level": "2"})


def settled(ask: Callable[[], T]) -> T:
    """Ask a cluster, and again while it answers that a broker goes, comes or begins to lead.

    Raises:
        KafkaException: it answered something else, or still the same after the deadline of `eventually`.
    """
    return clients.settled(ask, _PASSING, DEADLINE_SECONDS)


def metadata(broker: EmbeddedCluster, topic: str | None = None) -> ClusterMetadata:
    """Return what the cluster says of all its topics, or of one, whichever of its brokers answers.

    Each time through a client of its own: one may hang on to a broker that was killed.
    """

    def ask() -> ClusterMetadata:
        client = admin(broker)
        return client.list_topics(timeout=5) if topic is None else client.list_topics(topic, timeout=5)

    return settled(ask)


def create(
    broker: EmbeddedCluster,
    name: str,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
    replicas: int = 1,
) -> None:
    client = admin(broker)
    topic = NewTopic(name, partitions, replicas, config=dict(configs or {}))
    client.create_topics([topic])[name].result(ANSWER_SECONDS)
    wait_until_seen(client, name, partitions)


def grow(broker: EmbeddedCluster, name: str, partitions: int) -> None:
    client = admin(broker)
    client.create_partitions([NewPartitions(name, partitions)])[name].result(ANSWER_SECONDS)
    wait_until_seen(client, name, partitions)


def wait_until_seen(client: AdminClient, name: str, partitions: int) -> None:
    deadline = time.monotonic() + VISIBLE_SECONDS
    while time.monotonic() < deadline:
        seen = client.list_topics(timeout=ANSWER_SECONDS).topics.get(name)
        if seen is not None and len(seen.partitions) == partitions and _leads_all(client, name, partitions):
            return
        time.sleep(0.05)
    message = f"{name} with {partitions} partitions was not seen in {VISIBLE_SECONDS} s"
    raise AssertionError(message)


def _leads_all(client: AdminClient, name: str, partitions: int) -> bool:
    """Whether the leaders answer for all partitions: metadata may name them a moment before they lead."""
    asked = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}
    answers = client.list_offsets(asked, request_timeout=ANSWER_SECONDS).values()
    return all(answer.exception() is None for answer in answers)


def delete_records(broker: EmbeddedCluster, topic: str, before: int) -> None:
    """Delete the records of a topic's first partition that stand before an offset."""
    client = admin(broker)
    (future,) = client.delete_records([TopicPartition(topic, 0, before)]).values()
    future.result(ANSWER_SECONDS)


def delete(broker: EmbeddedCluster, *names: str) -> None:
    client = admin(broker)
    for future in client.delete_topics(list(names)).values():
        future.result(ANSWER_SECONDS)
    eventually(
        "the topics are deleted",
        lambda: set(names) & client.list_topics(timeout=ANSWER_SECONDS).topics.keys(),
        lambda left: not left,
    )


def set_config(broker: EmbeddedCluster, name: str, key: str, value: str | None, of: str = "topic") -> None:
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    resource = ConfigResource(of, name, incremental_configs=[ConfigEntry(key, value, incremental_operation=kind)])
    client = admin(broker)
    client.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)
    if of == "topic":
        # The controller confirms a moment before the brokers go by it.
        what = f"{key} of {name} is {value}"
        eventually(what, lambda: topic_configs(broker, name).get(key), lambda found: found == value)


def topic_configs(broker: EmbeddedCluster, name: str) -> dict[str, str]:
    """The settings that stand on the topic itself."""
    client = admin(broker)
    (future,) = client.describe_configs([ConfigResource("topic", name)]).values()
    entries = future.result(ANSWER_SECONDS).values()
    return {e.name: e.value for e in entries if ConfigSource(e.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG}


def topic_id(broker: EmbeddedCluster, name: str) -> str:
    client = admin(broker)
    described = client.describe_topics(TopicCollection([name]))[name].result(ANSWER_SECONDS)
    return str(described.topic_id)


def partitions(broker: EmbeddedCluster, name: str) -> int:
    return len(admin(broker).list_topics(timeout=ANSWER_SECONDS).topics[name].partitions)


def allow(broker: EmbeddedCluster, user: str, topics: Iterable[str], *operations: AclOperation) -> None:
    allowed = [
        AclBinding(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for name in topics
        for operation in operations
    ]
    grant(broker, allowed)


def names(broker: EmbeddedCluster) -> set[str]:
    """Return the names of all topics."""
    client = admin(broker)
    return set(client.list_topics(timeout=ANSWER_SECONDS).topics)


def grant(broker: EmbeddedCluster, bindings: Sequence[AclBinding]) -> None:
    """Create ACLs and wait until the broker goes by them: the controller confirms a moment before that."""
    client = admin(broker)
    for future in client.create_acls(bindings).values():
        future.result(ANSWER_SECONDS)
    deadline = time.monotonic() + VISIBLE_SECONDS
    while set(bindings) - set(client.describe_acls(ANY_ACL, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)):
        assert time.monotonic() < deadline, "ACLs are not in force"
        time.sleep(0.05)
