"""How many replicas a topic of our own gets: a broker that is down for a moment makes no topic smaller.

A list of topics names the brokers that are up. Others belong to the cluster as well: those that hold replicas, and
those that only the controller knows of. So a topic is asked for with all the replicas that it should have, and with
fewer only where the cluster says that it has no more brokers, and nothing shows the opposite.
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import in_words

USUAL = 3
"""Replicas of a topic of our own, where a cluster has as many brokers."""


def known_brokers(seen: ClusterMetadata) -> frozenset[int]:
    """Return the ids of the brokers that are up, and of those that hold replicas."""
    partitions = [one for topic in seen.topics.values() for one in topic.partitions.values()]
    return frozenset(seen.brokers) | {broker for one in partitions for broker in one.replicas}


def down_brokers(seen: ClusterMetadata) -> tuple[int, ...]:
    """Return the ids of brokers that hold replicas and are not up, as far as a list of topics shows them."""
    return tuple(sorted(known_brokers(seen) - frozenset(seen.brokers)))


def make(seen: ClusterMetadata, create: Callable[[int], None], declared: int | None = None) -> None:
    """Have a topic made with as many replicas as are declared; or with three, or one on each of fewer brokers.

    Args:
        seen: the cluster's topics and brokers, as they are now.
        create: makes it with a number of replicas.
        declared: how many it should have; None where nothing is declared.

    Raises:
        KafkaException: what `create` raises; where brokers are down, INVALID_REPLICATION_FACTOR.
    """
    wanted = declared or USUAL
    try:
        create(wanted)
    except KafkaException as error:
        known = len(known_brokers(seen))
        if declared or not is_too_few(error.args[0]) or known >= wanted:
            raise
        create(known)


def is_too_few(error: KafkaError) -> bool:
    """Tell whether a topic is refused as there are not enough brokers now."""
    return bool(error.code() == KafkaError.INVALID_REPLICATION_FACTOR)


def not_now(cluster: Cluster, subject: str, said: str, down: tuple[int, ...] = ()) -> Problem:
    """Return the problem that a topic cannot be made with all its replicas while brokers are down.

    Args:
        cluster: which one.
        subject: the topic.
        said: what the cluster answered.
        down: ids of brokers that are known to be down.
    """
    who = f"; down now: {', '.join(map(str, down))}" if down else ""
    return Problem(
        "AB450",
        f"{cluster.where}, {subject}",
        f"is not made now: {said}{who}; with fewer replicas it would stay so for ever",
        "start the brokers that are down, then run this again; of one that is gone for good, let the cluster know "
        "(`kafka-cluster.sh unregister --id ID`)",
    )


def refused_now(cluster: Cluster, subject: str, error: KafkaError, seen: ClusterMetadata) -> EnvironmentFault:
    """Return `not_now` as an error, for a topic that was refused by a cluster that looks as `seen`."""
    return EnvironmentFault(not_now(cluster, subject, in_words(error), down_brokers(seen)))
