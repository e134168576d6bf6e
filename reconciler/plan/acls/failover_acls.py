"""The ACLs of one flow that fails over, or back: which principals may write to its copies, the replicator or others.

Pure. `failover` and `failback` carry the steps out at once, where `apply` would do so with all else that it finds. They
are what changes in the ACLs that `bindings` and `own_bindings` return, and nothing besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.model.acls.binding import Binding, Role
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AclChange, ClusterPlan, GrantAcl, Notice, Plan, RevokeAcl
from reconciler.model.recorded.failover import FailedOver
from reconciler.plan.acls.bindings import acl_order, acl_steps, wanted_bindings, withdrawals
from reconciler.plan.acls.own_bindings import own_bindings
from reconciler.plan.copies.failed_over import opened
from reconciler.plan.copies.offsets import Choice, Observed, choices


def failover_acl_plan(topology: Topology, observed: Observed, flow: str, failed_over: bool) -> Plan:
    """Return the plan that changes what a failover of one flow changes in the ACLs of its target, or its failback.

    Nothing is put in force by it. Where the source was not observed nothing of it can be followed: then only what is
    about the replicator changes, and a warning reports it.

    Args:
        topology: what is declared.
        observed: the target, with its ACLs, and the source where it answers.
        flow: name of the flow.
        failed_over: whether it is to be failed over, regardless of its file and its record; otherwise it is no longer.
    """
    (moved,) = (one for one in topology.flows if one.name == flow)
    cluster = topology.clusters[moved.target]
    told = tuple(_notices(topology, observed, moved))
    changes = {step.binding: step for step in _steps(topology, observed, moved, failed_over)}
    # What an older release granted on a pattern would outlast it.
    changes |= {step.binding: step for step in _withdrawn(topology, observed, moved, failed_over)}
    steps = tuple(sorted(changes.values(), key=acl_order))
    if _is_closed(observed[moved.target]):
        steps = ()
    plan = ClusterPlan(cluster.alias, cluster.datacenter, steps, warnings=told, wave=topology.wave(cluster.alias))
    return Plan(topology.name, topology.digest, (plan,))


def _is_closed(target: ObservedCluster) -> bool:
    """Return whether we may not read ACLs there, or change them, or there are none in force."""
    operations = target.access.operations
    return target.acls.sight not in ("seen", "unsure") or bool(operations and "ALTER" not in operations)


def _steps(topology: Topology, observed: Observed, moved: Flow, failed_over: bool) -> Iterator[AclChange]:
    before, after = (_standing(topology, observed, moved, over) for over in (not failed_over, failed_over))
    acls = observed[moved.target].acls
    roles: tuple[Role, ...] = ("followed", "own")
    wanted = {role: _wanted(*after, moved, role) for role in roles}
    for role in roles:
        former = _wanted(*before, moved, role).keys()
        records = {one.binding: one for one in acls.owned_by(topology.name) if one.role == role}
        for one in wanted[role].keys() - former:
            # What stands by another topology's record must be on ours as well, or it goes when they need it no longer.
            if one not in acls.bindings or (one in acls.recorded() and one not in records):
                yield GrantAcl(moved.target, one, wanted[role][one], role=role)
        for one in records.keys() & (former - wanted["followed"].keys() - wanted["own"].keys()):
            is_kept = acls.is_shared(one, topology.name)
            yield RevokeAcl(moved.target, one, records[one].flow, is_kept=is_kept, role=role)


def _standing(
    topology: Topology, observed: Observed, moved: Flow, failed_over: bool
) -> tuple[Topology, Mapping[str, ObservedCluster]]:
    """Return declaration and clusters as they are with the flow failed over, or without."""
    flows = tuple(replace(one, failed_over=failed_over) if one == moved else one for one in topology.flows)
    target = observed[moved.target]
    on_record: dict[str, FailedOver] = {name: one for name, one in target.failed_over.items() if name != moved.name}
    seen = {**observed, target.alias: replace(target, failed_over=on_record)}
    return opened(replace(topology, flows=flows), seen), seen


def _wanted(topology: Topology, observed: Observed, moved: Flow, role: Role) -> Mapping[Binding, str]:
    if role == "own":
        return own_bindings(topology, moved.target)
    if moved.source not in observed:
        return {}
    return wanted_bindings(topology, observed, _beside(topology, observed, moved), moved.target)


def _withdrawn(topology: Topology, observed: Observed, moved: Flow, failed_over: bool) -> tuple[AclChange, ...]:
    """Return what takes away ACLs on patterns, and gives the copies beneath them their own."""
    if moved.source not in observed:
        return ()
    after, seen = _standing(topology, observed, moved, failed_over)
    return withdrawals(acl_steps(after, seen, _beside(after, seen, moved), moved.target), observed[moved.target])


def _beside(topology: Topology, observed: Observed, moved: Flow) -> tuple[Choice, ...]:
    """Return the choices of the flows between the same clusters; sources of flows from elsewhere need not answer."""
    beside = tuple(one for one in topology.flows if (one.source, one.target) == (moved.source, moved.target))
    return choices(replace(topology, flows=beside), observed, (moved.target,))


def _notices(topology: Topology, observed: Observed, moved: Flow) -> Iterator[Notice]:
    """Yield what is not done, and why."""
    subject, target = f"flow {moved.name}", observed[moved.target]
    if target.acls.sight == "off":
        yield Notice(subject, f"no ACL changes: {moved.target} has no authorizer")
    elif _is_closed(target):
        lacking = "ALTER" if target.acls.sight in ("seen", "unsure") else "DESCRIBE"
        user = topology.clusters[moved.target].user
        yield Notice(subject, f"no ACL changes: {user} is not allowed {lacking} on cluster {moved.target}")
    elif moved.acls and moved.source not in observed:
        yield Notice(
            subject, f"{moved.source} was not read: the right to write to originals is not followed to the copies"
        )
    elif moved.acls and observed[moved.source].acls.sight == "hidden":
        user = topology.clusters[moved.source].user
        yield Notice(subject, f"the right to write is not followed: {user} is not allowed DESCRIBE on {moved.source}")
    elif not moved.acls:
        yield Notice(subject, "it follows no ACLs (acls: false): grant writing on the copies by hand")
    if topology.clusters[moved.target].replicator is None and target.acls.sight == "seen":
        yield Notice(subject, f"no replicator is declared for {moved.target}: what it may do there is left as it is")
