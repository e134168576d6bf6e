"""The replication factor of internal topics, which must not be lower because a broker is down for a moment.

Metadata names the brokers that are up. The cluster may have more: brokers that hold replicas, and brokers that only the
controller has registered. So a topic is requested with the full replication factor, and with a lower one only when the
controller refuses that and metadata shows no further brokers.
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import in_words

USUAL = 3
"""Replication factor of internal topics, where a cluster has as many brokers."""


def known_brokers(seen: ClusterMetadata) -> frozenset[int]:
    """Return the ids of the brokers that are up, and of those that hold replicas."""
    partitions = [one for topic in seen.topics.values() for one in topic.partitions.values()]
    return frozenset(seen.brokers) | {broker for one in partitions for broker in one.replicas}


def down_brokers(seen: ClusterMetadata) -> tuple[int, ...]:
    """Return the ids of brokers that hold replicas and are not up, as far as a list of topics shows them."""
    return tuple(sorted(known_brokers(seen) - frozenset(seen.brokers)))


def make(seen: ClusterMetadata, create: Callable[[int], None], declared: int | None = None) -> None:
    """Create a topic with the declared replication factor; without one with 3, or the number of brokers if lower.

    Args:
        seen: the cluster's topics and brokers, as they are now.
        create: makes it with a number of replicas.
        declared: how many it should have; None where nothing is declared.

    Raises:
        KafkaException: what `create` raises; where brokers are down, INVALID_REPLICATION_FACTOR.
    """
    factor = declared or USUAL
    try:
        create(factor)
    except KafkaException as error:
        known = len(known_brokers(seen))
        if declared or not is_too_few(error.args[0]) or known >= factor:
            raise
        create(known)


def is_too_few(error: KafkaError) -> bool:
    """Return whether a topic is refused as too few brokers are up."""
    return bool(error.code() == KafkaError.INVALID_REPLICATION_FACTOR)


def not_now(cluster: Cluster, subject: str, answer: str, down: tuple[int, ...] = ()) -> Problem:
    """Return the problem that a topic cannot be made with all its replicas while brokers are down.

    Args:
        cluster: which one.
        subject: the topic.
        answer: the cluster's.
        down: ids of brokers that are known to be down.
    """
    suffix = f"; down now: {', '.join(map(str, down))}" if down else ""
    return Problem(
        "AB450",
        f"{cluster.where}, {subject}",
        f"is not made now: {answer}{suffix}; with fewer replicas it would stay so for ever",
        "start the brokers that are down, then run this again; of one that is gone for good, unregister it "
        "(`kafka-cluster.sh unregister --id ID`)",
    )


def refused_now(cluster: Cluster, subject: str, error: KafkaError, seen: ClusterMetadata) -> EnvironmentFault:
    """Return `not_now` as an error, for a topic that a cluster with this metadata has refused."""
    return EnvironmentFault(not_now(cluster, subject, in_words(error), down_brokers(seen)))
