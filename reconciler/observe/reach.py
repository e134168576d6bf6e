"""Do all clusters answer? Asked by commands before they begin something long, all clusters side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka.admin import AdminClient, ClusterMetadata

from reconciler.model.base.errors import AnabranchError, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients

CONNECT_SECONDS = 4.0
ANSWER_SECONDS = 30.0


def reached(cluster: Cluster, seconds: float = CONNECT_SECONDS) -> tuple[AdminClient, ClusterMetadata]:
    """Return a new client of a cluster, and the metadata of all its topics.

    Args:
        cluster: which one.
        seconds: how long it may take to answer.

    Raises:
        Unreachable: AB310, no broker answers at its addresses.
        EnvironmentFault: what `clients.ask` and `clients.make` raise: it does not let us in, or the like.
        Refused: AB423, it is another cluster than the declared one.
    """
    # A connection that nothing is wrong with may be slow.
    client, metadata = clients.metadata(cluster, seconds, ANSWER_SECONDS)
    if other := cluster.other_cluster(metadata.cluster_id):
        raise Refused(other)
    return client, metadata


def unreachable_among(clusters: Sequence[Cluster]) -> dict[str, AnabranchError]:
    """Connect to each cluster once and return, by alias, why those that do not answer do not."""
    if not clusters:
        return {}
    with ThreadPoolExecutor(len(clusters)) as pool:
        failures = pool.map(_failure, clusters)
        return {cluster.alias: failure for cluster, failure in zip(clusters, failures, strict=True) if failure}


def _failure(cluster: Cluster) -> AnabranchError | None:
    try:
        reached(cluster)
    except AnabranchError as error:
        return error
    return None
