"""Do all clusters answer? Asked by commands before they begin something long, all clusters side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.observe.connection import Connection


def unreachable_among(clusters: Sequence[Cluster]) -> dict[str, AnabranchError]:
    """Connect to each cluster once and return, by alias, why those that do not answer do not."""
    if not clusters:
        return {}
    with ThreadPoolExecutor(len(clusters)) as pool:
        failures = pool.map(_failure, clusters)
        return {cluster.alias: failure for cluster, failure in zip(clusters, failures, strict=True) if failure}


def _failure(cluster: Cluster) -> AnabranchError | None:
    try:
        Connection(cluster)
    except AnabranchError as error:
        return error
    return None
