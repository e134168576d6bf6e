"""Finds copies of ours whose ownership records are missing, by the records of copies."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Collection
from dataclasses import replace

from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.recorded.remembered import RememberedCopy
from reconciler.state.copies import Copies
from reconciler.state.journals import home


def with_remembered(
    seen: ObservedCluster, cluster: Cluster, topology: Topology, remotes: Collection[str]
) -> ObservedCluster:
    """Add the records of copies for topics that have the names of copies and no ownership record.

    Where every such topic is on record nothing is read.

    Args:
        seen: a target.
        cluster: the same, as it is declared.
        topology: what is declared.
        remotes: topics there that have the names of copies.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """
    unknown, flows = set(remotes) - seen.owned.keys(), topology.flows_into((cluster.alias,))
    journals = home.journals(cluster, topology.name)
    # In a journal that several topologies share, the name of a flow does not identify it.
    if not unknown or not journals.is_own or journals.copies.name not in seen.names:
        return seen
    copies = Copies(cluster, topology.name)
    try:
        copies.refresh()
        found = [one for flow in flows for remote in sorted(unknown) for one in _of(copies, flow.name, remote)]
    except Unreachable:
        raise
    except EnvironmentFault:
        # A user without READ on it plans as if there were none.
        return seen
    finally:
        copies.close()
    return replace(seen, remembered=tuple(sorted(found)))


def _of(copies: Copies, flow: str, remote: str) -> list[RememberedCopy]:
    """Return what is on record of one copy by one flow: one for each pair of topics."""
    found = []
    for (source_id, target_id), partitions in copies.ids(flow, remote).items():
        if source_id is None or target_id is None:
            continue
        records = [copies.get(flow, remote, number) for number in partitions]
        # How many partitions an original had is kept of copies with offsets of their own alone.
        translated = any(one is not None and one.partitions > 0 for one in records)
        found.append(
            RememberedCopy(flow, remote, _spelled(source_id), _spelled(target_id), len(partitions), translated)
        )
    return found


def _spelled(topic_id: str) -> str:
    """Return an id as observed topics have it: in plain base64 without its end."""
    return base64.b64encode(uuid.UUID(topic_id).bytes).rstrip(b"=").decode()
