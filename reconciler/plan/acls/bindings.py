"""Which ACLs a cluster gets and loses: those of copies (`followed`) and those of the replicator (`own_bindings`).

Pure. What is granted is on record, and is revoked when the originals no longer have it, or their flow follows none;
what others have granted is never touched. Nothing is revoked for want of knowledge: where originals could not be read,
what stands stays, yet on no more than the copies that it is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.model.acls.authorizer import Authorizer
from reconciler.model.acls.binding import Binding, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern, covered
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AclChange, GrantAcl, Notice, RevocationCause, RevokeAcl
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.acls.fillers import CopySource, is_closed, is_seen
from reconciler.plan.acls.followed import followed, left_notices, name_of
from reconciler.plan.acls.own_bindings import own_notices, own_steps
from reconciler.plan.copies.failed_over import opened
from reconciler.plan.copies.offsets import Choice, Observed
from reconciler.plan.guardrails.doubtful_records import granted_by_others, is_granted_by_us


def acl_steps(
    topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str
) -> tuple[GrantAcl | RevokeAcl, ...]:
    """Return what is granted and revoked on a target, in the order of `acl_order`.

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
    steps = (*_Following(whole, observed, chosen, alias).steps(), *own_steps(whole, target))
    # A principal that was followed and is the replicator now, or the other way round, keeps what both are allowed.
    granted = {step.binding for step in steps if isinstance(step, GrantAcl)}
    steps = tuple(step for step in steps if isinstance(step, GrantAcl) or step.binding not in granted)
    return tuple(sorted(steps, key=acl_order))


def acl_order(step: AclChange) -> tuple[bool, bool, Binding]:
    """Return what sorts changes of ACLs so that no principal is ever allowed more than before and after all of them.

    Everything is granted before anything is revoked; what is denied is granted first, and revoked last.
    """
    revokes = isinstance(step, RevokeAcl)
    return revokes, (step.binding.permission == "DENY") == revokes, step.binding


def withdrawals(steps: Iterable[AclChange], target: ObservedCluster) -> tuple[AclChange, ...]:
    """Return of some changes the revocation of ACLs that cover several copies, and what these copies get instead.

    Args:
        steps: of `acl_steps`.
        target: the cluster; topics that it does not have yet get nothing.
    """
    every = tuple(steps)
    wide = {step.binding.pattern for step in every if isinstance(step, RevokeAcl) and step.cause == "wide"}

    def belongs(step: AclChange) -> bool:
        if isinstance(step, RevokeAcl):
            return step.cause == "wide"
        name = step.binding.pattern.name
        is_copy = step.role == "followed" and name in target.names
        return is_copy and any(pattern.covers(step.binding.pattern) for pattern in wide)

    return tuple(step for step in every if belongs(step))


