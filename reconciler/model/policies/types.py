"""The types of replication policies, one class each: how copies are named, and all that depends on the type.

A new type is a class here with its entry in `TYPES`, and its name in the schema of topology files. `ReplicationPolicy`
adds what holds for all types: heartbeats keep the prefix of their source, and a name must be one that Kafka accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, get_args

from reconciler.model.acls.requirements import ALL, ResourcePattern
from reconciler.model.names.renames import GROUP, RenameRule
from reconciler.model.names.selection import is_literal
from reconciler.model.names.topic_names import is_heartbeats
from reconciler.model.policies import custom
from reconciler.model.policies.custom import Options, PolicyFault

PolicyKind = Literal["default", "identity", "rename", "class"]
POLICY_KINDS: tuple[PolicyKind, ...] = get_args(PolicyKind)

Otherwise = Literal["default", "identity"]
OTHERWISE: tuple[Otherwise, ...] = get_args(Otherwise)


@dataclass(frozen=True)
class DeclaredPolicy:
    """A policy as it is declared, and as it is written to JSON.

    Attributes:
        kind: the type: `default` puts the source alias and the separator before the name (MirrorMaker 2's
            `DefaultReplicationPolicy`); `identity` keeps the name; `rename` follows rules, the first that matches;
            `class` calls a Python class.
        separator: stands between alias and name.
        rules: of kind `rename`.
        otherwise: of kind `rename`, the policy for topics that no rule matches.
        entry_point: of kind `class`, its name in the group `anabranch.policies`.
        options: of kind `class`, the arguments of the class.
        place: where it is declared, for messages; two policies that differ in it alone are equal.
    """

    kind: PolicyKind = "default"
    separator: str = "."
    rules: tuple[RenameRule, ...] = ()
    otherwise: Otherwise = "default"
    entry_point: str = ""
    options: Options = ()
    place: str = field(default="", compare=False)


class PolicyType:
    """What a type decides. Topics of heartbeats do not reach `remote_topic`, `rule_for` and `upstream`."""

    needs: ClassVar[str | None] = None
    """The field of `policy` that this type cannot do without."""
    example: ClassVar[str] = ""
    """How that field is written."""
    own_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of `policy` that no other type takes."""
    mirrormaker_class: ClassVar[str | None] = None
    """MirrorMaker 2's class that names copies in the same way."""
    is_written_out: ClassVar[bool] = False
    """Whether users choose the names: any name is possible, and few of them contain the alias of their source."""
    keeps_names: ClassVar[bool] = False
    """Whether every copy has its original's name."""
    always_prefixes: ClassVar[bool] = False
    """Whether every copy has the prefix."""
    gives_any_name: ClassVar[bool] = False
    """Whether no ACL pattern narrower than all topics covers the copies."""

    def __init__(self, declared: DeclaredPolicy) -> None:
        self.declared = declared

    @property
    def prefixes(self) -> bool:
        """Whether copies get the prefix, at least some."""
        return self.always_prefixes

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name of the copy of `topic`.

        Raises:
            PolicyFault: a policy class returns no usable name.
        """
        raise NotImplementedError

    def rule_for(self, _topic: str) -> RenameRule | None:
        """Return the rename rule that applies to `topic`; None without one."""
        return None

    def upstream(self, topic: str, aliases: Collection[str]) -> tuple[str, str] | None:
        """Return the cluster of `aliases` that a name was copied from, and the name there; None for an original.

        Raises:
            PolicyFault: a policy class fails.
        """
        return without_prefix(topic, self.declared.separator, aliases) if self.prefixes else None

    def may_name(self, _remote: str) -> bool:
        """Return whether a topic other than the one that `upstream` finds could have the copy `remote`."""
        return False

    def acl_patterns(
        self, source_alias: str, original: ResourcePattern, is_taken: Callable[[str], bool]
    ) -> Iterator[ResourcePattern]:
        """Yield patterns that cover the copies of the topics that a prefix, or `*`, covers.

        Args:
            source_alias: the cluster copied from.
            original: covers the originals; no single topic.
            is_taken: whether a topic is selected by the flow.
        """
        begin = "" if original.is_everything else original.name
        if not self.prefixes:
            yield original
        # Heartbeats have the prefix whatever the policy, and a prefix may go on with anything: z.orders, z.heartbeats.
        yield ResourcePattern(f"{source_alias}{self.declared.separator}{begin}", prefixed=True)

    def describe(self, source_alias: str) -> str:
        """Return how copies are named, in a few words."""
        raise NotImplementedError

    def describe_unmatched(self) -> str:
        """Return which part of the policy names a topic that no rule matches."""
        return f"policy {self.declared.kind}"

    def remedy(self) -> str:
        """Return how a user gets other names."""
        return "choose another policy"

    def fault(self) -> str | None:
        """Return why no name can be had from this policy; None where names can."""
        return None


class DefaultPolicy(PolicyType):
    """The alias of the source and the separator before the name."""

    mirrormaker_class = "DefaultReplicationPolicy"
    always_prefixes = True

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name with its prefix."""
        return f"{source_alias}{self.declared.separator}{topic}"

    def describe(self, source_alias: str) -> str:
        """Return the prefix before a placeholder."""
        return f"as {self.remote_topic(source_alias, '<topic>')}"

    def remedy(self) -> str:
        """Return how names get shorter."""
        return "shorten the cluster's alias"


