"""The state of live clusters, as values.

`observe` makes them, `plan` compares them with what is desired; nothing here connects to anything. The JSON form is
what `plan --write-observed` leaves for the Pulumi program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from reconciler.model.acls.binding import ObservedBindings
from reconciler.model.acls.own_access import Access
from reconciler.model.declared.override import FlowOverride
from reconciler.model.recorded.declaration import Declaration, InForce
from reconciler.model.recorded.failover import Cut, FailedOver
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.recorded.placed import Placed
from reconciler.model.recorded.remembered import RememberedCopy

EFFECTIVE_KEYS = ("cleanup.policy", "max.message.bytes", "retention.bytes", "retention.ms")
"""Keys whose value in force decides which records a topic keeps and takes."""

TIMESTAMP_KEYS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
"""Keys with which brokers bound the timestamps that they take."""

OLD_TIMESTAMP_KEYS = ("message.timestamp.difference.max.ms",)
"""The same for brokers before 3.6 (KIP-937)."""

NO_BOUND = str(2**63 - 1)
"""Such a bound lets every timestamp pass."""

PASSAGE_KEYS = ("compression.type", "message.timestamp.type", *TIMESTAMP_KEYS, *OLD_TIMESTAMP_KEYS)
"""Keys whose value in force decides whether batches are stored as they come."""

Offsets = tuple[int | None, ...]
"""One offset per partition, from 0; None where it is not known, as while a partition has no leader."""


@dataclass(frozen=True)
class ObservedTopic:
    """One topic as a cluster describes it.

    Attributes:
        name: its name on this cluster.
        topic_id: its id; all zero where brokers have none (before 2.8).
        partitions: how many it has.
        replication_factor: of its first partition.
        configs: the topic-level configuration alone, never what brokers default to.
        effective: the values in force, wherever they come from, of the keys in `EFFECTIVE_KEYS` and `PASSAGE_KEYS`.
        starts: where the partitions' logs begin; empty when they were not requested.
        ends: where they end (the high watermarks); empty when they were not requested.
        operations: what we may do with it; None when the cluster did not report it.
        fewest_replicas: of the partition that has the fewest; None where all have as many as the first.
    """

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    effective: Mapping[str, str]
    starts: Offsets = ()
    ends: Offsets = ()
    operations: frozenset[str] | None = None
    fewest_replicas: int | None = None

    @property
    def replicas(self) -> int:
        """How many replicas each of its partitions has at least."""
        return self.replication_factor if self.fewest_replicas is None else self.fewest_replicas

    def bounds(self, partition: int) -> tuple[int, int] | None:
        """Return where a partition's log begins and ends; None where that is not known."""
        if not 0 <= partition < min(len(self.starts), len(self.ends)):
            return None
        start, end = self.starts[partition], self.ends[partition]
        return None if start is None or end is None else (start, end)

    @property
    def held(self) -> int:
        """How many offsets its logs hold, as far as that is known: at least as many as records."""
        return sum(end - start for n in range(self.partitions) for start, end in [self.bounds(n) or (0, 0)])

    def lacks(self, operations: Iterable[str]) -> tuple[str, ...]:
        """Return which of these operations we may not do with it, as far as the cluster reported them."""
        return () if self.operations is None else tuple(one for one in operations if one not in self.operations)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        operations = None if self.operations is None else sorted(self.operations)
        return asdict(self) | {"operations": operations}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ObservedTopic:
        """Return what `to_json` wrote down.

        Raises:
            KeyError: a field is missing.
            TypeError: a field is unknown.
        """
        operations = data["operations"]
        lists = {key: tuple(data[key]) for key in ("starts", "ends")}
        return cls(**{**data, **lists, "operations": None if operations is None else frozenset(operations)})


@dataclass(frozen=True)
class RefusedValue:
    """A value of a setting of topics that a flow declares, and that a cluster would not take.

    Attributes:
        key: the setting.
        value: what is declared.
        reason: the cluster's error message.
    """

    key: str
    value: str
    reason: str