class _Following:
    """What follows originals at a target, against what is on record there.

    Args:
        topology: what is declared, all flows as they are failed over.
        observed: the target, and the sources that answer.
        chosen: the choices for topics of flows into the target.
        alias: of the target.
    """

    def __init__(self, topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> None:
        self._topology = topology
        self._observed = observed
        self._target = observed[alias]
        self._found = followed(topology, observed, chosen, alias)
        self._flows = {flow.name: flow for flow in topology.flows}
        self._owned = {
            one.binding: one
            for one in self._target.acls.owned_by(topology.name)
            # One cluster may be declared twice; then what follows into the other one is not this one's.
            if one.role == "followed"
            and is_granted_by_us(topology, self._target, one)
            and ((flow := self._flows.get(one.flow)) is None or flow.target == alias)
        }
        self._authorizers: dict[str, Authorizer] = {}

    def steps(self) -> Iterator[GrantAcl | RevokeAcl]:
        """Yield the changes, in no order."""
        acls, alias = self._target.acls, self._target.alias
        wanted = {**dict(self._narrowed()), **self._found.bindings}
        # A record that names a flow of former days would keep an ACL for ever: it is written anew. What stands by
        # another topology's record must be on ours as well, or it goes when they need it no longer.
        recorded = acls.recorded()
        for one, flow in wanted.items():
            is_ours = one in self._owned and self._owned[one].flow in self._flows
            if one not in acls.bindings or (one in recorded and not is_ours):
                yield GrantAcl(alias, one, flow)
        for one, record in self._owned.items():
            if one in wanted or (not one.pattern.is_wide and self._stays(one, record.flow)):
                continue
            flow = record.flow if one.pattern.is_wide else name_of(self._fillers(one.pattern.name)) or record.flow
            is_kept = acls.is_shared(one, self._topology.name)
            yield RevokeAcl(alias, one, flow, is_kept=is_kept, cause=self._cause(one, flow))

    def _fillers(self, copy: str) -> tuple[CopySource, ...]:
        return self._found.copies.get(copy, ())

    def _cause(self, one: Binding, flow: str) -> RevocationCause:
        if one.pattern.is_wide:
            return "wide"
        declared = self._flows.get(flow)
        is_unfollowed = is_closed(self._fillers(one.pattern.name)) or (declared is not None and not declared.acls)
        return "unfollowed" if is_unfollowed else "gone"

    def _stays(self, one: Binding, flow: str) -> bool:
        """Return whether an ACL on one copy that is on record, and that no original is known to have, stays.

        Args:
            one: the ACL.
            flow: that it is on record for.
        """
        if fillers := self._fillers(one.pattern.name):
            seen = [filler for filler in fillers if is_seen(filler, self._observed)]
            if is_closed(fillers) or len(seen) == len(fillers):
                return False
            return all(self._has(one, filler.source, filler.topic) for filler in seen)
        declared = self._flows.get(flow)
        if declared is None or not declared.enabled:
            return True
        source = self._observed.get(declared.source)
        return declared.acls and (source is None or source.acls.sight != "seen")

    def _narrowed(self) -> Iterator[tuple[Binding, str]]:
        """Yield what is to stand instead of ACLs on patterns where originals are not known, each with a flow's name.

        They covered whatever had the prefix: of that, copies that may go on as they are get one of their own.
        """
        ours = {name: one for name, one in sorted(self._target.owned.items()) if one.topology == self._topology.name}
        for wide, record in self._owned.items():
            if wide.pattern.is_wide and wide.kind == "topic":
                for name, copy in ours.items():
                    if name in self._target.names and wide.pattern.covers(ResourcePattern(name)):
                        one = replace(wide, pattern=ResourcePattern(name))
                        if self._goes_on(one, record, copy):
                            yield one, name_of(self._fillers(name)) or copy.flow

    def _goes_on(self, one: Binding, record: OwnedBinding, copy: OwnedTopic) -> bool:
        """Return whether an ACL that was on a pattern goes on for one of the copies that it covered.

        Args:
            one: the ACL, on this copy alone.
            record: of the one on the pattern.
            copy: which copy.
        """
        flow: Flow | None = self._flows.get(copy.flow)
        if not self._stays(one, copy.flow) or (flow is not None and not flow.acls):
            return False
        if self._fillers(copy.name):
            return True
        if is_seen(CopySource(copy.source, copy.source_topic, flow), self._observed):
            return self._has(one, copy.source, copy.source_topic)
        return copy.flow == record.flow

    def _has(self, one: Binding, source: str, topic: str) -> bool:
        """Return whether an original allows what an ACL allows on its copy, everywhere; a DENY is never too much."""
        if source not in self._authorizers:
            acls = self._observed[source].acls
            self._authorizers[source] = Authorizer(acls.bindings, takes_ranges=acls.takes_ranges)
        return one.permission == "DENY" or self._authorizers[source].allows_all_of(one, topic)


def our_bindings(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> dict[Binding, str]:
    """Return the ACLs of a target that are this topology's once its steps are carried out, each with a flow's name.

    What stands there without our record is not ours, even where we need it. Where the target shows none, what is
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
) -> Mapping[Binding, str]:
    """Return the ACLs that a target's copies should have, each with the name of a flow that fills the copy."""
    return followed(opened(topology, observed), observed, chosen, alias).bindings


def unfollowed(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> Iterator[Notice]:
    """Yield which ACLs of originals are not followed to a target, and why; takes what `acl_steps` does."""
    target = observed[alias]
    if target.acls.sight in ("seen", "unsure") and not _may_not_alter(target):
        yield from left_notices(followed(opened(topology, observed), observed, chosen, alias))


def open_copies(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> Iterator[Notice]:
    """Yield that copies without any ACL may be open to every principal; takes what `acl_steps` does."""
    acls = observed[alias].acls
    if not acls.may_be_open:
        return
    standing = Authorizer(acls.bindings)
    bare = followed(opened(topology, observed), observed, chosen, alias).bare
    if names := [name for name in bare if not standing.about(name)]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        said = "allow.everyone.if.no.acl.found is set: unless to false, every principal may read copies without any ACL"
        remedy = "originals have ACLs, none of which is followed: grant one there, at least to an administrator"
        yield Notice(f"cluster {alias}", f"{said}, as {names[0]}{more}, whose {remedy}")


def acl_notices(topology: Topology, observed: Observed, alias: str) -> Iterator[Notice]:
    """Yield which flows' ACLs are not followed into a target because a permission is missing, and what would help."""
    target = observed[alias]
    yield from own_notices(topology, target, target.access.operations)
    yield from granted_by_others(topology, target)
    yield from _granted_elsewhere(topology, target)
    for flow in _following(topology, alias):
        source = observed[flow.source]
        if source.acls.sight == "hidden":
            yield _refused(topology, flow, flow.source, "DESCRIBE")
        # Where no ACLs are in force at one side there is nothing to follow, or nowhere to put it.
        elif source.acls.bindings and target.acls.sight == "hidden":
            yield _refused(topology, flow, alias, "DESCRIBE")
        elif source.acls.bindings and target.acls.sight != "off" and _may_not_alter(target):
            yield _refused(topology, flow, alias, "ALTER")


def _granted_elsewhere(topology: Topology, target: ObservedCluster) -> Iterator[Notice]:
    """Yield what an older release has granted for other topologies on patterns that cover copies of this one."""
    ours = [name for name, record in target.owned.items() if record.topology == topology.name]
    theirs = {
        (one.topology, one.binding.pattern)
        for one in target.acls.owned
        if one.topology != topology.name and one.role == "followed" and one.binding.pattern.is_wide
    }
    for other, pattern in sorted(theirs):
        if names := sorted(covered(ours, {pattern})):
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            said = f"topology {other} has granted ACLs on {pattern}, which covers {names[0]}{more}"
            yield Notice(f"cluster {target.alias}", f"{said}: its next apply takes them back, by this release")


def _refused(topology: Topology, flow: Flow, alias: str, operation: str) -> Notice:
    user = topology.clusters[alias].user
    why = f"{user} is not allowed {operation} on cluster {alias}: grant it, or declare `acls: false`"
    return Notice(f"flow {flow.name}", f"ACLs of originals are not followed: {why}")


def _following(topology: Topology, alias: str) -> tuple[Flow, ...]:
    return tuple(flow for flow in topology.flows_into((alias,)) if flow.acls)


def _may_not_alter(target: ObservedCluster) -> bool:
    operations = target.access.operations
    return bool(operations) and "ALTER" not in operations


def revoked_with(
    topology: Topology, target: ObservedCluster, names: Collection[str] | None = None
) -> tuple[RevokeAcl, ...]:
    """Return the revocation of what this topology has granted on topics that are deleted.

    Args:
        topology: which.
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

    What our own user there may do is not decided here.
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
