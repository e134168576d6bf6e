"""How remote topics are named, and what a name says about where a topic came from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from reconciler.model.names import policy_class
from reconciler.model.names.policy_class import Options, PolicyFault
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import is_internal, is_literal, is_reserved
from reconciler.model.names.topic_names import is_heartbeats, is_mirrors_own, name_fault

PolicyKind = Literal["default", "identity", "rename", "class"]
POLICY_KINDS: tuple[str, ...] = get_args(PolicyKind)

Otherwise = Literal["default", "identity"]
OTHERWISE: tuple[str, ...] = get_args(Otherwise)

_WRITTEN_OUT = ("rename", "class")
_SHOWN_LENGTH = 60


@dataclass(frozen=True)
class ReplicationPolicy:
    """The rule from an original topic's name to its remote topic's.

    Whatever the kind, topics of heartbeats get the prefix (as under MirrorMaker 2's `IdentityReplicationPolicy`): each
    cluster has its own, and they tell the way that records took.

    Attributes:
        kind: `default` puts the source alias and the separator before the name (MirrorMaker 2's
            `DefaultReplicationPolicy`); `identity` keeps the name; `rename` follows rules, the first that matches;
            `class` asks a Python class.
        separator: what stands between alias and name.
        rules: of kind `rename`.
        otherwise: of kind `rename`, what becomes of topics that no rule matches.
        entry_point: of kind `class`, its name in the group `anabranch.policies`.
        options: of kind `class`, what the class is made with.
        place: where it is declared, for messages; two policies that differ in it alone are equal.
    """

    kind: PolicyKind = "default"
    separator: str = "."
    rules: tuple[RenameRule, ...] = ()
    otherwise: Otherwise = "default"
    entry_point: str = ""
    options: Options = ()
    place: str = field(default="", compare=False)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ReplicationPolicy:
        """Read what `dataclasses.asdict` gave, back from JSON.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        rules = tuple(RenameRule(**rule) for rule in value["rules"])
        options = tuple((str(key), str(text)) for key, text in value["options"])
        return cls(**{**value, "rules": rules, "options": options})

    @property
    def is_written_out(self) -> bool:
        """Whether names are what somebody wrote: anything is possible, and few of them say where they are from."""
        return self.kind in _WRITTEN_OUT

    @property
    def prefixes(self) -> bool:
        """Whether topics get the prefix, at least some."""
        return self.kind == "default" or (self.kind == "rename" and self.otherwise == "default")

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that `topic` of `source_alias` has at the target.

        Raises:
            PolicyFault: the policy class has no answer.
        """
        if self.kind == "default" or is_heartbeats(topic, self.separator):
            return f"{source_alias}{self.separator}{topic}"
        if self.kind == "class":
            return policy_class.remote_topic(self.entry_point, self.options, source_alias, topic)
        rule = self.rule_for(topic)
        renamed = rule.renamed(topic) if rule else None
        if renamed is not None:
            return renamed
        return f"{source_alias}{self.separator}{topic}" if self.prefixes else topic

    def rule_for(self, topic: str) -> RenameRule | None:
        """Return the rename rule that decides about `topic`, if one does."""
        if self.kind != "rename" or is_heartbeats(topic, self.separator):
            return None
        named = self._named.get(topic, len(self.rules))
        before = (index for index in self._expressions if index < named and self.rules[index].matches(topic))
        index = next(before, named)
        return self.rules[index] if index < len(self.rules) else None

    @cached_property
    def _named(self) -> dict[str, int]:
        """The first rule for each plain name."""
        return {rule.pattern: index for index, rule in reversed([*enumerate(self.rules)]) if is_literal(rule.pattern)}

    @cached_property
    def _expressions(self) -> tuple[int, ...]:
        """The rules with regular expressions."""
        return tuple(index for index, rule in enumerate(self.rules) if not is_literal(rule.pattern))

    def fault(self, source_alias: str, topic: str) -> str | None:
        """Say why the copy of `topic` has no name that could be used; None where it has one."""
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
        """Tell whether a topic is one of MirrorMaker 2's own, by its separator: no flow takes one."""
        return is_mirrors_own(topic, self.separator)

    def original(self, source_alias: str, remote: str) -> str | None:
        """Return which topic of `source_alias` the name `remote` says it is the copy of; None where it does not say."""
        if self.kind == "identity" and not is_heartbeats(remote, self.separator):
            return remote
        try:
            said = self._upstream(remote, (source_alias,))
            # By a rule it may have another name than the prefix says.
            is_so = said and said[1] and said[0] == source_alias and self.remote_topic(*said) == remote
        except PolicyFault:
            return None
        return said[1] if said and is_so else None

    def may_name(self, source_alias: str, remote: str) -> bool:
        """Tell whether some topic of `source_alias` could have the copy `remote`."""
        if self.original(source_alias, remote) is not None:
            return True
        if self.kind == "rename":
            return self.otherwise == "identity" or any(rule.may_give(remote) for rule in self.rules)
        try:
            return self.kind == "class" and self._upstream(remote, ()) is None
        except PolicyFault:
            return True

    def hops(self, topic: str, aliases: Collection[str]) -> tuple[str, ...]:
        """Return the aliases that a topic's name says it came through, nearest first.

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
            # `fault` tells of it, and then the topic is not taken at all.
            pass
        return tuple(found)

    def _upstream(self, topic: str, aliases: Collection[str]) -> tuple[str, str] | None:
        """Return the cluster of `aliases` that a name says it was copied from, and the name there."""
        heartbeats = is_heartbeats(topic, self.separator)
        if self.kind == "class" and not heartbeats:
            return policy_class.upstream(self.entry_point, self.options, topic)
        if not (self.prefixes or heartbeats):
            return None
        # The longest alias first: "eu" and "eu.west" may both be clusters.
        alias = max((a for a in aliases if topic.startswith(a + self.separator)), key=len, default=None)
        return None if alias is None else (alias, topic[len(alias) + len(self.separator) :])


def _shortened(name: str) -> str:
    return repr(name) if len(name) <= _SHOWN_LENGTH else f"{name[:_SHOWN_LENGTH]!r}…"
