"""The ACLs of a cluster, and what they may be about there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.model.acls.hosts import is_range
from reconciler.model.declared.cluster import Cluster
from reconciler.model.planning.observed import ObservedCluster
from reconciler.observe.connection import Connection
from reconciler.observe.registered import takes_ranges


def with_bindings(seen: ObservedCluster, connection: Connection) -> ObservedCluster:
    """Add the ACLs of a cluster."""
    sight, bindings = connection.bindings()
    is_open = sight in ("seen", "unsure") and connection.may_be_open()
    return replace(seen, acls=replace(seen.acls, sight=sight, bindings=bindings, may_be_open=is_open))


def names_ranges(observed: Iterable[ObservedCluster]) -> bool:
    """Return whether some ACL of some cluster is about a range of addresses: seldom, and none before Kafka 4.4."""
    return any(is_range(one.host) for seen in observed for one in seen.acls.bindings)


def with_ranges(seen: ObservedCluster, cluster: Cluster) -> ObservedCluster:
    """Add whether a cluster takes ranges of addresses.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: AB304, AB312 or AB313.
    """
    return replace(seen, acls=replace(seen.acls, takes_ranges=takes_ranges(cluster)))
