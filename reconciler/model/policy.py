"""How remote topics are named, and what a name says about where a topic came from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

PolicyKind = Literal["default", "identity"]
POLICY_KINDS: tuple[str, ...] = get_args(PolicyKind)


@dataclass(frozen=True)
class ReplicationPolicy:
    """The rule from an original topic's name to its remote topic's.

    Attributes:
        kind: `default` puts the source alias and the separator before the name (MirrorMaker 2's
            `DefaultReplicationPolicy`); `identity` keeps the name.
        separator: what stands between alias and name.
    """

    kind: PolicyKind = "default"
    separator: str = "."

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that `topic` of `source_alias` has at the target."""
        return topic if self.kind == "identity" else f"{source_alias}{self.separator}{topic}"

    def original(self, source_alias: str, remote: str) -> str | None:
        """Return which topic of `source_alias` has the name `remote` at the target; None where none has."""
        prefix = "" if self.kind == "identity" else f"{source_alias}{self.separator}"
        return remote[len(prefix) :] if remote.startswith(prefix) and remote != prefix else None

    def hops(self, topic: str, aliases: Collection[str]) -> tuple[str, ...]:
        """Return the aliases that a topic's name says it came through, nearest first.

        Args:
            topic: a name on some cluster, such as `b.a.orders`.
            aliases: the clusters of the topology; only they count as hops, so `payments.eu` has none.
        """
        found: list[str] = []
        while self.kind == "default":
            # The longest alias first: "eu" and "eu.west" may both be clusters.
            prefix = max((a for a in aliases if topic.startswith(a + self.separator)), key=len, default=None)
            if prefix is None:
                break
            found.append(prefix)
            topic = topic[len(prefix) + len(self.separator) :]
        return tuple(found)