@dataclass(frozen=True)
class ObservedCluster:
    """One cluster, as far as a topology's flows touch it.

    Attributes:
        alias: its name in the topology.
        cluster_id: Kafka's own id of it; empty of one that is away.
        brokers: how many it has, those that are down among them.
        down: ids of those that are.
        names: of all its topics that the user may see.
        topics: those that a flow takes, fills, or has filled, by name.
        topic_keys: the topic-level configuration keys that its brokers have; empty when they did not report them.
        timestamp_keys: those of them that bound timestamps.
        owned: ownership records by topic name; of targets only.
        in_force: which declaration of the topology is in force there; of targets only.
        declaration: its content; None where it is not recorded. It is not written down.
        aliases: under which other names something of the topology is in force there; of targets only.
        failed_over: which flows of the topology are on record there as failed over, by name; of targets only.
        access: what we may do there.
        acls: those of its topics, where flows follow ACLs.
        journals: names of the topics that hold the topology's state there, whether they exist or not, that of
            ownership first; of targets only.
        groups: names of its consumer groups that the user may see; None where they were not requested, or not reported.
        default_replicas: its `default.replication.factor`; None where it was not requested, or not reported.
        refused_values: settings that flows into it declare, and that it would not take; of targets only.
        unasked_values: why it could not be asked to validate them; empty where it was.
        state_replicas: how many replicas topics have that hold state of the topology there, by name; of targets only.
        remembered: what the records of copies prove of topics there without an ownership record; of targets only.
        state_policies: the `cleanup.policy` of the topology's journals there, by name; of targets only, and of those
            that we may ask for it.
        overrides: that the declaration in force has beside its files; of targets only. They are not written down.
    """

    alias: str
    cluster_id: str
    brokers: int
    names: frozenset[str] = frozenset()
    topics: Mapping[str, ObservedTopic] = field(default_factory=dict)
    topic_keys: frozenset[str] = frozenset()
    timestamp_keys: tuple[str, ...] = TIMESTAMP_KEYS
    owned: Mapping[str, OwnedTopic] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    in_force: InForce | None = None
    acls: ObservedBindings = field(default_factory=ObservedBindings)
    aliases: frozenset[str] = frozenset()
    failed_over: Mapping[str, FailedOver] = field(default_factory=dict)
    journals: tuple[str, ...] = ()
    declaration: Declaration | None = None
    groups: frozenset[str] | None = None
    down: tuple[int, ...] = ()
    default_replicas: int | None = None
    refused_values: tuple[RefusedValue, ...] = ()
    unasked_values: str = ""
    state_replicas: Mapping[str, int] = field(default_factory=dict)
    remembered: tuple[RememberedCopy, ...] = ()
    state_policies: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[FlowOverride, ...] = ()

    @classmethod
    def away(cls, alias: str) -> ObservedCluster:
        """Return a cluster that does not answer and is not needed: nothing is known of it."""
        return cls(alias, cluster_id="", brokers=0)

    @property
    def is_away(self) -> bool:
        """Whether it did not answer, and is not needed."""
        return not self.cluster_id

    def knows_key(self, key: str) -> bool:
        """Return whether the brokers take this topic-level key, as far as they reported it."""
        return not self.topic_keys or key in self.topic_keys

    def to_json(self) -> dict[str, Any]:
        """Return the cluster as plain, sorted JSON values."""
        return asdict(replace(self, declaration=None, overrides=())) | {
            "names": sorted(self.names),
            "aliases": sorted(self.aliases),
            "groups": None if self.groups is None else sorted(self.groups),
            "topic_keys": sorted(self.topic_keys),
            "timestamp_keys": list(self.timestamp_keys),
            "topics": {name: self.topics[name].to_json() for name in sorted(self.topics)},
            "failed_over": {name: _failover_json(self.failed_over[name]) for name in sorted(self.failed_over)},
            "owned": {name: asdict(self.owned[name]) for name in sorted(self.owned)},
            "access": self.access.to_json(),
            "acls": self.acls.to_json(),
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
            topics={name: ObservedTopic.from_json(topic) for name, topic in data["topics"].items()},
            topic_keys=frozenset(data["topic_keys"]),
            timestamp_keys=tuple(data["timestamp_keys"]),
            owned={name: OwnedTopic(**record) for name, record in data["owned"].items()},
            access=Access.from_json(data["access"]),
            in_force=_in_force(data["in_force"]) if data.get("in_force") else None,
            acls=ObservedBindings.from_json(data["acls"]),
            aliases=frozenset(data["aliases"]),
            failed_over={name: _failed_over(one) for name, one in data["failed_over"].items()},
            journals=tuple(data["journals"]),
            groups=None if data["groups"] is None else frozenset(data["groups"]),
            down=tuple(data["down"]),
            default_replicas=data["default_replicas"],
            refused_values=tuple(RefusedValue(**one) for one in data["refused_values"]),
            unasked_values=data["unasked_values"],
            state_replicas=data["state_replicas"],
            remembered=tuple(RememberedCopy(**one) for one in data["remembered"]),
            state_policies=data["state_policies"],
        )


def _in_force(data: Mapping[str, Any]) -> InForce:
    return InForce(**{**data, "targets": tuple(data["targets"])})


def _failover_json(state: FailedOver) -> dict[str, Any]:
    return asdict(replace(state, moved={}, returned={})) | {
        way: {group: placed.to_json() for group, placed in sorted(groups.items())}
        for way, groups in (("moved", state.moved), ("returned", state.returned))
    }


def _failed_over(data: Mapping[str, Any]) -> FailedOver:
    cuts = {
        topic: Cut(
            **{**cut, "ends": tuple((source, target) for source, target in cut["ends"]), "notes": tuple(cut["notes"])}
        )
        for topic, cut in data["cuts"].items()
    }
    moved, returned = (_placed(data.get(way, {})) for way in ("moved", "returned"))
    return FailedOver(**{**data, "cuts": cuts, "moved": moved, "returned": returned})


def _placed(data: Mapping[str, Any] | Iterable[str]) -> dict[str, Placed]:
    # Older releases named groups and no more.
    told: Mapping[str, Any] = data if isinstance(data, Mapping) else {group: {} for group in data}
    return {group: Placed.from_json(one) for group, one in told.items()}