class IdentityPolicy(PolicyType):
    """The original's name."""

    mirrormaker_class = "IdentityReplicationPolicy"
    keeps_names = True

    def remote_topic(self, _source_alias: str, topic: str) -> str:
        """Return the name itself."""
        return topic

    def describe(self, _source_alias: str) -> str:
        """Return that names stay."""
        return "same names"


class RenamePolicy(PolicyType):
    """Rename rules, the first that matches; topics that none matches are named by `otherwise`."""

    needs = "rules"
    example = "rules: [{from: orders, to: dc1-orders}]"
    own_fields = ("rules", "otherwise")
    is_written_out = True

    @cached_property
    def _otherwise(self) -> PolicyType:
        return TYPES[self.declared.otherwise](self.declared)

    @property
    def prefixes(self) -> bool:
        """Whether topics that no rule matches get the prefix."""
        return self._otherwise.prefixes

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name by the rule that matches."""
        rule = self.rule_for(topic)
        renamed = rule.renamed(topic) if rule else None
        return self._otherwise.remote_topic(source_alias, topic) if renamed is None else renamed

    def rule_for(self, topic: str) -> RenameRule | None:
        """Return the first rule that matches."""
        rules = self.declared.rules
        named = self._named.get(topic, len(rules))
        before = (index for index in self._expressions if index < named and rules[index].matches(topic))
        index = next(before, named)
        return rules[index] if index < len(rules) else None

    @cached_property
    def _named(self) -> dict[str, int]:
        """The first rule for each plain name."""
        rules = reversed([*enumerate(self.declared.rules)])
        return {rule.pattern: index for index, rule in rules if is_literal(rule.pattern)}

    @cached_property
    def _expressions(self) -> tuple[int, ...]:
        """The rules with regular expressions."""
        return tuple(index for index, rule in enumerate(self.declared.rules) if not is_literal(rule.pattern))

    def may_name(self, remote: str) -> bool:
        """Return whether some rule could give this name, or names stay."""
        return self._otherwise.keeps_names or any(rule.may_give(remote) for rule in self.declared.rules)

    def acl_patterns(
        self, source_alias: str, original: ResourcePattern, is_taken: Callable[[str], bool]
    ) -> Iterator[ResourcePattern]:
        """Yield those for topics that no rule matches, and what each rule makes of the others."""
        yield from super().acl_patterns(source_alias, original, is_taken)
        begin = "" if original.is_everything else original.name
        for rule in self.declared.rules:
            if not is_literal(rule.pattern) or (rule.pattern.startswith(begin) and is_taken(rule.pattern)):
                fixed, *groups = GROUP.split(rule.replacement)
                yield ResourcePattern(fixed, prefixed=bool(groups)) if fixed or not groups else ALL

    def describe(self, source_alias: str) -> str:
        """Return the number of rules, and the names of other topics."""
        number = len(self.declared.rules)
        rules = f"{number:,} rule" if number == 1 else f"{number:,} rules"
        return f"renamed by {rules}, others {self._otherwise.describe(source_alias)}"

    def describe_unmatched(self) -> str:
        """Return the policy for topics that no rule matches."""
        return f"no rule matches: {self.declared.otherwise}"

    def remedy(self) -> str:
        """Return that the rules can change."""
        return "change the rename rules"


class ClassPolicy(PolicyType):
    """A Python class of a package that the user has installed."""

    needs = "class"
    example = "class: by-region"
    own_fields = ("class", "options")
    is_written_out = True
    gives_any_name = True

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that the class gives."""
        return custom.remote_topic(self.declared.entry_point, self.declared.options, source_alias, topic)

    def upstream(self, topic: str, _aliases: Collection[str]) -> tuple[str, str] | None:
        """Return what the class reads from a name."""
        return custom.upstream(self.declared.entry_point, self.declared.options, topic)

    def may_name(self, remote: str) -> bool:
        """Return whether the class cannot rule it out: it reads no source from the name, or fails."""
        try:
            return is_heartbeats(remote, self.declared.separator) or self.upstream(remote, ()) is None
        except PolicyFault:
            return True

    def acl_patterns(
        self, _source_alias: str, _original: ResourcePattern, _is_taken: Callable[[str], bool]
    ) -> Iterator[ResourcePattern]:
        """Yield all topics."""
        yield ALL

    def describe(self, _source_alias: str) -> str:
        """Return the entry point."""
        return f"named by {self.declared.entry_point}"

    def describe_unmatched(self) -> str:
        """Return the entry point."""
        return f"class {self.declared.entry_point}"

    def remedy(self) -> str:
        """Return that the class can change."""
        return f"correct the policy class {self.declared.entry_point}"

    def fault(self) -> str | None:
        """Return why the class cannot be loaded or made; None where it can, or none is named."""
        if self.declared.entry_point:
            try:
                custom.policy_of(self.declared.entry_point, self.declared.options)
            except PolicyFault as fault:
                return str(fault)
        return None


TYPES: dict[PolicyKind, type[PolicyType]] = {
    "default": DefaultPolicy,
    "identity": IdentityPolicy,
    "rename": RenamePolicy,
    "class": ClassPolicy,
}
"""The types by their names in topology files."""


def without_prefix(topic: str, separator: str, aliases: Collection[str]) -> tuple[str, str] | None:
    """Return the alias that a name begins with, and the rest of the name; None where it begins with none."""
    # The longest alias first: "eu" and "eu.west" may both be clusters.
    alias = max((a for a in aliases if topic.startswith(a + separator)), key=len, default=None)
    return None if alias is None else (alias, topic[len(alias) + len(separator) :])
