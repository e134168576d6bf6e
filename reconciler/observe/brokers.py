"""How many brokers a cluster has, which of them are down, and how many replicas topics have there.

A metadata response names the brokers that are up; brokers that hold replicas belong to the cluster as well. Where these
are fewer than the replicas of a topic, or some are down, the registered brokers are looked up (KIP-1073).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from confluent_kafka.admin import ClusterMetadata

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.observe.connection import Connection
from reconciler.observe.registered import default_in, registered_in
from reconciler.observe.values import stand_in
from reconciler.state.confluent.replicas import known_brokers

Registered = Callable[[Cluster], frozenset[int] | None]


def brokers_of(
    cluster: Cluster, seen: ClusterMetadata, wanted: int, registered: Registered = registered_in
) -> tuple[int, tuple[int, ...]]:
    """Return how many brokers a cluster has, and the ids of those that are down.

    Args:
        cluster: which one.
        seen: its topics and brokers.
        wanted: the largest number of replicas of a topic there; with as many brokers no further request is made.
        registered: looks up all registered brokers of the cluster.
    """
    known = known_brokers(seen)
    if len(known) < wanted or known > frozenset(seen.brokers):
        # What is registered is what the controller puts replicas on; others are gone for good.
        known = registered(cluster) or known
    return max(len(known), len(seen.brokers)), tuple(sorted(known - frozenset(seen.brokers)))


def default_replicas(cluster: Cluster, connection: Connection, flows: Collection[Flow]) -> int | None:
    """Return how many replicas a cluster gives topics that are made without a number; None where that is not shown.

    The active controller shows it in the answer to a validate-only CreateTopics; else a setting of the brokers has it.
    """
    return default_in(cluster, stand_in(next(iter(flows)))) or connection.default_replicas()


def fewest_replicas(seen: ClusterMetadata, names: Collection[str]) -> dict[str, int]:
    """Return, for each of the topics that is there, how many replicas the partition with the fewest has."""
    topics = {name: seen.topics[name] for name in names if name in seen.topics}
    return {
        name: min(len(one.replicas) for one in topic.partitions.values())
        for name, topic in topics.items()
        if topic.partitions
    }


def most_replicas(seen: ClusterMetadata, names: Collection[str]) -> int:
    """Return how many replicas the partition of some topics has that has most; 0 without any."""
    topics: Mapping[str, int] = {
        name: max((len(one.replicas) for one in seen.topics[name].partitions.values()), default=0)
        for name in names
        if name in seen.topics
    }
    return max(topics.values(), default=0)
