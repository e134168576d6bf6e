"""What live clusters look like, as values.

`observe` makes them, `plan` compares them with what is desired; nothing here connects to anything. The JSON form is
what `plan --write-observed` leaves for the Pulumi program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from reconciler.model.ownership import OwnedTopic

EFFECTIVE_KEYS = ("cleanup.policy", "max.message.bytes", "retention.bytes", "retention.ms")
"""Keys whose value in force decides which records a topic keeps and takes."""

TIMESTAMP_KEYS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
"""Keys with which brokers bound the timestamps that they take."""

OLD_TIMESTAMP_KEYS = ("message.timestamp.difference.max.ms",)
"""The same for brokers before 3.6 (KIP-937)."""


@dataclass(frozen=True)
class ObservedTopic:
    """One topic as a cluster describes it.

    Attributes:
        name: its name on this cluster.
        topic_id: its id; all zero where brokers have none (before 2.8).
        partitions: how many it has.
        replication_factor: of its first partition.
        configs: the topic-level configuration alone, never what brokers default to.
        effective: the values in force, wherever they come from, of the keys in `EFFECTIVE_KEYS`.
    """

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    effective: Mapping[str, str]


@dataclass(frozen=True)
class ObservedCluster:
    """One cluster, as far as a topology's flows touch it.

    Attributes:
        alias: its name in the topology.
        cluster_id: Kafka's own id of it.
        brokers: how many it has.
        names: of all its topics that the user may see.
        topics: those that a flow takes, fills, or has filled, by name.
        topic_keys: the topic-level configuration keys that its brokers know; empty when they would not say.
        timestamp_keys: those of them that bound timestamps.
        owned: ownership records by topic name; of targets only.
    """

    alias: str
    cluster_id: str
    brokers: int
    names: frozenset[str] = frozenset()
    topics: Mapping[str, ObservedTopic] = field(default_factory=dict)
    topic_keys: frozenset[str] = frozenset()
    timestamp_keys: tuple[str, ...] = TIMESTAMP_KEYS
    owned: Mapping[str, OwnedTopic] = field(default_factory=dict)

    def knows_key(self, key: str) -> bool:
        """Tell whether the brokers take this topic-level key, as far as they said."""
        return not self.topic_keys or key in self.topic_keys

    def to_json(self) -> dict[str, Any]:
        """Return the cluster as plain, sorted JSON values."""
        return asdict(self) | {
            "names": sorted(self.names),
            "topic_keys": sorted(self.topic_keys),
            "timestamp_keys": list(self.timestamp_keys),
            "topics": {name: asdict(self.topics[name]) for name in sorted(self.topics)},
            "owned": {name: asdict(self.owned[name]) for name in sorted(self.owned)},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ObservedCluster:
        """Return the cluster that `to_json` wrote down.

        Raises:
            KeyError: a field is missing.
            TypeError: a field is unknown.
        """
        return cls(
            alias=data["alias"],
            cluster_id=data["cluster_id"],
            brokers=data["brokers"],
            names=frozenset(data["names"]),
            topics={name: ObservedTopic(**topic) for name, topic in data["topics"].items()},
            topic_keys=frozenset(data["topic_keys"]),
            timestamp_keys=tuple(data["timestamp_keys"]),
            owned={name: OwnedTopic(**record) for name, record in data["owned"].items()},
        )
