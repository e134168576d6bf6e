"""The connectors of workers that share them, kept in the journal of ownership of a topology at the workers' cluster."""

from __future__ import annotations

from reconciler.model.base.shape import fits
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.state.journals import following
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal

KIND = "connector"


class Connectors:
    """The connectors of one group of workers.

    Args:
        cluster: that of the workers.
        topology: name of the topology that the connectors declare together.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topology: str, timeout: float = 10.0) -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "owned"), timeout)
        self._values = following.FollowedValues(cluster, self._journal, timeout)
        self._topology = topology

    def current(self) -> dict[str, ConnectorRecord]:
        """Return them by name; it waits until it has read all records that this object has written.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        values = self._values.current().values()
        found = (fits(ConnectorRecord.from_json, value) for value in values if value["kind"] == KIND)
        return {one.name: one for one in found if one is not None}

    def write(self, record: ConnectorRecord) -> None:
        """Keep a connector.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, writing is refused.
        """
        self._journal.ensure()
        value = {"kind": KIND, "topology": self._topology} | record.to_json()
        self._values.written = self._journal.write(f"{KIND}/{record.name}", value)

    def remove(self, name: str) -> None:
        """Forget a connector; errors are those of `write`."""
        self._values.written = self._journal.write(f"{KIND}/{name}", None)

    def close(self) -> None:
        """Close the connection."""
        self._values.close()
