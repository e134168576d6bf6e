"""What a topology declares on a target cluster: its remote topics, complete to the last setting.

`plan` derives these values from the declaration and the observed sources; both provisioners carry them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Literal

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.own_access import PADDING_OPERATIONS, TOPIC_OPERATIONS
from reconciler.model.recorded.ownership import OwnedTopic

_NUMBER = re.compile(r"[-+]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,2})?")
_EXACT = Context(prec=100)

Reason = Literal["source", "source-default", "identical-offsets", "declared", "kept"]
"""Why a remote topic has a setting: it is set on the original topic; it is what the source's brokers default to, which
the target's brokers must not decide; identical offsets need it; the flow declares it; or it was made with it, and does
not follow its original."""


@dataclass(frozen=True)
class TopicSetting:
    """One topic-level configuration value of a remote topic.

    Attributes:
        key: Kafka's name of it.
        value: as Kafka writes it.
        reason: why it is set.
        floor: whether a higher number at the target is as good, and left alone.
    """

    key: str
    value: str
    reason: Reason
    floor: bool = False

    def accepts(self, found: str | None) -> bool:
        """Return whether the value found at the target will do."""
        if found is None:
            return False
        if self.floor and _is_number(found) and _is_number(self.value):
            return int(found) >= int(self.value)
        return canonical(found) == canonical(self.value)


@dataclass(frozen=True)
class DesiredTopic:
    """One remote topic as it should be.

    Attributes:
        cluster: alias of the target.
        name: the remote topic.
        flow: name of the flow that fills it.
        source: alias of the source cluster.
        source_topic: the topic it is a copy of.
        source_topic_id: that topic's id.
        partitions: as many as the original has.
        replication_factor: for its creation; an existing topic keeps its own.
        offsets: how the copy's offsets relate to the original's.
        settings: by key, in the order of their names.
        is_made: whether applies make and change it; otherwise another tool declares it.
        padding: offsets that are filled before its first record, by partition. Logs are trimmed all the time, so two
            topics that differ in nothing else are equal.
    """

    cluster: str
    name: str
    flow: str
    source: str
    source_topic: str
    source_topic_id: str
    partitions: int
    replication_factor: int
    offsets: str
    settings: tuple[TopicSetting, ...]
    padding: Mapping[int, int] = field(default_factory=dict, compare=False)
    is_made: bool = True

    @property
    def operations(self) -> tuple[str, ...]:
        """What the replicator must be allowed to do with it."""
        return (*TOPIC_OPERATIONS, *(PADDING_OPERATIONS if self.padding else ()))

    @property
    def configs(self) -> Mapping[str, str]:
        """The settings as Kafka takes them."""
        return {setting.key: setting.value for setting in self.settings}

    def owned(self, topology: str, digest: str, topic_id: str | None) -> OwnedTopic:
        """Return the ownership record of this topic; `topic_id` is None while it is only meant."""
        return OwnedTopic(
            name=self.name,
            topic_id=topic_id,
            topology=topology,
            digest=digest,
            flow=self.flow,
            source=self.source,
            source_topic=self.source_topic,
            source_topic_id=self.source_topic_id,
            partitions=self.partitions,
            offsets=self.offsets,
            configs=dict(self.configs),
            replicas=self.replication_factor,
        )


@dataclass(frozen=True)
class WholeTopic:
    """A remote topic with everything that stands on it, for a provisioner that replaces all settings at once.

    Attributes:
        cluster: alias of the target.
        name: the remote topic.
        flow: name of the flow that fills it, or filled it.
        partitions: never fewer than it has.
        replication_factor: its own where it exists.
        configs: what is desired, and what others have set there.
    """

    cluster: str
    name: str
    flow: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, order=True)
class WholeAcl:
    """An ACL of copies that is ours, for a provisioner that takes what is not named for something to delete.

    Attributes:
        cluster: alias of the target.
        binding: the ACL.
        flow: name of the flow whose originals have it, or had it.
    """

    cluster: str
    binding: Binding
    flow: str


def canonical(value: str) -> str:
    """Return a configuration value in one spelling, as brokers answer with another one than they were given.

    They read a value as its setting's type and write that: of 0.50 comes 0.5, of TRUE true, of +7 7. Lists, such as
    `compact,delete`, have no order.
    """
    return ",".join(sorted(_spelled(item.strip()) for item in value.split(",")))


def same_configs(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether two topics have the same settings, however their values are written."""
    return one.keys() == other.keys() and all(canonical(one[key]) == canonical(other[key]) for key in one)


def _spelled(item: str) -> str:
    if item.lower() in ("true", "false"):
        return item.lower()
    if _NUMBER.fullmatch(item) is None:
        return item
    # Exact: a float would take the largest numbers for one.
    number = Decimal(item)
    return format(number.normalize(_EXACT), "f") if number else "0"


def _is_number(value: str) -> bool:
    return value.lstrip("-").isdecimal()
