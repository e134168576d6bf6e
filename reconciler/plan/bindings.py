"""Which ACLs a cluster gets: on copies, what principals may do with the originals, as far as a copy stays a copy.

Pure. What the replicator itself needs is in `own`. Reading follows, writing does not: only the replicator writes to
copies. Of a flow that is failed over it is the other way round: writing follows too, as the replicator writes no more.
What is granted is on record, and is revoked when the source's is gone; what others have granted is never
touched. Nothing is revoked that could not be looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from reconciler.model.acl import Pattern
from reconciler.model.binding import Binding, OwnedBinding
from reconciler.model.flow import Flow
from reconciler.model.observed import ObservedCluster
from reconciler.model.steps import GrantAcl, Notice, RevokeAcl
from reconciler.model.topology import Topology
from reconciler.plan.doubt import granted_by_others, is_granted_by_us
from reconciler.plan.failed_over import opened
from reconciler.plan.offsets import Choice, Observed
from reconciler.plan.own import own_notices, own_steps

_READING = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
_WRITING = "WRITE"
_EVERYBODY = "User:*"

Copies = dict[str, str]
"""Originals and their copies of one flow, by name."""


class _Copies(NamedTuple):
    """The copies of one flow.

    Attributes:
        names: of originals and copies.
        are_alone: whether a prefix of them covers no copy that is to stay one.
    """

    names: Copies
    are_alone: bool


def acl_steps(
    topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str
) -> tuple[GrantAcl | RevokeAcl, ...]:
    """Return what is granted and revoked on a target, in the order of ACLs.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        chosen: the choices for all topics of the flows.
        alias: of the target.
    """
    target = observed[alias]
    if target.acls.sight not in ("seen", "unsure") or _may_not_alter(target):
        return ()
    whole = opened(topology, observed)
    steps = (*_followed_steps(whole, observed, chosen, alias), *own_steps(whole, target))
    # Whom we followed, and who is the replicator now, or the other way round, keeps what both are allowed.
    granted = {step.binding for step in steps if isinstance(step, GrantAcl)}
    steps = tuple(step for step in steps if isinstance(step, GrantAcl) or step.binding not in granted)
    return tuple(sorted(steps, key=lambda step: (isinstance(step, RevokeAcl), step.binding)))


def _followed_steps(
    topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str
) -> Iterator[GrantAcl | RevokeAcl]:
    target = observed[alias]
    wanted = wanted_bindings(topology, observed, chosen, alias)
    owned = {
        one.binding: one
        for one in target.acls.owned_by(topology.name)
        if one.role == "followed" and is_granted_by_us(topology, target, one)
    }
    known = {flow.name for flow in topology.flows}
    # A record that names a flow of former days would keep an ACL for ever: it is written anew. What stands by another
    # topology's record must be on ours as well, or it goes when they need it no longer.
    recorded = target.acls.recorded()
    for one, flow in wanted.items():
        is_ours = one in owned and owned[one].flow in known
        if one not in target.acls.bindings or (one in recorded and not is_ours):
            yield GrantAcl(alias, one, flow)
    certain = {flow.name for flow in _following(topology, alias) if observed[flow.source].acls.sight == "seen"}
    for one, record in owned.items():
        if one not in wanted and record.flow in certain:
            yield RevokeAcl(alias, one, record.flow, is_kept=target.acls.is_shared(one, topology.name))


def our_bindings(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> dict[Binding, str]:
    """Return the ACLs of a target that are this topology's once its steps are carried out, each with a flow's name.

    What stands there without our record is somebody else's, even where we want it. Where the target shows none, what is
    on record is taken for what stands.
    """
    target = observed[alias]
    # One cluster may be declared twice; then what follows into the other one is not this one's.
    elsewhere = {flow.name for flow in topology.flows if flow.target != alias}
    owned = {
        one.binding: one.flow
        for one in target.acls.owned_by(topology.name)
        if one.role == "own" or one.flow not in elsewhere
    }
    if target.acls.sight in ("unasked", "hidden"):
        return owned
    found = {one: flow for one, flow in owned.items() if one in target.acls.bindings}
    for step in acl_steps(topology, observed, chosen, alias):
        if isinstance(step, GrantAcl):
            found[step.binding] = step.flow
        else:
            found.pop(step.binding, None)
    return found


def wanted_bindings(
    topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str
) -> dict[Binding, str]:
    """Return the ACLs that a target's copies should have, each with the name of the first flow that asks for it."""
    target, topology = observed[alias], opened(topology, observed)
    ours = topology.clusters[alias].replicators
    found: dict[Binding, str] = {}
    for flow in _following(topology, alias):
        copies = _Copies(_copies(flow, chosen, target, topology), _is_alone(flow, topology))
        for original in sorted(observed[flow.source].acls.bindings):
            if _may_follow(original, ours):
                for copy in _followed(flow, original, copies):
                    found.setdefault(copy, flow.name)
    return found


def acl_notices(topology: Topology, observed: Observed, alias: str) -> Iterator[Notice]:
    """Yield which flows' ACLs are not followed into a target because a cluster does not let us, and what would help."""
    target = observed[alias]
    yield from own_notices(topology, target, target.access.operations)
    yield from granted_by_others(topology, target)
    for flow in _following(topology, alias):
        source = observed[flow.source]
        if source.acls.sight == "hidden":
            yield _refused(topology, flow, flow.source, "DESCRIBE")
        # Where no ACLs are in force at one side there is nothing to follow, or nowhere to put it.
        elif source.acls.bindings and target.acls.sight == "hidden":
            yield _refused(topology, flow, alias, "DESCRIBE")
        elif source.acls.bindings and target.acls.sight != "off" and _may_not_alter(target):
            yield _refused(topology, flow, alias, "ALTER")


