"""The topic names of a target cluster and what they mean, as in MirrorMaker 2. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reconciler.model.names.own_names import CHECKPOINTS_SUFFIX, DEFAULT_SEPARATOR, checkpoints_topic
from reconciler.model.names.topic_names import HEARTBEATS, is_heartbeats
from reconciler.model.policies.policy import ReplicationPolicy

_CHECKPOINTS = CHECKPOINTS_SUFFIX
_INTERNAL = ("internal",)

__all__ = ["DEFAULT_SEPARATOR", "MirrorTopicNames", "checkpoints_topic", "hops"]


@dataclass(frozen=True)
class MirrorTopicNames:
    """Interprets the topic names of one target cluster.

    Attributes:
        policies: of the flows into it; the policy that finds the most hops in a name counts.
        clusters: aliases that count as hops. None takes any prefix for one, as MirrorMaker's client does, so that
            `payments.eu` comes from a cluster `payments`; topics under rename rules or a class have then no hops.
    """

    policies: tuple[ReplicationPolicy, ...] = (ReplicationPolicy(),)
    clusters: tuple[str, ...] | None = None

    @property
    def separators(self) -> tuple[str, ...]:
        """The separators that names of internal topics may have, those of policies first."""
        return tuple(dict.fromkeys([*(policy.separator for policy in self.policies), DEFAULT_SEPARATOR]))

    def checkpoints_topics(self, source: str) -> tuple[str, ...]:
        """Return which topics may hold the checkpoints of groups of `source`, the likeliest first."""
        return tuple(checkpoints_topic(source, separator) for separator in self.separators)

    def is_checkpoints(self, topic: str) -> bool:
        """Return whether a topic holds checkpoints."""
        return any(self._ends_with(topic, separator, _CHECKPOINTS) for separator in self.separators)

    def is_internal(self, topic: str) -> bool:
        """Return whether a topic is one of Kafka's, Connect's, MirrorMaker's or ours."""
        if topic.startswith(("__", ".")) or topic.endswith("-internal"):
            return True
        return any(self._ends_with(topic, separator, _INTERNAL) for separator in self.separators)

    def is_heartbeats(self, topic: str) -> bool:
        """Return whether a topic holds heartbeats: the cluster's own, or copied ones."""
        return topic == HEARTBEATS or any(self._are_heartbeats(policy, topic) for policy in self.policies)

    def sources(self, topic: str) -> tuple[str, ...]:
        """Return the clusters through which a topic came by its name, nearest first; none for an original."""
        return max((self._sources(policy, topic) for policy in self.policies), key=len, default=())

    @staticmethod
    def _ends_with(topic: str, separator: str, parts: tuple[str, ...]) -> bool:
        return topic.endswith("".join(separator + part for part in parts))

    def _are_heartbeats(self, policy: ReplicationPolicy, topic: str) -> bool:
        if not is_heartbeats(topic, policy.separator):
            return False
        # Where the clusters are known, another topic may only end like theirs.
        way = policy.hops(topic, self.clusters or ())
        return self.clusters is None or policy.separator.join((*way, HEARTBEATS)) == topic

    def _sources(self, policy: ReplicationPolicy, topic: str) -> tuple[str, ...]:
        if self.clusters is not None:
            return policy.hops(topic, self.clusters)
        if policy.always_prefixes or is_heartbeats(topic, policy.separator):
            return tuple(_prefixes(topic, policy.separator))
        return ()


def _prefixes(topic: str, separator: str) -> Iterator[str]:
    """Yield what is before each separator, each once: a name that repeats itself goes round in a circle."""
    seen: set[str] = set()
    while True:
        alias, found, rest = topic.partition(separator)
        if not (found and alias and rest) or alias in seen:
            return
        yield alias
        seen.add(alias)
        topic = rest


def hops(sources: Collection[tuple[str, ...]], upstream: str) -> int | None:
    """Return the fewest hops between a cluster and `upstream`; None where there is no way."""
    return min((way.index(upstream) + 1 for way in sources if upstream in way), default=None)
