"""One flow: topics of one source cluster, copied to one target cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.start import Start
from reconciler.model.names.selection import Selection
from reconciler.model.names.topic_names import is_heartbeats
from reconciler.model.policies.policy import ReplicationPolicy

OffsetsMode = Literal["auto", "identical", "translated"]
OFFSETS_MODES: tuple[str, ...] = get_args(OffsetsMode)

Delivery = Literal["exactly-once", "at-least-once"]
DELIVERIES: tuple[str, ...] = get_args(Delivery)

Fill = Literal["auto", "markers", "transactions"]
FILLS: tuple[str, ...] = get_args(Fill)

IsolationLevel = Literal["read_committed", "read_uncommitted"]

OnDataLoss = Literal["park", "continue"]
ON_DATA_LOSS: tuple[str, ...] = get_args(OnDataLoss)

OnRecreate = Literal["park", "restart"]
ON_RECREATE: tuple[str, ...] = get_args(OnRecreate)

TARGETS_DEFAULT = -1
"""A replication factor: the default of the target's brokers."""

DEFAULT_BATCH_SIZE = 256 * 1024
DEFAULT_LARGEST_BATCH = 128 * 1024 * 1024
DEFAULT_LINGER = 0.007
DEFAULT_COMMIT_INTERVAL = 0.5
DEFAULT_REFRESH_INTERVAL = 60.0
DEFAULT_HEARTBEATS = 1.0
"""Seconds between two heartbeats of a flow that has some and does not set the interval: MirrorMaker 2's default."""


