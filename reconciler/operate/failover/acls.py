"""The ACLs on a flow's copies, which `failover` and `failback` change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan


def acl_plan(topology: Topology, flow: Flow, *, failed_over: bool, source_lost: bool = False) -> Plan:
    """Return what changes in the ACLs of a flow's target.

    Args:
        topology: the declaration.
        flow: which flow.
        failed_over: whether it is to be failed over; otherwise it is no longer.
        source_lost: whether the source is not read.

    Raises:
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: something there may not be read.
    """
    from reconciler.observe.topology import observe, observe_owned
    from reconciler.plan.acls.failover_acls import failover_acl_plan

    # What flows from elsewhere is none of this, and their sources need not answer.
    pair = (flow.source, flow.target)
    part = replace(topology, flows=tuple(one for one in topology.flows if (one.source, one.target) == pair))
    if source_lost:
        observed, unseen = observe_owned(part, (flow.target,))
        if unseen:
            raise Unreachable(unseen)
    else:
        observed = observe(part, (flow.target,))
    return failover_acl_plan(topology, observed, flow.name, failed_over)


def carry_acls_out(topology: Topology, plan: Plan, check: Callable[[str], None]) -> list[Problem]:
    """Carry out changes of ACLs; return the problems of those that failed."""
    from reconciler.provision.direct import DirectProvisioner

    if plan.changes_nothing:
        return []
    outcome = DirectProvisioner(topology, may_change=check).apply(plan)
    return [failure.problem for failure in outcome.failed]
