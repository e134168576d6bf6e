"""How remote topics are named, and which source a remote name stands for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import is_internal, is_reserved
from reconciler.model.names.topic_names import is_heartbeats, is_mirrors_own, name_fault
from reconciler.model.policies.custom import PolicyFault
from reconciler.model.policies.types import TYPES, DeclaredPolicy, PolicyType, without_prefix

_SHOWN_LENGTH = 60


@dataclass(frozen=True)
class ReplicationPolicy(DeclaredPolicy):
    """The rule from an original topic's name to its remote topic's; the type of the policy decides (`policies.types`).

    Whatever the type, topics of heartbeats get the prefix (as under MirrorMaker 2's `IdentityReplicationPolicy`): each
    cluster has its own, and their names show the way that records took.
    """

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ReplicationPolicy:
        """Read what `dataclasses.asdict` gave, back from JSON.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape, or of a type that this version lacks.
        """
        if value["kind"] not in TYPES:
            message = f"no policy type {value['kind']!r}"
            raise ValueError(message)
        rules = tuple(RenameRule(**rule) for rule in value["rules"])
        options = tuple((str(key), str(text)) for key, text in value["options"])
        return cls(**{**value, "rules": rules, "options": options})

    @cached_property
    def _type(self) -> PolicyType:
        return TYPES[self.kind](self)

    @property
    def is_written_out(self) -> bool:
        """Whether users choose the names: any name is possible, and few of them contain the alias of their source."""
        return self._type.is_written_out

    @property
    def keeps_names(self) -> bool:
        """Whether every copy has its original's name."""
        return self._type.keeps_names

    @property
    def prefixes(self) -> bool:
        """Whether topics get the prefix, at least some."""
        return self._type.prefixes

    @property
    def always_prefixes(self) -> bool:
        """Whether every copy has the prefix."""
        return self._type.always_prefixes

    @property
    def gives_any_name(self) -> bool:
        """Whether no ACL pattern narrower than all topics covers the copies."""
        return self._type.gives_any_name

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that `topic` of `source_alias` has at the target.

        Raises:
            PolicyFault: the policy class has no answer.
        """
        if is_heartbeats(topic, self.separator):
            return f"{source_alias}{self.separator}{topic}"
        return self._type.remote_topic(source_alias, topic)

    def rule_for(self, topic: str) -> RenameRule | None:
        """Return the rename rule that decides about `topic`, if one does."""
        return None if is_heartbeats(topic, self.separator) else self._type.rule_for(topic)

    def acl_patterns(
        self, source_alias: str, original: ResourcePattern, is_taken: Callable[[str], bool]
    ) -> Iterator[ResourcePattern]:
        """Yield patterns that cover the copies of the topics that a prefix, or `*`, covers.

        Args:
            source_alias: the cluster copied from.
            original: covers the originals; no single topic.
            is_taken: whether a topic is selected by the flow.
        """
        return self._type.acl_patterns(source_alias, original, is_taken)

    def describe(self, source_alias: str) -> str:
        """Return how copies are named, in a few words."""
        return self._type.describe(source_alias)

    def describe_unmatched(self) -> str:
        """Return which part of the policy names a topic that no rule matches."""
        return self._type.describe_unmatched()

    def remedy(self) -> str:
        """Return how a user gets other names, as a remedy."""
        return self._type.remedy()

    def type_fault(self) -> str | None:
        """Return why no name can be had from this policy; None where names can."""
        return self._type.fault()

    def fault(self, source_alias: str, topic: str) -> str | None:
        """Return why the copy of `topic` has no name that could be used; None where it has one."""
        try:
            remote = self.remote_topic(source_alias, topic)
            self._upstream(topic, ())
        except PolicyFault as fault:
            return str(fault)
        wrong = name_fault(remote)
        if wrong:
            return f"{topic} of {source_alias} would be called {_shortened(remote)}: its name {wrong}"
        # Under the other kinds only a topic that is called like an internal one has such a copy.
        looks_internal = is_reserved(remote) or (is_internal(remote) and not is_internal(topic))
        if self.is_written_out and (self.never_copies(remote) or looks_internal):
            return f"{topic} of {source_alias} would be called {remote}: that is the name of an internal topic"
        return None

    def never_copies(self, topic: str) -> bool:
        """Return whether a topic is one of MirrorMaker 2's own, by its separator: no flow takes one."""
        return is_mirrors_own(topic, self.separator)

    def original(self, source_alias: str, remote: str) -> str | None:
        """Return the topic of `source_alias` whose copy is named `remote`; None where the name does not show it."""
        if self.keeps_names and not is_heartbeats(remote, self.separator):
            return remote
        try:
            said = self._upstream(remote, (source_alias,))
            # By a rule it may have another name than the prefix suggests.
            is_so = said and said[1] and said[0] == source_alias and self.remote_topic(*said) == remote
        except PolicyFault:
            return None
        return said[1] if said and is_so else None

    def may_name(self, source_alias: str, remote: str) -> bool:
        """Return whether some topic of `source_alias` could have the copy `remote`."""
        return self.original(source_alias, remote) is not None or self._type.may_name(remote)

    def hops(self, topic: str, aliases: Collection[str]) -> tuple[str, ...]:
        """Return the aliases in a topic's name, through which it came, nearest first.

        Args:
            topic: a name on some cluster, such as `b.a.orders`.
            aliases: the clusters of the topology; only they count as hops, so `payments.eu` has none.
        """
        found: list[str] = []
        seen = {topic}
        try:
            while said := self._upstream(topic, aliases):
                alias, topic = said
                if alias not in aliases or topic in seen:
                    break
                seen.add(topic)
                found.append(alias)
        except PolicyFault:
            # `fault` reports it, and then the topic is not taken at all.
            pass
        return tuple(found)

    def _upstream(self, topic: str, aliases: Collection[str]) -> tuple[str, str] | None:
        """Return the cluster of `aliases` from which a topic was copied according to its name, and the name there."""
        if is_heartbeats(topic, self.separator):
            return without_prefix(topic, self.separator, aliases)
        return self._type.upstream(topic, aliases)


def _shortened(name: str) -> str:
    return repr(name) if len(name) <= _SHOWN_LENGTH else f"{name[:_SHOWN_LENGTH]!r}…"
