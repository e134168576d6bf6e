"""Kafka's access control lists, as far as they are needed: what a principal must be allowed on which resources.

`plan` derives them from the declaration, `report` prints them, `observe` holds them against a live cluster. Operations
have Kafka's names: `READ`, `DESCRIBE_CONFIGS`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

ResourceKind = Literal["topic", "group", "transactional-id", "cluster"]
RESOURCE_KINDS: tuple[ResourceKind, ...] = get_args(ResourceKind)

Purpose = Literal["replicate", "apply", "verify"]
"""`replicate`: copying alone, with `--no-reconcile`. `apply`: `plan`, `apply`, and the reconcile loop.

`verify`: comparing, which only reads.
"""
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
COPYING: tuple[Purpose, ...] = ("replicate", "apply")
"""What copies come into being with: what `apply` grants the replicator, and what `doctor` checks."""

IMPLIED = {
    "READ": "DESCRIBE",
    "WRITE": "DESCRIBE",
    "DELETE": "DESCRIBE",
    "ALTER": "DESCRIBE",
    "ALTER_CONFIGS": "DESCRIBE_CONFIGS",
}
"""What Kafka allows with another operation (`AclEntry.implied`)."""

CLUSTER_NAME = "kafka-cluster"
"""What Kafka calls the resource of the cluster itself."""


@dataclass(frozen=True, order=True)
class ResourcePattern:
    """Which resources of a kind: one by its name, all that begin with a prefix, or all.

    Attributes:
        name: the name or the prefix; `*` stands for all where it is no prefix.
        prefixed: whether it is a prefix.
    """

    name: str
    prefixed: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether it stands for all."""
        return self.name == "*" and not self.prefixed

    @property
    def is_wide(self) -> bool:
        """Whether it may stand for several."""
        return self.prefixed or self.is_everything

    def covers(self, other: ResourcePattern) -> bool:
        """Return whether every resource of `other` is one of this."""
        if self.is_everything or self == other:
            return True
        return self.prefixed and not other.is_everything and other.name.startswith(self.name)

    def __str__(self) -> str:
        if self.is_everything:
            return "* (all)"
        return f"{self.name}* (prefixed)" if self.prefixed else self.name


ALL = ResourcePattern("*")


def covered(names: Iterable[str], patterns: Collection[ResourcePattern]) -> frozenset[str]:
    """Return those of some names that one of some patterns stands for."""
    literal = {one.name for one in patterns if not one.is_wide}
    wide = [one for one in patterns if one.is_wide]
    return frozenset(
        name for name in names if name in literal or any(one.covers(ResourcePattern(name)) for one in wide)
    )


_Key = tuple[str, Purpose, ResourceKind, ResourcePattern, str]


@dataclass(frozen=True)
class Acl:
    """One operation that a principal must be allowed on some resources of one cluster.

    Attributes:
        alias: the cluster.
        purpose: what needs it.
        kind: of the resources.
        pattern: which resources.
        operation: Kafka's name of it.
        is_optional: whether copying goes on without it, with less.
        why: what it is for.
        flows: the names of the flows that need it.
    """

    alias: str
    purpose: Purpose
    kind: ResourceKind
    pattern: ResourcePattern
    operation: str
    is_optional: bool
    why: str
    flows: tuple[str, ...]

    def gives(self, other: Acl) -> bool:
        """Return whether this ACL implies `other`, for the same purpose, as surely."""
        return (
            (self.alias, self.purpose, self.kind) == (other.alias, other.purpose, other.kind)
            and (other.is_optional or not self.is_optional)
            and other.operation in (self.operation, IMPLIED.get(self.operation))
            and self.pattern.covers(other.pattern)
        )


def without_surplus(acls: Collection[Acl]) -> tuple[Acl, ...]:
    """Return the fewest of `acls` that give all of them; equal ones become one, with the flows of all."""
    merged: dict[_Key, Acl] = {}
    for acl in acls:
        key = (acl.alias, acl.purpose, acl.kind, acl.pattern, acl.operation)
        known = merged.get(key)
        if known is None:
            merged[key] = acl
            continue
        wins = known if known.is_optional <= acl.is_optional else acl
        merged[key] = replace(wins, flows=tuple(dict.fromkeys((*known.flows, *acl.flows))))
    return tuple(one for one in merged.values() if not any(other.gives(one) for other in _likely(merged, one)))


def _likely(merged: Mapping[_Key, Acl], one: Acl) -> Iterator[Acl]:
    """Yield the few of many ACLs that might imply one of them: each flow adds some, so none is compared with all."""
    operations = (one.operation, *(giver for giver, given in IMPLIED.items() if given == one.operation))
    name = one.pattern.name
    patterns = (ALL, ResourcePattern(name), *(ResourcePattern(name[:length], True) for length in range(len(name) + 1)))
    for operation in operations:
        for pattern in patterns:
            other = merged.get((one.alias, one.purpose, one.kind, pattern, operation))
            if other is not None and other is not one:
                yield other
