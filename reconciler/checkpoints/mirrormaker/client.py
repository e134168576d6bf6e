"""A client for what MirrorMaker 2 and Anabranch write beside copies: checkpoints, heartbeats, and names of topics.

Names and answers are those of MirrorMaker's Java client (`MirrorClient`, `RemoteClusterUtils`), except where noted.
Users import it as `reconciler.client`. It reads and never writes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TopicPartition

from reconciler.checkpoints.mirrormaker import reading
from reconciler.checkpoints.mirrormaker.formats import Checkpoint, Heartbeat, group_prefix, newest, read_heartbeat
from reconciler.checkpoints.mirrormaker.topics import MirrorTopicNames, hops
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Protocol, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.policies.policy import ReplicationPolicy

DEFAULT_SECONDS = 30.0

_BOOTSTRAP = ("bootstrap.servers", "metadata.broker.list")
# Settings of a consumer may hold these; administration and librdkafka refuse them.
_OF_A_CONSUMER = frozenset({"on_commit", "key.deserializer", "value.deserializer"})
_TLS_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")


@dataclass(frozen=True)
class SettingsCluster(Cluster):
    """A cluster that is given by settings of confluent-kafka alone.

    Attributes:
        settings: of the calling program; they may hold secrets and are never shown.
    """

    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def by(cls, settings: Mapping[str, Any]) -> SettingsCluster:
        """Return the cluster that some settings of confluent-kafka are of.

        Raises:
            ValueError: they name no brokers.
        """
        servers = next((str(settings[key]) for key in _BOOTSTRAP if settings.get(key)), "")
        if not servers:
            message = "expected bootstrap.servers among the settings, found none"
            raise ValueError(message)
        brokers = tuple(one.strip() for one in servers.split(","))
        kept = {key: value for key, value in settings.items() if key not in _OF_A_CONSUMER}
        return cls(servers, brokers, security=_security(settings), settings=kept)

    def librdkafka(self) -> dict[str, Any]:
        """Return the settings unchanged, without those of consumers alone."""
        return dict(self.settings)

    @property
    def where(self) -> str:
        """How messages name this cluster."""
        return f"cluster {self.alias}"


def _security(settings: Mapping[str, Any]) -> Security:
    """Return as much as messages need; connections use the settings themselves."""
    protocol: Protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()  # type: ignore[assignment]
    files = {key: Reference("file", str(settings[key])) for key in _TLS_FILES if settings.get(key)}
    # A key with a password could not be loaded to test the broker's answer to its certificate.
    ca, certificate, key = (files.get(name) for name in _TLS_FILES)
    is_open = "ssl.key.password" not in settings
    return Security(
        protocol,
        username=settings.get("sasl.username"),
        ca=ca,
        certificate=certificate if is_open else None,
        key=key if is_open else None,
    )


class MirrorClient:
    """What MirrorMaker 2 and Anabranch have written into one target cluster.

    Args:
        cluster: the target: settings for confluent-kafka, or a declared cluster.
        policies: replication policies of the flows into it; the default one with a dot where none is given.
        clusters: aliases that count as hops in names of topics; None takes any prefix for one, as the Java client does.
        timeout: seconds that the cluster may take to answer.

    Raises:
        ValueError: the settings name no brokers.
    """

    def __init__(
        self,
        cluster: Cluster | Mapping[str, Any],
        *policies: ReplicationPolicy,
        clusters: Collection[str] | None = None,
        timeout: float = DEFAULT_SECONDS,
    ) -> None:
        self._cluster = cluster if isinstance(cluster, Cluster) else SettingsCluster.by(cluster)
        self._names = MirrorTopicNames(
            policies or (ReplicationPolicy(),), None if clusters is None else tuple(clusters)
        )
        self._timeout = timeout

    def remote_consumer_offsets(self, group: str, remote_cluster_alias: str) -> list[TopicPartition]:
        """Return where a consumer group of a source cluster goes on here, for `assign`, `commit` and the like.

        Args:
            group: its name.
            remote_cluster_alias: alias of the source cluster.

        Returns:
            Remote topics and partitions with their offsets here and the group's metadata, in order; empty where the
            group has no checkpoints.

        Raises:
            EnvironmentFault: AB640, there is no topic of such checkpoints; or as `checkpoints`.
            Unreachable: AB310, the cluster does not answer.
        """
        return [
            TopicPartition(one.topic, one.partition, one.downstream, metadata=_taken(one.metadata))
            for one in self.checkpoints(remote_cluster_alias, group)
        ]

    def checkpoints(self, remote_cluster_alias: str, group: str | re.Pattern[str] | None = None) -> list[Checkpoint]:
        """Return the newest checkpoints of consumer groups of a source cluster, by group, topic and partition.

        Args:
            remote_cluster_alias: alias of the source cluster.
            group: of this group alone, or of those whose whole name a pattern matches.

        Raises:
            EnvironmentFault: AB640, there is no topic of such checkpoints; AB313, it may not be read; AB312, AB318 or
                AB319, authentication at the cluster fails.
            Unreachable: AB310, the cluster does not answer.
        """
        topic = self._checkpoints_topic(remote_cluster_alias)
        records = reading.records(self._cluster, topic, self._timeout)
        if isinstance(group, str):
            # Only this group's checkpoints are decoded.
            prefix = group_prefix(group)
            records = (record for record in records if (record[0] or b"").startswith(prefix))
        found = newest(records)
        keys = sorted(found)
        if isinstance(group, re.Pattern):
            keys = [key for key in keys if group.fullmatch(key.group)]
        return [found[key] for key in keys]

    def replication_hops(self, upstream_cluster_alias: str) -> int:
        """Return over how many hops heartbeats of a cluster come here, on the shortest way; -1 where none come.

        Raises:
            EnvironmentFault: authentication at the cluster fails.
            Unreachable: AB310, the cluster does not answer.
        """
        found = hops([self._names.sources(topic) for topic in self.heartbeat_topics()], upstream_cluster_alias)
        return -1 if found is None else found

    def upstream_clusters(self) -> set[str]:
        """Return the clusters whose heartbeats come here, over any number of hops; errors as `replication_hops`."""
        return {source for topic in self.heartbeat_topics() for source in self._names.sources(topic)}

    def heartbeat_topics(self) -> set[str]:
        """Return the topics with heartbeats: the cluster's own and those that came; errors as `replication_hops`."""
        return {topic for topic in self._topics() if self._names.is_heartbeats(topic)}

    def checkpoint_topics(self) -> set[str]:
        """Return the topics with checkpoints; errors as `replication_hops`."""
        return {topic for topic in self._topics() if self._names.is_checkpoints(topic)}

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Return the topics that are copies by their names, those of heartbeats among them.

        Under the policy `identity` no name shows it. Errors as `replication_hops`.

        Args:
            source: only those that were copied from this cluster directly.
        """
        ways = {topic: self._names.sources(topic) for topic in self._topics() if not self._names.is_internal(topic)}
        return {topic for topic, way in ways.items() if way and source in (None, way[0])}

    def heartbeats(self, topic: str = "heartbeats") -> list[Heartbeat]:
        """Return the newest heartbeat of each flow that one topic has; none where it does not exist.

        Errors as `checkpoints`, but AB640.

        Args:
            topic: one of `heartbeat_topics`.
        """
        found: dict[tuple[str, str], Heartbeat] = {}
        if topic not in self._topics():
            return []
        for key, value in reading.records(self._cluster, topic, self._timeout):
            try:
                read = read_heartbeat(key or b"", value or b"")
            except ValueError:
                continue
            found[read.source, read.target] = read
        return [found[key] for key in sorted(found)]

    def _topics(self) -> frozenset[str]:
        return reading.topics(self._cluster, self._timeout)

    def _checkpoints_topic(self, source: str) -> str:
        there = self._topics()
        for topic in self._names.checkpoints_topics(source):
            if topic in there:
                return topic
        known = sorted(topic for topic in there if self._names.is_checkpoints(topic))
        message = (
            f"there are no checkpoints of cluster {source}: expected topic {self._names.checkpoints_topics(source)[0]}"
        )
        others = (
            f"those of other clusters are in {', '.join(known)}"
            if known
            else "no checkpoints of any cluster are written here"
        )
        remedy = "name the source by its alias in the replication, and check that checkpoints are written"
        raise EnvironmentFault(Problem("AB640", self._cluster.where, f"{message}; {others}", remedy))


def translate_offsets(
    cluster: Cluster | Mapping[str, Any],
    remote_cluster_alias: str,
    group: str,
    *policies: ReplicationPolicy,
    timeout: float = DEFAULT_SECONDS,
) -> list[TopicPartition]:
    """Return where a consumer group of a source cluster goes on at the target.

    Args:
        cluster: the target: settings for confluent-kafka, or a declared cluster.
        remote_cluster_alias: alias of the source cluster.
        group: the group's name.
        policies: replication policies of the flows into it; the default one with a dot where none is given.
        timeout: seconds that the cluster may take to answer.

    Returns, raises:
        What `MirrorClient.remote_consumer_offsets` does.
    """
    return MirrorClient(cluster, *policies, timeout=timeout).remote_consumer_offsets(group, remote_cluster_alias)


def _taken(metadata: str) -> str:
    """Return metadata as confluent-kafka takes it: it commits a NUL behind each and refuses one that has it."""
    return metadata.partition("\0")[0]
