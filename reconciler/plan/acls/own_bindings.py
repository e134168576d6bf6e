"""Which ACLs an apply grants the replicator itself, where the principal of tasks is declared.

Pure. `requirements` has what flows need; here it becomes ACLs of one principal on one cluster. What is granted is on
record, and is revoked when no flow needs it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import COPYING, without_surplus
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import SHARED_NAMES
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import GrantAcl, Notice, RevokeAcl
from reconciler.plan.acls.requirements import needed_acls


def own_bindings(topology: Topology, alias: str, shared: Collection[str] = ()) -> dict[Binding, str]:
    """Return what the replicator is allowed on a cluster, each with the name of the first flow that needs it.

    Args:
        topology: what is declared.
        alias: of the cluster.
        shared: targets whose journals are still those that all topologies share.
    """
    replicator = topology.clusters[alias].replicator
    flows = tuple(flow for flow in topology.flows if flow.enabled and alias in (flow.source, flow.target))
    if replicator is None:
        return {}
    needed = [
        # With one purpose for all, an operation that another one implies is left out across purposes.
        replace(acl, purpose="replicate", is_optional=False)
        for acl in needed_acls(topology, flows, shared)
        if acl.alias == alias
        and acl.purpose in COPYING
        and (replicator.reconcile or acl.purpose == "replicate")
        and (replicator.optional or not acl.is_optional)
    ]
    return {
        Binding(acl.kind, acl.pattern, replicator.name, acl.operation): acl.flows[0] for acl in without_surplus(needed)
    }


def own_steps(topology: Topology, target: ObservedCluster) -> Iterator[GrantAcl | RevokeAcl]:
    """Yield what the replicator is granted on a cluster, and what is taken from it, in no order."""
    wanted = own_bindings(topology, target.alias)
    if SHARED_NAMES.owned in target.journals:
        # It goes on with these until the journals are moved, and finds them at home from then on.
        wanted = own_bindings(topology, target.alias, (target.alias,)) | wanted
    owned = {one.binding: one for one in target.acls.owned_by(topology.name) if one.role == "own"}
    known = {flow.name for flow in topology.flows}
    # What stands by another topology's record must be on ours as well, or it goes when that needs it no longer.
    recorded = target.acls.recorded()
    for one, flow in wanted.items():
        is_ours = one in owned and owned[one].flow in known
        if one not in target.acls.bindings or (one in recorded and not is_ours):
            yield GrantAcl(target.alias, one, flow, role="own")
    for one, record in owned.items():
        if one not in wanted and _is_of(topology, target.alias, record.flow):
            is_kept = target.acls.is_shared(one, topology.name)
            yield RevokeAcl(target.alias, one, record.flow, is_kept=is_kept, role="own")


def own_notices(topology: Topology, target: ObservedCluster, operations: Collection[str]) -> Iterator[Notice]:
    """Yield why the replicator is not allowed what it needs on a cluster with a declared `replicator`.

    Args:
        topology: what is declared.
        target: the cluster.
        operations: what we may do on it; empty where it does not report them.
    """
    cluster = topology.clusters[target.alias]
    if cluster.replicator is None or target.acls.sight == "unasked":
        return
    subject = f"cluster {target.alias}"
    if target.acls.sight == "off":
        yield Notice(subject, "has no authorizer: nothing is granted to its replicator")
    for operation in ("DESCRIBE", "ALTER"):
        lacks = target.acls.sight == "hidden" if operation == "DESCRIBE" else operations and "ALTER" not in operations
        if lacks:
            why = f"{cluster.user} is not allowed {operation} on cluster {target.alias}"
            yield Notice(subject, f"its replicator is granted nothing: {why}; grant it to the principal of `apply`")
            return


def _is_of(topology: Topology, alias: str, name: str) -> bool:
    """Return whether an ACL that was granted for a flow is this alias' to revoke: one cluster may be declared twice."""
    flow = next((flow for flow in topology.flows if flow.name == name), None)
    return flow is None or alias in (flow.source, flow.target)