def _refused(topology: Topology, flow: Flow, alias: str, operation: str) -> Notice:
    user = topology.clusters[alias].user
    why = f"{user} is not allowed {operation} on cluster {alias}: grant it, or say `acls: false`"
    return Notice(f"flow {flow.name}", f"ACLs of originals are not followed: {why}")


def _following(topology: Topology, alias: str) -> tuple[Flow, ...]:
    return tuple(flow for flow in topology.flows_into((alias,)) if flow.acls)


def _may_not_alter(target: ObservedCluster) -> bool:
    operations = target.access.operations
    return bool(operations) and "ALTER" not in operations


def _copies(flow: Flow, chosen: Collection[Choice], target: ObservedCluster, topology: Topology) -> Copies:
    """Return what a flow copies, and what it has copied: who reads a copy goes on when its original is gone."""
    left = {
        record.source_topic: name
        for name, record in target.owned.items()
        if record.topology == topology.name
        and record.flow == flow.name
        and name in target.names
        and flow.takes(record.source_topic, topology.aliases)
    }
    now = {
        choice.original.name: choice.remote
        for choice in chosen
        if choice.flow.name == flow.name and (choice.blocked is None or choice.remote in target.owned)
    }
    return left | now


def _may_follow(original: Binding, ours: Collection[str]) -> bool:
    """Tell whether an ACL may be followed: never one that says what we ourselves may do at the target.

    Nobody may be denied what the replicator does, so what is denied to everybody stays at the source.
    """
    if original.kind != "topic" or original.principal in ours:
        return False
    return original.permission == "ALLOW" or original.principal != _EVERYBODY


def _is_alone(flow: Flow, topology: Topology) -> bool:
    """Tell whether all copies under the prefix of a flow's source are of flows that are failed over as it is."""
    others = topology.flows_into((flow.target,))
    return all(other.failed_over for other in others if other.source == flow.source)


def _followed(flow: Flow, original: Binding, copies: _Copies) -> Iterator[Binding]:
    """Yield what an ACL on originals means for their copies; nothing where it is not about reading.

    Of a flow that is failed over, writing is meant as well.
    """
    for operation in _operations(original, flow.failed_over):
        is_named = operation == _WRITING and not copies.are_alone
        for pattern in _patterns(flow, original.pattern, copies.names, is_named):
            yield Binding("topic", pattern, original.principal, operation, original.permission, original.host)


def _operations(original: Binding, writing: bool) -> tuple[str, ...]:
    followed = (*_READING, _WRITING) if writing else _READING
    if original.operation != "ALL":
        return (original.operation,) if original.operation in followed else ()
    # Who may READ may DESCRIBE; who may not READ may still.
    return tuple(one for one in followed if original.permission == "DENY" or one != "DESCRIBE")


def _patterns(flow: Flow, pattern: Pattern, copies: Copies, is_named: bool = False) -> Iterable[Pattern]:
    """Return the patterns of the copies of the topics of a pattern, none of which covers anything else.

    Under the default policy all copies of a source, and they alone, begin with its alias: a prefix stays a prefix.
    Under any other policy it may be the prefix of somebody else's topics, so each copy is named.

    Args:
        flow: the flow.
        pattern: of originals.
        copies: of the flow.
        is_named: whether each copy is named under any policy.
    """
    if not (pattern.prefixed or pattern.is_everything):
        return [Pattern(copies[pattern.name])] if pattern.name in copies else []
    covered = [copy for name, copy in copies.items() if pattern.covers(Pattern(name))]
    if is_named or flow.policy.kind != "default" or not covered:
        return [Pattern(copy) for copy in sorted(covered)]
    rest = "" if pattern.is_everything else pattern.name
    return [Pattern(f"{flow.source}{flow.policy.separator}{rest}", prefixed=True)]


def revoked_with(
    topology: Topology, target: ObservedCluster, names: Collection[str] | None = None
) -> tuple[RevokeAcl, ...]:
    """Return the revocation of what this topology has granted on topics that are deleted.

    Args:
        topology: whose.
        target: the cluster.
        names: of the topics; None is everything that is ours.
    """
    return tuple(
        RevokeAcl(
            target.alias,
            one.binding,
            one.flow,
            is_kept=target.acls.is_shared(one.binding, topology.name) or target.acls.sight == "off",
            with_topic=True,
            role=one.role,
        )
        for one in sorted(target.acls.owned_by(topology.name), key=lambda one: one.binding)
        if (names is None and is_granted_by_us(topology, target, one))
        or (
            names is not None
            and one.role == "followed"
            and one.binding.pattern.name in names
            and not one.binding.pattern.prefixed
        )
    )


def strangers(topology: Topology, target: ObservedCluster) -> dict[Binding, str]:
    """Return the ACLs that others granted on our copies, each with the name of the copy's flow.

    What our own user there may do is not ours to say.
    """
    us = topology.clusters[target.alias].replicators
    granted = {record.binding for record in target.acls.owned_by(topology.name)}
    ours = {name: record.flow for name, record in target.owned.items() if record.topology == topology.name}
    return {
        one: ours[one.pattern.name]
        for one in sorted(target.acls.bindings - granted)
        if one.kind == "topic" and one.pattern.name in ours and not one.pattern.prefixed and one.principal not in us
    }


def stale(topology: Topology, target: ObservedCluster) -> tuple[OwnedBinding, ...]:
    """Return what this topology has granted on a target and what does not stand there any more."""
    if target.acls.sight != "seen":
        return ()
    return tuple(one for one in target.acls.owned_by(topology.name) if one.binding not in target.acls.bindings)
