"""Capabilities of targets that a probe has found, kept in the journal of copy records, which the replicator may write.

A topology with shared journals has them in the journal of ownership. `replicator.gaps.probe` writes them once for each
cluster and reads them at every later start.
"""

from __future__ import annotations

from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.capabilities import Capabilities
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal

_KIND = "probe"
# Raised when the trials change, so that findings of an older release do not count.
_TRIALS = 1


class Probes:
    """The findings of one cluster, for one topology.

    Args:
        cluster: the target.
        topology: name of the topology.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topology: str, timeout: float = 10.0) -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "probes"), timeout)

    def read(self, cluster_id: str) -> Capabilities | None:
        """Return what the probe has found of the cluster; None where it has not run.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        value = self._journal.read().get(f"{_KIND}/{cluster_id}")
        if value is None or value.get("trials") != _TRIALS:
            return None
        return Capabilities.from_json(value)

    def write(self, found: Capabilities) -> None:
        """Store findings; they replace older ones.

        Raises:
            EnvironmentFault: AB311, the cluster did not take them.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.ensure()
        self._journal.write(f"{_KIND}/{found.cluster_id}", {"kind": _KIND, "trials": _TRIALS} | found.to_json())
