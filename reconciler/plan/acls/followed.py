"""What ACLs of originals become on their copies: each copy by its name, what its readers may do with every original.

Pure. No pattern is granted: a prefix may cover topics of others, now or later, and copies of originals that are
refused. READ, DESCRIBE and DESCRIBE_CONFIGS follow, allowed and denied; WRITE does where all flows that fill a copy are
failed over. What `User:*` is denied cannot be denied at the target, where the replicator would be refused as well:
so what it refuses is granted to no principal there, or denied to each that is granted the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.model.acls.authorizer import (
    EVERY_OPERATION,
    EVERY_PRINCIPAL,
    Authorizer,
    covers,
    denies,
    denies_some_of,
)
from reconciler.model.acls.binding import Binding, Permission
from reconciler.model.acls.hosts import contains, is_range, meet
from reconciler.model.acls.requirements import IMPLIED, ResourcePattern
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Notice
from reconciler.plan.acls.fillers import Fillers, copies_at, is_closed, is_seen
from reconciler.plan.copies.offsets import Choice, Observed

READING = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
_WRITING = "WRITE"
_SHOWN = 3

_READ_ONLY = "READ, DESCRIBE and DESCRIBE_CONFIGS alone follow, also of ALL: only the replicator changes copies"
_READ_WRITE = "READ, DESCRIBE, DESCRIBE_CONFIGS and, while the flow is failed over, WRITE alone follow, also of ALL"
_NOT_DENIED = "User:* is denied, and so would be the replicator at the target: what it refuses is not granted instead"
_REFUSED = "User:* is denied it on originals of {}"
_REFUSED_PARTLY = "User:* is denied a part of it on originals of {}, which cannot be denied at the target"
_NOT_OF_ALL = "{} hold other originals as well, which do not allow it"
_IDLE = "a range of addresses matches no client at their cluster, whose metadata.version is below 4.4"
_NO_RANGES = "it is about a range of addresses, which the target takes as of metadata.version 4.4"
_UNDENIABLE = "a part of it is denied to a range of addresses, which the target takes as of metadata.version 4.4"
_OURS = "it is about the principal that replicates at the target"
_CLOSED = "a flow that fills {} has acls: false"


class _Rule(NamedTuple):
    principal: str
    operation: str
    permission: Permission
    host: str


class _Barred(NamedTuple):
    """What `User:*` is denied on an original of a copy."""

    operation: str
    host: str


class _Copy(NamedTuple):
    """What counts of a copy for its rules.

    Attributes:
        operations: that follow.
        ours: principals that replicate at the target.
        takes_ranges: whether an ACL may be about a range of addresses at the target.
    """

    operations: Sequence[str]
    ours: Collection[str]
    takes_ranges: bool


Leave = Callable[[Binding, str], None]
"""Notes that an ACL is not followed to a copy, or not all of it, and why."""


class Followed(NamedTuple):
    """What the ACLs of originals become at a target.

    Attributes:
        copies: of this topology, with their originals.
        bindings: of copies, each with the name of a flow that fills the copy.
        left: by flow and reason, which ACLs of originals are not followed, or only in part, and to which copies.
        bare: copies that get no ACL, although all their originals have some.
    """

    copies: Mapping[str, Fillers]
    bindings: Mapping[Binding, str]
    left: Mapping[tuple[str, str], Mapping[Binding, Sequence[str]]]
    bare: Sequence[str]


def followed(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> Followed:
    """Return what is granted and denied on the copies of a target, and what is not followed.

    Of a copy with an original whose ACLs are not known nothing is decided.

    Args:
        topology: what is declared, all flows as they are failed over.
        observed: the target, and the sources that answer.
        chosen: the choices for topics of flows into the target.
        alias: of the target.
    """
    ours = topology.clusters[alias].replicators
    authorizers: dict[str, Authorizer] = {}
    bindings: dict[Binding, str] = {}
    left: dict[tuple[str, str], dict[Binding, list[str]]] = defaultdict(lambda: defaultdict(list))
    bare: list[str] = []
    copies = copies_at(topology, observed, chosen, alias)
    for copy, fillers in copies.items():
        known = [filler for filler in fillers if is_seen(filler, observed)]
        for filler in known:
            if filler.source not in authorizers:
                acls = observed[filler.source].acls
                authorizers[filler.source] = Authorizer(acls.bindings, takes_ranges=acls.takes_ranges)
        name = name_of(fillers)

        def leave(one: Binding, why: str, name: str = name, copy: str = copy) -> None:
            if copy not in (told := left[name, why][one]):
                told.append(copy)

        about = [authorizers[filler.source].about(filler.topic) for filler in known]
        if is_closed(fillers):
            for one in (one for acls in about for one in acls):
                leave(one, _CLOSED)
        elif len(known) == len(fillers):
            in_force = []
            for filler, bound in zip(known, about, strict=True):
                idle = [one for one in bound if authorizers[filler.source].is_idle(one)]
                for one in idle:
                    leave(one, _IDLE)
                in_force.append([one for one in bound if one not in idle])
            rules = _rules(in_force, _Copy(_operations(fillers), ours, observed[alias].acls.takes_ranges), leave)
            if not rules and all(about):
                bare.append(copy)
            for rule in rules:
                one = Binding(
                    "topic", ResourcePattern(copy), rule.principal, rule.operation, rule.permission, rule.host
                )
                bindings[one] = name
    return Followed(copies, bindings, left, bare)


def left_notices(found: Followed) -> Iterator[Notice]:
    """Yield which ACLs of originals are not followed, those of one flow with one reason together."""
    for (flow, why), acls in sorted(found.left.items()):
        names = sorted({copy for copies in acls.values() for copy in copies})
        copies = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more copies"
        shown = sorted(acls)[:_SHOWN]
        more = f" and {len(acls) - _SHOWN} more" if len(acls) > _SHOWN else ""
        count = "1 ACL of originals is" if len(acls) == 1 else f"{len(acls)} ACLs of originals are"
        said = f"{count} not followed, or in part: {'; '.join(map(str, shown))}{more}"
        yield Notice(f"flow {flow}", f"{said} ({why.format(copies)})")


def name_of(fillers: Fillers) -> str:
    """Return the flow that a copy's ACLs are for: one, for all of them, so that they change together."""
    flows = [filler.flow for filler in fillers if filler.flow is not None]
    return next((flow.name for flow in flows if flow.enabled), flows[0].name if flows else "")


