"""Which declaration is in force at a target: its content, its digest, and the history of what `apply` put in force.

`apply` puts one in force, `state` keeps it with the history, `replicate` checks whether its own digest is the one, and
`plan` compares its content with the files as they are now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, is_dataclass, replace
from dataclasses import fields as fields_of
from enum import Enum
from typing import Any

from reconciler.model.base.errors import Problem
from reconciler.model.base.shape import ID, TEXT, TIME, WORD, fields, fits, listed, mapped, maybe, whole
from reconciler.model.base.text import utc
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology

# Raised when a release gives a field another default: what is left out then means something else.
_FORM = 1
_KEPT = 50
DESTROYED = "destroyed"
"""Put in force instead of a digest where everything was destroyed: no declaration has this digest."""
MOVED = "moved"
"""Put in force in the shared journals of a target when those of a topology were moved to topics of its own."""


Json = Mapping[str, Any]


@dataclass(frozen=True)
class Declaration:
    """What a topology declares for one target, in one form: what its digest is made of.

    Nothing in it is secret, and no reference is resolved: machines where one leads elsewhere have one declaration.
    Fields with their defaults are left out, so that a field of a later release changes nothing.

    Attributes:
        topology: its name.
        target: alias.
        aliases: of all clusters, as these decide which names are copies.
        clusters: by alias, the addresses of the target and of the sources of the flows.
        flows: by name, the enabled flows into the target as JSON types, named as the fields of `Flow`.
        clients: settings of clients that read from a source (`consumer of us-east`) or write to the target
            (`producer of eu-west`), as JSON types.
    """

    topology: str
    target: str
    aliases: tuple[str, ...]
    clusters: Mapping[str, tuple[str, ...]]
    flows: Mapping[str, Json]
    clients: Mapping[str, Json] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits, which every release makes of the same declaration."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        told: dict[str, Any] = {
            "form": _FORM,
            "topology": self.topology,
            "target": self.target,
            "aliases": list(self.aliases),
            "clusters": {alias: list(addresses) for alias, addresses in self.clusters.items()},
            "flows": dict(self.flows),
        }
        return told | ({"clients": dict(self.clients)} if self.clients else {})

    @classmethod
    def from_json(cls, value: Any) -> Declaration:
        """Read what `to_json` gave.

        Raises:
            Misfit: it is something else, or what a later release gives.
        """
        one = mapped(WORD, mapped(TEXT, _anything))
        known = fields(
            value,
            {
                "form": whole(_FORM, _FORM),
                "topology": WORD,
                "target": WORD,
                "aliases": listed(WORD),
                "clusters": mapped(WORD, listed(TEXT)),
                "flows": one,
            },
            {"clients": one},
        )
        del known["form"]
        return cls(**known)


def _anything(value: Any) -> Any:
    return value


def declaration_into(topology: Topology, target: str) -> Declaration:
    """Return what a topology declares for one target.

    It has what is copied to where and how. How clients authenticate and administer is no part of it, as the principal
    that applies often is not the one that replicates; nor are data centres, places in files, and any order without
    a meaning.
    """
    flows = topology.flows_into((target,))
    used = sorted({target, *(flow.source for flow in flows)})
    clients = {f"consumer of {flow.source}": _told(topology.clusters[flow.source].clients.consumer) for flow in flows}
    clients[f"producer of {target}"] = _told(topology.clusters[target].clients.producer)
    return Declaration(
        topology=topology.name,
        target=target,
        aliases=tuple(sorted(topology.aliases)),
        clusters={alias: tuple(sorted(topology.clusters[alias].declared_addresses)) for alias in used},
        flows={flow.name: _told(_ordered(flow)) for flow in flows},
        clients={name: values for name, values in clients.items() if values},
    )


def digest_into(topology: Topology, target: str) -> str:
    """Return the digest of what a topology declares for one target."""
    return declaration_into(topology, target).digest


def _ordered(flow: Flow) -> Flow:
    """Return the flow without the places that it was declared at, and with one order where order means nothing."""
    topics, policy, start, configs, groups = flow.topics, flow.policy, flow.start, flow.configs, flow.groups
    rules = tuple(replace(rule, place="") for rule in policy.rules)
    return replace(
        flow,
        origin="",
        topics=replace(topics, include=_each_once(topics.include), exclude=_each_once(topics.exclude)),
        policy=replace(policy, rules=rules, options=tuple(sorted(policy.options)), place=""),
        start=replace(start, offsets=tuple(sorted(start.offsets))),
        configs=replace(configs, include=_each_once(configs.include), exclude=_each_once(configs.exclude), places=()),
        groups=replace(groups, include=_each_once(groups.include), exclude=_each_once(groups.exclude)),
    )


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _told(value: Any) -> Any:
    """Return a value as JSON types, the fields that have their defaults left out."""
    if isinstance(value, tuple):
        return [_told(one) for one in value]
    if not is_dataclass(value):
        return value
    told = {}
    for one in fields_of(value):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if (found := getattr(value, one.name)) != default:
            told[one.name] = _told(found)
    return told


@dataclass(frozen=True)
class InForce:
    """A digest that was put in force.

    Attributes:
        digest: of the declaration, for the target where this stands; or `DESTROYED`.
        since: seconds since 1970.
        by: whose `apply` it was, as `user@host`.
        owner: of the files, as declared in them; None where it is not.
        targets: aliases of all targets of the topology, as far as is recorded.
    """

    digest: str
    since: float
    by: str
    owner: str | None = None
    targets: tuple[str, ...] = ()

    @property
    def is_declared(self) -> bool:
        """Whether it is a declaration, and not the end of one."""
        return self.digest not in (DESTROYED, MOVED)

    def to_json(self) -> dict[str, Any]:
        """Return its form in reports."""
        return {"digest": self.digest, "since": self.since, "by": self.by, "owner": self.owner}

    def __str__(self) -> str:
        when = utc(self.since)
        if self.digest == DESTROYED:
            return f"nothing is in force: the copies were destroyed on {when} by {self.by}"
        if self.digest == MOVED:
            return f"nothing is in force here: the journals were moved to topics of their own on {when} by {self.by}"
        whose = "" if self.owner is None else f", owner {self.owner}"
        return f"digest {self.digest} is in force since {when}, applied by {self.by}{whose}"


def _in_force(value: Any) -> InForce:
    optional = {"owner": maybe(WORD), "targets": listed(WORD)}
    return InForce(**fields(value, {"digest": ID, "since": TIME, "by": TEXT}, optional))


class DeclarationStanding(Enum):
    """How a digest stands to the one in force."""

    IN_FORCE = "in force"
    OLDER = "older"  # it was in force before
    NEWER = "not applied"  # it never was, as far as the history goes
    ALONE = "nothing was ever put in force"


@dataclass(frozen=True)
class DeclarationHistory:
    """What was put in force for one topology at one target, the last 50 times.

    Attributes:
        entries: the newest last.
        declaration: what the newest of them declares; None where that is not recorded: a former release put it in
            force, or it was larger than a record may be.
        overrides: that the newest of them has beside its files.
    """

    entries: tuple[InForce, ...] = ()
    declaration: Declaration | None = None
    overrides: tuple[FlowOverride, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DeclarationHistory:
        """Read the value of a journal.

        Raises:
            Misfit: it is something else.
        """
        # Releases to come may keep more.
        entries = fields(value, {"history": listed(_in_force, 100 * _KEPT)})["history"]
        # A later release may write it in another form, and then its digest still counts.
        told = fits(Declaration.from_json, value.get("declared"))
        is_newest = told is not None and bool(entries) and told.digest == entries[-1].digest
        overrides = fits(listed(FlowOverride.from_json), value.get("overrides", []))
        return cls(entries, told if is_newest else None, tuple(overrides or ()))

    @property
    def in_force(self) -> InForce | None:
        """The newest entry; None when nothing was ever put in force."""
        return self.entries[-1] if self.entries else None

    def standing(self, digest: str) -> DeclarationStanding:
        """Compare a digest with the one in force."""
        if self.in_force is None:
            return DeclarationStanding.ALONE
        if digest == self.in_force.digest:
            return DeclarationStanding.IN_FORCE
        return (
            DeclarationStanding.OLDER
            if any(one.digest == digest for one in self.entries)
            else DeclarationStanding.NEWER
        )

    def objection(self, digest: str, where: str) -> Problem | None:
        """Return why flows with this digest must not run; None where they may: it is in force, or nothing ever was.

        Args:
            digest: of the caller's declaration.
            where: names the target.
        """
        standing = self.standing(digest)
        if standing in (DeclarationStanding.IN_FORCE, DeclarationStanding.ALONE):
            return None
        if self.in_force is not None and self.in_force.digest == DESTROYED:
            found, remedy = f"this process has digest {digest}", "`anabranch apply` makes the copies anew"
            return Problem("AB411", where, f"{self.in_force}; {found}", remedy)
        if standing is DeclarationStanding.OLDER:
            why, remedy = "was in force before", "bring its files up to date; apply them to go back to them"
        else:
            why, remedy = "was never put in force", "put it in force with `anabranch apply`, or correct its files"
        now = f"{self.in_force}"
        if self.declaration is not None and not self.declaration.flows:
            now += ", by which no flow leads into it any more"
        return Problem("AB411", where, f"{now}; this process has digest {digest}, which {why}", remedy)

    def followed_by(
        self, entry: InForce, declaration: Declaration | None = None, overrides: tuple[FlowOverride, ...] = ()
    ) -> DeclarationHistory:
        """Return the history in which `entry` is in force, with what it declares; the oldest are forgotten."""
        return DeclarationHistory((*self.entries, entry)[-_KEPT:], declaration, overrides)

    def to_json(self) -> dict[str, Any]:
        """Return the value of a journal."""
        told: dict[str, Any] = {"history": [asdict(entry) for entry in self.entries]}
        if self.overrides:
            told["overrides"] = [one.to_json() for one in self.overrides]
        return told | ({"declared": self.declaration.to_json()} if self.declaration is not None else {})


@dataclass(frozen=True)
class Declared:
    """What a plan declares for a target, beside what is in force there.

    Attributes:
        digest: of the declaration that was planned; or `DESTROYED`.
        in_force: what is in force; None when nothing ever was.
        declaration: that was planned; None for `DESTROYED`.
        former: the declaration that is in force; None where that is not recorded, or nothing is.
        owner: of the files, as declared in them.
        targets: aliases of all targets of the topology.
        overrides: that the declaration has beside its files.
        former_overrides: that the declaration in force has.
    """

    digest: str
    in_force: InForce | None = None
    declaration: Declaration | None = None
    former: Declaration | None = None
    owner: str | None = None
    targets: tuple[str, ...] = ()
    overrides: tuple[FlowOverride, ...] = ()
    former_overrides: tuple[FlowOverride, ...] = ()

    @property
    def is_in_force(self) -> bool:
        """Whether the two are one, and of one owner."""
        return self.in_force is not None and (self.in_force.digest, self.in_force.owner) == (self.digest, self.owner)

    @property
    def is_recorded(self) -> bool:
        """Whether all that is in force is recorded as it would be now."""
        if self.former is None or self.in_force is None or self.overrides != self.former_overrides:
            return False
        return self.in_force.targets == self.targets

    @property
    def is_unknown(self) -> bool:
        """Whether it comes into force in place of another declaration of which nothing but its digest is known."""
        if self.in_force is None or self.former is not None or self.digest == DESTROYED:
            return False
        return self.in_force.is_declared and self.in_force.digest != self.digest
