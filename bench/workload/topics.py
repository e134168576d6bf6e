"""Makes, removes and waits for topics on embedded clusters, for every part of the bench."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Problem

_ANSWER_SECONDS = 30
_PAUSE = 0.2
_FLUSH_SECONDS = 300.0
_VALUE = bytes(250)


def create(
    cluster: EmbeddedCluster,
    topic: str,
    partitions: int,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
    *,
    nodes: int = 1,
) -> None:
    """Make a topic.

    Args:
        cluster: where.
        topic: its name.
        partitions: how many it has.
        replicas: of each.
        config: of the topic.
        nodes: with one replica, on how many nodes the partitions stand, beginning with node 1.

    Raises:
        KafkaException: the cluster refuses it.
    """
    if replicas == 1:
        places = [[1 + number % nodes] for number in range(partitions)]
        new = NewTopic(topic, partitions, replica_assignment=places, config=dict(config or {}))
    else:
        new = NewTopic(topic, partitions, replicas, config=dict(config or {}))
    # Kept by name: a client that nobody holds takes its requests with it.
    client = admin(cluster)
    client.create_topics([new])[topic].result(_ANSWER_SECONDS)


def begin(cluster: EmbeddedCluster, topics: Sequence[str], partitions: int) -> None:
    """Write a record of 250 bytes into each partition of some topics.

    Raises:
        EnvironmentFault: AB351, not all are there in time.
    """
    # As long as the wait for all of them: thousands of partitions have new leaders just now.
    patience = {"message.timeout.ms": int(_FLUSH_SECONDS * 1_000), "queue.buffering.max.messages": 0}
    producer = Producer({**cluster.client_config(), "log_level": 2, **patience})
    for topic in topics:
        for number in range(partitions):
            producer.produce(topic, _VALUE, partition=number)
    producer.flush(_FLUSH_SECONDS)
    for topic in topics:
        if empty := ends(cluster, topic, partitions).count(0):
            message = f"expected a record in each of {partitions} partitions, found none in {empty}"
            raise EnvironmentFault(Problem("AB351", f"topic {topic}", message, "run it again"))


def remove(cluster: EmbeddedCluster, topic: str) -> None:
    """Delete a topic; one that is not there is the end of a start that failed."""
    client = admin(cluster)
    try:
        client.delete_topics([topic])[topic].result(_ANSWER_SECONDS)
    except KafkaException:
        return


def await_topic(cluster: EmbeddedCluster, topic: str, partitions: int, seconds: float) -> None:
    """Wait until a topic has all its partitions, each with a leader that answers.

    Raises:
        EnvironmentFault: AB351, it has not in time.
    """
    client, deadline = admin(cluster), time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = client.list_topics(timeout=_ANSWER_SECONDS).topics.get(topic)
        led = found and sum(place.leader >= 0 for place in found.partitions.values()) == partitions
        if led and _all_answer(cluster, topic, partitions):
            return
        time.sleep(_PAUSE)
    message = f"expected {partitions} partitions within {seconds:g} s"
    raise EnvironmentFault(Problem("AB351", f"topic {topic}", message, "run it again"))


def _all_answer(cluster: EmbeddedCluster, topic: str, partitions: int) -> bool:
    """Whether all leaders know that they lead: metadata may name them a moment before."""
    try:
        ends(cluster, topic, partitions)
    except KafkaException:
        return False
    return True


def ends(cluster: EmbeddedCluster, topic: str, partitions: int) -> list[int]:
    """Return the log end of each partition of a topic.

    Raises:
        KafkaException: the cluster does not tell.
    """
    client = admin(cluster)
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    answers = client.list_offsets(asked, request_timeout=_ANSWER_SECONDS)
    found = {place.partition: answer.result(_ANSWER_SECONDS).offset for place, answer in answers.items()}
    return [found[number] for number in range(partitions)]


def admin(cluster: EmbeddedCluster) -> AdminClient:
    """Return a client for administration."""
    # librdkafka remarks on its own end, on stderr, among the progress.
    return AdminClient({**cluster.client_config(), "log_level": 2})
