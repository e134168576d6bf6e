"""Leader election: of all processes that run a flow, one syncs its groups.

Kafka's own group protocol decides: each process is a member of one group that subscribes to a topic of one partition,
and the member with that partition is the leader. A member that dies loses it after the session's end. Two may count
themselves leader for a moment: what an older round of one of them leaves behind, the next round of the other corrects.
"""

from __future__ import annotations

import contextlib

from confluent_kafka import Consumer, TopicPartition

from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import turn_group
from reconciler.state.confluent import calls, clients
from reconciler.state.journals.home import journals

# A round may take long, and nothing is polled meanwhile.
_LONGEST_ROUND_MS = 600_000
_SESSION_MS = 10_000


class Leadership:
    """One process's membership.

    Args:
        target: the flow's target cluster, where the group is.
        topology: name of the topology.
        flow: name of the flow.

    Attributes:
        is_ours: whether this process is the leader, as of the last `look`.
    """

    def __init__(self, target: Cluster, topology: str, flow: str) -> None:
        self.is_ours = False
        self._target = target
        self._topology = topology
        settings = {
            "group.id": turn_group(topology, flow),
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
            "session.timeout.ms": _SESSION_MS,
            "max.poll.interval.ms": _LONGEST_ROUND_MS,
        }
        self._clients: clients.Renewed[Consumer] = clients.Renewed(Consumer, target, settings)
        self._subscribed: Consumer | None = None

    def look(self, seconds: float) -> bool:
        """Poll for up to `seconds`, and return whether this process is the leader.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: what `clients.make` raises.
        """
        consumer = self._clients.get()
        if consumer is not self._subscribed:
            self.is_ours = False
            topic = journals(self._target, self._topology).control.name
            with calls.ours(self._target, f"topic {topic}", reports=self._clients.reports):
                consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
            self._subscribed = consumer
        # The topic's records are not read: the partition is paused as soon as it is assigned.
        with contextlib.suppress(*calls.RAISED):
            consumer.poll(seconds)
        return self.is_ours

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Become the leader. Raises KafkaException, which `look` gets out of its poll."""
        if partitions:
            consumer.assign(partitions)
            consumer.pause(partitions)
            self.is_ours = True

    def _revoked(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.is_ours = False

    def close(self) -> None:
        """Leave the group, so that another process becomes the leader at once."""
        self.is_ours = False
        self._clients.close()