def _operations(fillers: Fillers) -> tuple[str, ...]:
    is_over = all(filler.flow is not None and filler.flow.failed_over for filler in fillers)
    return (*READING, _WRITING) if is_over else READING


def _rules(about: Sequence[Sequence[Binding]], copy: _Copy, leave: Leave) -> set[_Rule]:
    """Return the rules of a copy.

    Args:
        about: the ACLs about each of its originals.
        copy: what counts of it.
        leave: called for what is not followed.
    """
    operations = copy.operations
    barred = {
        _Barred(operation, one.host)
        for acls in about
        for one in acls
        if one.permission == "DENY" and one.principal == EVERY_PRINCIPAL
        for operation in operations
        if denies(one.operation, operation)
    }
    undeniable = [
        one
        for acls in about
        for one in acls
        if one.permission == "DENY" and is_range(one.host) and not copy.takes_ranges
    ]
    found: set[_Rule] = set()
    for acls in about:
        others = [other for other in about if other is not acls]
        for one in acls:
            meant = [operation for operation in operations if denies(one.operation, operation)]
            if one.principal in copy.ours:
                leave(one, _OURS)
                continue
            if meant and is_range(one.host) and not copy.takes_ranges:
                leave(one, _NO_RANGES)
                continue
            if meant != [one.operation]:
                leave(one, _READ_WRITE if _WRITING in operations else _READ_ONLY)
            if one.permission == "DENY" and one.principal != EVERY_PRINCIPAL:
                found |= {_Rule(one.principal, operation, "DENY", one.host) for operation in meant}
            elif one.permission == "DENY" and meant:
                leave(one, _NOT_DENIED)
            elif one.permission == "ALLOW":
                # READ implies DESCRIBE.
                for operation in meant if one.operation != EVERY_OPERATION else [o for o in meant if o != "DESCRIBE"]:
                    found |= _allowed(one, operation, _Against(barred, others, undeniable), leave)
    return found


class _Against(NamedTuple):
    """What may stand against that an ALLOW is followed.

    Attributes:
        barred: what `User:*` is denied on originals of the copy.
        others: the ACLs about each of its other originals.
        undeniable: ACLs that deny something on originals, and cannot be created at the target.
    """

    barred: Collection[_Barred]
    others: Sequence[Sequence[Binding]]
    undeniable: Collection[Binding]


def _allowed(one: Binding, operation: str, against: _Against, leave: Leave) -> set[_Rule]:
    """Return the rules by which an ALLOW is followed for an operation, or for the lesser one that it gives."""
    for tried in (operation, IMPLIED.get(operation)):
        if tried is None:
            break
        why = _against(one, tried, against)
        if why is None:
            given = (tried, IMPLIED.get(tried))
            denied = {
                _Rule(one.principal, bar.operation, "DENY", host)
                for bar in against.barred
                if bar.operation in given and (host := meet(one.host, bar.host)) is not None
            }
            return {_Rule(one.principal, tried, "ALLOW", one.host), *denied}
        leave(one, why)
    return set()


def _against(one: Binding, operation: str, against: _Against) -> str | None:
    """Return why an ALLOW is not followed for an operation; None where it is."""
    barred = against.barred
    given = (operation, IMPLIED.get(operation))
    if not all(covers(acls, one, operation) for acls in against.others):
        return _NOT_OF_ALL
    if any(bar.operation == operation and contains(bar.host, one.host) for bar in barred):
        return _REFUSED
    if any(
        lesser is not None and denies_some_of(bound, one, lesser) for bound in against.undeniable for lesser in given
    ):
        return _UNDENIABLE
    # A DENY of `User:*` from some hosts cannot be put into DENYs of the allowed principals.
    is_partly = one.principal == EVERY_PRINCIPAL and any(
        bar.operation in given and meet(one.host, bar.host) is not None for bar in barred
    )
    return _REFUSED_PARTLY if is_partly else None
