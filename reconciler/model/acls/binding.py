"""ACLs as they stand on a cluster, and those of them that an apply has granted.

`observe` reads them, `plan` compares them with those of sources, `provision` grants and revokes, `state` keeps the
record. What the replicator itself must be allowed is another thing: `reconciler.model.acls.requirements`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from reconciler.model.acls.requirements import RESOURCE_KINDS, ResourceKind, ResourcePattern
from reconciler.model.base.shape import WORD, fields, flag, one_of, text

Permission = Literal["ALLOW", "DENY"]

Role = Literal["followed", "own"]
"""Why an ACL is granted: an original has it; or the replicator itself needs it."""

Sight = Literal["unasked", "seen", "unsure", "hidden", "off"]
"""Whether a cluster's ACLs are known: they were not requested; they were read; there are none, or no authorizer, and
it is unknown which; our principal may not read them; or there is no authorizer."""


_OPERATIONS = (
    *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS"),
    *("ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
)
"""Those that our client has words for: others it neither shows nor grants."""
# Names of groups and of transactional ids may have that many bytes.
_LONGEST_NAME = text(32_767, least=1)


def _pattern(value: Any) -> ResourcePattern:
    return ResourcePattern(**fields(value, {"name": _LONGEST_NAME}, {"prefixed": flag}))


_BINDING = {
    "kind": one_of(*RESOURCE_KINDS),
    "pattern": _pattern,
    "principal": text(10_000, least=1),
    "operation": one_of(*_OPERATIONS),
}
_USUAL = {"permission": one_of(*get_args(Permission)), "host": text(1_000, least=1)}
_ROLE = one_of(*get_args(Role))


@dataclass(frozen=True, order=True)
class Binding:
    """One ACL, with Kafka's names.

    Attributes:
        kind: of the resources.
        pattern: which resources.
        principal: `User:alice`.
        operation: `READ`, `DESCRIBE_CONFIGS`.
        permission: whether it allows or denies.
        host: from where; `*` is everywhere.
    """

    kind: ResourceKind
    pattern: ResourcePattern
    principal: str
    operation: str
    permission: Permission = "ALLOW"
    host: str = "*"

    @property
    def who(self) -> str:
        """The principal, `User:alice`; with the prefix `DENY ` where the binding denies."""
        return self.principal if self.permission == "ALLOW" else f"DENY {self.principal}"

    @property
    def what(self) -> str:
        """What it allows or denies, without the principal and the kind of permission."""
        return f"{self.operation} on {self.kind} {self.pattern}{self.place}"

    @property
    def place(self) -> str:
        """From where, in words behind the others; empty where it is everywhere."""
        return "" if self.host == "*" else f", from {self.host}"

    def __str__(self) -> str:
        return f"{self.who} {self.what}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Binding:
        """Return what `dataclasses.asdict` gave.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(data, _BINDING, _USUAL))


@dataclass(frozen=True)
class OwnedBinding:
    """An ACL that an apply has granted, or is about to: the record is written first.

    Attributes:
        binding: the ACL.
        topology: name of the topology that granted it.
        flow: name of the flow that it is for.
        role: why it was granted.
    """

    binding: Binding
    topology: str
    flow: str
    role: Role = "followed"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OwnedBinding:
        """Return what `dataclasses.asdict` gave; fields that are not known are left out.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(data, {"binding": Binding.from_json, "topology": WORD, "flow": WORD}, {"role": _ROLE}))


@dataclass(frozen=True)
class ObservedBindings:
    """The ACLs of a cluster, as far as they are known.

    Attributes:
        sight: whether they are.
        bindings: all of them; empty unless they are seen.
        owned: what applies of any topology have granted there, whether it stands or not.
        may_be_open: whether brokers have `allow.everyone.if.no.acl.found` set, so that topics without any ACL may be
            open to every principal; the value of the setting itself cannot be read.
        takes_ranges: whether an ACL may be about a range of addresses there; it is asked only where some ACL is.
    """

    sight: Sight = "unasked"
    bindings: frozenset[Binding] = frozenset()
    owned: tuple[OwnedBinding, ...] = ()
    may_be_open: bool = False
    takes_ranges: bool = False

    def owned_by(self, topology: str) -> tuple[OwnedBinding, ...]:
        """Return what applies of one topology have granted."""
        return tuple(one for one in self.owned if one.topology == topology)

    def recorded(self) -> frozenset[Binding]:
        """Return what applies of any topology have granted, for whatever reason."""
        return frozenset(one.binding for one in self.owned)

    def is_shared(self, binding: Binding, topology: str) -> bool:
        """Return whether another topology has granted it as well."""
        return any(one.binding == binding and one.topology != topology for one in self.owned)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "sight": self.sight,
            "bindings": _listed(self.bindings),
            "owned": [asdict(one) for one in self.owned],
            "may_be_open": self.may_be_open,
            "takes_ranges": self.takes_ranges,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ObservedBindings:
        """Return what `to_json` wrote down.

        Raises:
            KeyError: a field is missing.
            TypeError, Misfit: it is something else.
        """
        bindings = frozenset(Binding.from_json(one) for one in data["bindings"])
        owned = tuple(OwnedBinding.from_json(one) for one in data["owned"])
        return cls(data["sight"], bindings, owned, data.get("may_be_open", False), data.get("takes_ranges", False))


def _listed(bindings: Iterable[Binding]) -> list[dict[str, Any]]:
    return [asdict(one) for one in sorted(bindings)]
