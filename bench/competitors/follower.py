"""Kafka's own follower as a competitor: the floor below which nobody who copies a log through public requests can be.

The source cluster has a second node. The partitions of the very topic that the others replicate, on node 1 alone until
then, are reassigned to nodes 1 and 2: node 2 starts with nothing and fetches the same batches from the same log on the
same machine, as any follower does that lost its disk. No replication throttle is set, and the broker's settings are
Kafka's defaults (one fetcher thread for a leader, 1 MiB a partition and 10 MiB an answer). Time runs, as for
the others, from the first records in the copy's log to the last; after it every partition must come to be in sync.
Stopping a follower while the topic is produced, and starting it again, was the other way: it measures the same
fetches, but has the start of a broker in it and would need the topic to be produced once more for every run.

What counts as the competitor's CPU is the follower's broker, all of it: it fetches and keeps the copy. The leader's
is under the brokers'.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from bench.competitors.base import Running, Scene, fault, void
from bench.instruments.segments import TopicLog
from bench.workload.topics import admin
from reconciler.embedded.broker import Broker

LEADER, FOLLOWER = 1, 2
_SYNC_SECONDS = 120.0
_GONE_SECONDS = 60.0
_PAUSE = 0.1


class _BrokerProcess:
    """A broker that runs anyway, seen as a competitor's process."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def pid(self) -> int:
        """Its process id."""
        pid = self._broker.pid
        assert pid is not None, "the follower's broker runs"
        return pid

    def poll(self) -> int | None:
        """Return None while it runs."""
        return None if self._broker.is_running() else 1


class Follower:
    """Kafka's own follower, on the second node of the source cluster."""

    name = "follower"
    title = "Kafka follower (the floor)"
    guarantee = "in sync"

    def prepare(self, scene: Scene) -> None:
        """Nothing: the broker runs already."""

    def start(self, scene: Scene) -> Running:
        """Ask for the second replica."""
        _reassign(scene, (LEADER, FOLLOWER))
        return _BrokerProcess(scene.source.broker(FOLLOWER))

    def copy(self, scene: Scene) -> TopicLog:
        """Return the follower's log of the topic."""
        return TopicLog(scene.source.broker(FOLLOWER).data, scene.topic, scene.load.partitions)

    def finish(self, scene: Scene) -> None:
        """Wait until it is in sync.

        Raises:
            EnvironmentFault: AB350, it is not in time.
        """
        if not _await(scene, {LEADER, FOLLOWER}, _SYNC_SECONDS):
            raise fault(scene, f"has every record, but is not in sync after {_SYNC_SECONDS:g} s")

    def check(self, scene: Scene) -> None:
        """Compare what both logs hold; a follower's batches are its leader's, byte for byte.

        Raises:
            EnvironmentFault: AB352, they differ.
        """
        partitions = scene.load.partitions
        original = TopicLog(scene.source.broker(LEADER).data, scene.topic, partitions)
        copy = self.copy(scene)
        expected, found = original.advance(), copy.advance()
        original.close()
        copy.close()
        if expected != found:
            raise void(scene, f"its log has {found}, the leader's {expected}")

    def clear(self, scene: Scene) -> None:
        """Take the second replica away again, and wait until its folders are gone."""
        _reassign(scene, (LEADER,))
        _await(scene, {LEADER}, _SYNC_SECONDS)
        folders = [scene.source.broker(FOLLOWER).data / f"{scene.topic}-{n}" for n in range(scene.load.partitions)]
        deadline = time.monotonic() + _GONE_SECONDS
        while any(folder.exists() for folder in folders) and time.monotonic() < deadline:
            time.sleep(_PAUSE)


def _reassign(scene: Scene, nodes: Iterable[int]) -> None:
    # librdkafka cannot ask for this.
    client = KafkaAdminClient(bootstrap_servers=scene.source.bootstrap)
    try:
        replicas = list(nodes)
        wanted = {TopicPartition(scene.topic, number): replicas for number in range(scene.load.partitions)}
        refused = {place: error for place, error in client.alter_partition_reassignments(wanted).items() if error}
        if refused:
            raise fault(scene, f"the cluster refused the reassignment: {refused}")
    finally:
        client.close()


def _await(scene: Scene, nodes: set[int], seconds: float) -> bool:
    client, deadline = admin(scene.source), time.monotonic() + seconds
    while time.monotonic() < deadline:
        places = client.list_topics(scene.topic, timeout=seconds).topics[scene.topic].partitions.values()
        if all(set(place.isrs) == set(place.replicas) == nodes for place in places):
            return True
        time.sleep(_PAUSE)
    return False