@dataclass(frozen=True)
class Flow:
    """One declared or expanded flow, every default filled in.

    Attributes:
        name: unique in the topology, by default `<source>-<target>`.
        source: alias of the source cluster.
        target: alias of the target cluster.
        topics: which topics of the source are taken.
        policy: how remote topics are named.
        offsets: how the copy's offsets relate to the original's.
        delivery: whether each record counts once, or is perhaps repeated, which needs no transactions at the target.
        start: where a copy begins that has no position yet.
        isolation_level: which records of transactions are read where offsets are translated; else committed ones.
        fill: how offsets that hold no record are filled in the copy; `auto` is markers where the target allows them.
        on_data_loss: what follows when records were deleted at the source before they were copied.
        on_recreate: what follows when a source topic was deleted and made again.
        quota: the most that all its tasks together copy, in bytes per second; None means no limit.
        batch_size: up to how many bytes small source batches are merged into one; 0 merges none.
        largest_batch: the most bytes that a batch of the source may have, as it comes or decompressed.
        compression: of the copy's batches; `source` leaves each as it is.
        linger: for how many seconds a task rests at most between two reads while records trickle in.
        commit_interval: for how many seconds records with translated offsets gather before they are committed.
        dlq: topic of the target where records are put aside that the target will never take; None parks them.
        tasks: how many tasks replicate it.
        partitions: how many remote topics have at least; None means as many as their originals.
        replication_factor: of remote topics, or `TARGETS_DEFAULT`; None means the source's, as far as brokers go.
        refresh_interval: seconds between two refreshes: new topics and partitions, and what changed on originals.
        limits: the most that it has at the target.
        configs: which settings copies get.
        create: whether its copies are made and changed; otherwise another tool declares them.
        acls: whether copies get the originals' ACLs, as far as they are about reading.
        groups: which consumer groups it takes along.
        heartbeats: seconds between two signs of life in the target's topic of heartbeats; with 0 each round of groups
            writes one, and nothing else does.
        enabled: whether it runs.
        failed_over: whether its consumers and producers are declared to be at the target: then it waits for failback.
        origin: what made it, for messages: `flows[2]`, `replication[0] (active-active)`.
    """

    name: str
    source: str
    target: str
    topics: Selection
    policy: ReplicationPolicy = field(default_factory=ReplicationPolicy)
    offsets: OffsetsMode = "auto"
    delivery: Delivery = "exactly-once"
    start: Start = field(default_factory=Start)
    isolation_level: IsolationLevel = "read_committed"
    fill: Fill = "auto"
    on_data_loss: OnDataLoss = "park"
    on_recreate: OnRecreate = "park"
    quota: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    largest_batch: int = DEFAULT_LARGEST_BATCH
    compression: str = "source"
    linger: float = DEFAULT_LINGER
    commit_interval: float = DEFAULT_COMMIT_INTERVAL
    dlq: str | None = None
    tasks: int = 1
    partitions: int | None = None
    replication_factor: int | None = None
    refresh_interval: float = DEFAULT_REFRESH_INTERVAL
    limits: Limits = field(default_factory=Limits)
    configs: ConfigRules = field(default_factory=ConfigRules)
    acls: bool = True
    groups: GroupRules = field(default_factory=GroupRules)
    heartbeats: float = 0.0
    enabled: bool = True
    failed_over: bool = False
    create: bool = True
    origin: str = ""

    @property
    def checkpoints_separator(self) -> str:
        """The separator in the name of the topic of its checkpoints: MirrorMaker 2's, under every policy.

        With another one it could not be made beside what MirrorMaker 2 has left: to brokers dot and underscore are one.
        """
        return self.policy.separator

    @property
    def has_service(self) -> bool:
        """Whether there is work beside copying: consumer groups to sync, or heartbeats to write."""
        return bool(self.groups.include) or self.heartbeats > 0

    @property
    def repeats(self) -> bool:
        """Whether records may be repeated: then translated offsets take no transactions."""
        return self.delivery == "at-least-once"

    @property
    def may_begin_identical(self) -> bool:
        """Whether a copy that is begun now may get identical offsets; those that were begun so keep them."""
        if self.offsets != "auto":
            return self.offsets == "identical"
        return not self.repeats and self.start.at in ("earliest", "offsets")

    @property
    def demands_markers(self) -> bool:
        """Whether gaps must be filled by markers in copies that may be begun; only identical offsets have gaps."""
        return self.fill == "markers" and self.may_begin_identical

    def without(self, topics: Collection[str]) -> Flow:
        """Return this flow, taking none of `topics` (names on the source cluster) whatever else it takes."""
        names = tuple(name for name in topics if name not in self.topics.exclude)
        return replace(self, topics=replace(self.topics, exclude=(*self.topics.exclude, *names))) if names else self

    def remote_topic(self, topic: str) -> str:
        """Return the remote topic's name for the original `topic`.

        Raises:
            PolicyFault: `topic` is nameless; of topics that the flow takes none is.
        """
        return self.policy.remote_topic(self.source, topic)

    def lacks_dlq(self, target: Cluster) -> Problem:
        """Return the problem that the topic for dead letters is not there.

        Args:
            target: the target cluster.
        """
        return Problem(
            "AB363",
            f"{target.where}, topic {self.dlq}",
            f"flow {self.name} puts aside there what the target never takes (dlq), and it does not exist, or "
            f"{target.user} is not allowed DESCRIBE on topic {self.dlq}",
            "create it, as large records as the source allows should fit (max.message.bytes), correct dlq, or grant it",
        )

    def nameless(self, topic: str) -> str | None:
        """Return why the policy gives the copy of `topic` no name that could be used; None where it does."""
        return self.policy.fault(self.source, topic)

    def takes(self, topic: str, aliases: Collection[str]) -> bool:
        """Return whether this flow replicates `topic`: it is selected, and its copy has a name.

        Args:
            topic: a name on the source cluster.
            aliases: the clusters of the topology.
        """
        return self.wants(topic, aliases) and self.nameless(topic) is None

    def hands_over(self, topic: str, aliases: Collection[str]) -> bool:
        """Return whether the readers and writers of `topic` change sides with this flow: it takes it, and for people.

        Tools write heartbeats at each cluster, before a failover and after it: these are copied, and their copies are
        nothing that is continued, or that could be left behind.

        Args:
            topic: a name on the source cluster.
            aliases: the clusters of the topology.
        """
        return self.takes(topic, aliases) and not is_heartbeats(topic, self.policy.separator)

    def wants(self, topic: str, aliases: Collection[str]) -> bool:
        """Return whether this flow should replicate `topic`.

        A topic whose name shows that it came through the target goes no further, as in MirrorMaker 2
        (`MirrorSourceConnector.isCycle`), or active-active pairs would echo for ever.

        Args:
            topic: a name on the source cluster.
            aliases: the clusters of the topology.
        """
        if not self.topics.matches(topic) or self.policy.never_copies(topic):
            return False
        return self.target not in self.policy.hops(topic, aliases)
