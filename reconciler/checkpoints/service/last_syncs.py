"""Reads when the groups of flows were last synced: each round records it in the topology's status topic.

Heartbeats, which all topologies of a target write, hold it only where the journals are still shared as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Message

from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.checkpoints.mirrormaker.formats import FLOW_HEADER, GROUPS_HEADER, TOPOLOGY_HEADER, read_heartbeat
from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.base.shape import TIME, WORD, decimal
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.groups import LastLook
from reconciler.model.names.topic_names import HEARTBEATS
from reconciler.state.journals.encoding import headers
from reconciler.state.journals.home import journals
from reconciler.state.ownership import Ownership
from reconciler.state.status import StatusReader

_SECONDS = 10.0
_LOG = HEARTBEATS, 0
_GROUPS = decimal()


class LastLooks:
    """Follows when the groups of a topology's flows were last synced; the connection is kept between calls.

    Args:
        cluster: which one.
        topology: name of the topology.
        seconds: how long it may take to answer.
    """

    def __init__(self, cluster: Cluster, topology: str, seconds: float = _SECONDS) -> None:
        self._cluster = cluster
        self._topology = topology
        self._reader: StatusReader | None = None
        self._lookup = ClusterLookup(cluster, seconds)
        self._record_reader = RecordReader(cluster, committed=False, seconds=seconds, may_pass=True)
        # By topology (None where a former release did not write it) and flow.
        self._found: dict[tuple[str | None, str], LastLook] = {}
        self._of_others: frozenset[str] | None = None
        self._at = 0
        self._topic_id: str | None = None

    def current(self) -> Mapping[str, LastLook]:
        """Return by flow when its groups were last synced; flows without any heartbeat are missing.

        Heartbeats that name no flow, as MirrorMaker 2's, do not count.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311 or AB313, reading is refused; or what `clients.make` raises.
        """
        if journals(self._cluster, self._topology).is_own:
            self._reader = self._reader or StatusReader(self._cluster, self._topology)
            self._reader.current()
            return self._reader.last_looks()
        self._hear()
        return self._own()

    def _own(self) -> dict[str, LastLook]:
        """Return what is recorded for this topology's flows, or by a former release for flows of no other topology.

        Raises:
            AnabranchError: as `current`.
        """
        ours = {flow: look for (topology, flow), look in self._found.items() if topology == self._topology}
        former = {flow: look for (topology, flow), look in self._found.items() if topology is None}
        if former.keys() <= ours.keys():
            return ours
        others = {flow for topology, flow in self._found if topology not in (None, self._topology)}
        if self._of_others is None:
            records = Ownership(self._cluster, self._topology).read().values()
            self._of_others = frozenset(one.flow for one in records if one.topology != self._topology)
        others |= self._of_others
        return {flow: look for flow, look in former.items() if flow not in others} | ours

    def _hear(self) -> None:
        seen = self._lookup.topics([HEARTBEATS]).get(HEARTBEATS)
        bounds = None if seen is None else self._lookup.bounds([_LOG]).get(_LOG)
        if seen is None or seen.topic_id != self._topic_id or (bounds is not None and self._at > bounds.end):
            self._found, self._at = {}, 0
            self._topic_id = None if seen is None else seen.topic_id
        if bounds is None:
            return
        self._at = max(self._at, bounds.start)
        if self._at < bounds.end:
            for message in self._record_reader.messages(*_LOG, self._at):
                if message.error() is None:
                    self._take(message)
                # The last message is the offset that is reached, and no record.
                self._at = max(self._at, (message.offset() or 0) + (message.error() is None))

    def _take(self, message: Message) -> None:
        try:
            said = headers(message)
            topology, flow, groups = (said.get(name) for name in (TOPOLOGY_HEADER, FLOW_HEADER, GROUPS_HEADER))
            if flow is None:
                return
            beat = read_heartbeat(message.key() or b"", message.value() or b"")
            count = None if groups is None else _GROUPS(groups.decode())
            whose = None if topology is None else WORD(topology.decode()), WORD(flow.decode())
            self._found[whose] = LastLook(TIME(beat.timestamp / 1_000), count)
        except ValueError:
            # Foreign records in the topic are passed over.
            return

    def close(self) -> None:
        """Close the connections."""
        self._lookup.close()
        self._record_reader.close()
        if self._reader is not None:
            self._reader.close()
