"""The internal topics on a target: their names and settings.

`home` decides whether a topology has topics of its own there or still the shared ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import SHARED_NAMES, SHARED_PROBE_NAMES, StateNames, probe_names, state_names
from reconciler.state.confluent import replicas
from reconciler.state.journals import records
from reconciler.state.journals.encoding import Fits

_LARGEST_VALUE = 2**20
LARGEST_WHOLE = 8 * 2**20
"""The most bytes of any value: the shares of a flow of 15,000 topics with the longest names, 50,000 with usual."""
_LARGEST = {"owned": LARGEST_WHOLE, "control": LARGEST_WHOLE}
# Statuses and pages are checked by their reader.
_FITS: dict[str, Fits] = {"owned": records.owned, "control": records.control, "copies": records.copies}
_BASE_CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
# The active segment is never compacted: what was written over or taken back stands in it for as long.
_HOUR = {"segment.ms": "3600000"}
# A value a second for each task: small segments, so that reading it from the start stays quick.
_SMALL = {"segment.bytes": "4194304", "segment.ms": "600000"}
# Managed clusters may not let this key be set.
_UNCLEAN = "unclean.leader.election.enable"
_CONFIG_REFUSALS = frozenset({KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_REQUEST})


@dataclass(frozen=True)
class JournalTopic:
    """A journal's topic: its name and what it is created with beside compaction.

    Attributes:
        name: of the topic.
        config: topic-level settings.
        is_guarded: whether what is acknowledged there must survive the loss of a broker, as it does in copies.
        largest: how many bytes a value may have: larger ones are neither written nor read.
        fits: raises Misfit for a value that does not fit; None where the reader of the values checks them.
    """

    name: str
    config: Mapping[str, str]
    is_guarded: bool = False
    largest: int = _LARGEST_VALUE
    fits: Fits | None = None

    def full_config(self, count: int) -> dict[str, str]:
        """Return the topic-level configuration it is created with, with so many replicas."""
        guards = {"min.insync.replicas": "2" if count >= replicas.USUAL else "1", _UNCLEAN: "false"}
        return _BASE_CONFIG | dict(self.config) | (guards if self.is_guarded else {})

    def at(self, _cluster: Cluster, _timeout: float) -> JournalTopic:
        """Return this topic: its name is the same on all clusters."""
        return self


class JournalRecord(Protocol):
    """Which topic a journal is on a cluster: a `JournalTopic`, or a `home.JournalPlace`, which reads that first."""

    def at(self, cluster: Cluster, timeout: float, /) -> JournalTopic:
        """Return the topic.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: what `clients.ask` raises.
        """


@dataclass(frozen=True)
class Journals:
    """The journals of a topology on one target, and what its probe uses there.

    Attributes:
        owned: owned topics and ACLs, declarations in force, failovers, the lock of apply.
        status: statuses of tasks.
        control: commands to tasks.
        copies: records of copies.
        scratch: name of the topic that the probe writes to.
        probe: in place of which topology and flow it has its transactional ids.
        is_own: whether they are the topology's own; else all topologies that have not moved share them.
    """

    owned: JournalTopic
    status: JournalTopic
    control: JournalTopic
    copies: JournalTopic
    scratch: str
    probe: tuple[str, str]
    is_own: bool

    @property
    def probes(self) -> JournalTopic:
        """The journal with what the cluster was seen to do; the replicator writes it."""
        return self.copies if self.is_own else self.owned

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the journals, that of ownership first."""
        return tuple(topic.name for topic in self.all)

    @property
    def all(self) -> tuple[JournalTopic, ...]:
        """The journals, that of ownership first."""
        return self.owned, self.status, self.control, self.copies

    def named(self, name: str) -> JournalTopic:
        """Return the journal of a name; KeyError where none of them has it."""
        return {topic.name: topic for topic in self.all}[name]


def own(topology: str) -> Journals:
    """Return the journals of a topology that has topics of its own."""
    configs = {"owned": _HOUR, "status": _SMALL, "control": _HOUR, "copies": _HOUR}
    return _journals(state_names(topology), probe_names(topology), configs, is_own=True)


def _journals(
    names: StateNames, probe: tuple[str, str], configs: Mapping[str, Mapping[str, str]], is_own: bool
) -> Journals:
    owned, status, control, copies = (
        JournalTopic(name, configs.get(role, {}), is_own, _LARGEST.get(role, _LARGEST_VALUE), _FITS.get(role))
        for role, name in zip(StateNames._fields[:4], names.journals, strict=True)
    )
    return Journals(owned, status, control, copies, names.scratch, probe, is_own)


SHARED = _journals(SHARED_NAMES, SHARED_PROBE_NAMES, {"status": _SMALL, "control": _HOUR}, is_own=False)
"""The journals that a release before topics per topology made, as it made them."""


def make(
    admin: AdminClient, topic: JournalTopic, seen: ClusterMetadata, timeout: float, declared: int | None = None
) -> bool:
    """Make a journal's topic with three replicas, or as many as the cluster has brokers; return whether this call did.

    Where the cluster refuses `unclean.leader.election.enable` it is made without.

    Args:
        admin: of the cluster.
        topic: which one.
        seen: the cluster's topics and brokers, as they are now.
        timeout: seconds to wait for the cluster.
        declared: replication factor in the cluster's declaration.

    Raises:
        KafkaException: the cluster does not make it; INVALID_REPLICATION_FACTOR while too many brokers are down.
    """

    def create(count: int) -> None:
        """Raises KafkaException."""
        config = topic.full_config(count)
        try:
            _create(admin, NewTopic(topic.name, 1, count, config=config), timeout)
        except KafkaException as error:
            if error.args[0].code() not in _CONFIG_REFUSALS or config.pop(_UNCLEAN, None) is None:
                raise
            _create(admin, NewTopic(topic.name, 1, count, config=config), timeout)

    try:
        replicas.make(seen, create, declared)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def _create(admin: AdminClient, topic: NewTopic, timeout: float) -> None:
    """Make a topic. Raises KafkaException."""
    # No limit for the future: the request has one of its own, and ends with a reason.
    asked = admin.create_topics([topic], operation_timeout=timeout, request_timeout=timeout)
    asked[topic.topic].result()
