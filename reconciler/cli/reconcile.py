"""What `replicate` does for each flow again and again: observe, plan and provision as `apply` does, but only to grow.

Nothing else is changed and nothing is deleted: a changed setting waits for `apply`, where somebody reads the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconciler.model.outcome import Growth
from reconciler.model.steps import AddPartitions, ClusterPlan, CreateInternalTopic, CreateTopic, Plan, Step
from reconciler.model.topology import Topology


def growing(topology: Topology) -> Callable[[str], Growth]:
    """Return a function that makes what the remote topics of a flow lack, and tells what became of it.

    Where `apply` refuses as a whole, it leaves out the topics that must not be touched. It raises an AnabranchError
    when a cluster cannot be read, or the flow as a whole cannot be.
    """
    from reconciler.observe.topology import observe
    from reconciler.plan.build import build_plan
    from reconciler.plan.left_out import hindered, left_out, without
    from reconciler.provision.direct import DirectProvisioner
    from reconciler.state.ownership import INTERNAL_TOPICS

    def grow(name: str) -> Growth:
        (flow,) = (flow for flow in topology.flows if flow.name == name)
        # The troubles of other clusters are not this flow's; those beside it tell which topics two flows would take.
        beside = tuple(one for one in topology.flows if (one.source, one.target) == (flow.source, flow.target))
        part = replace(topology, flows=beside)
        targets = (flow.target,)
        observed = observe(part, targets)
        unwanted = left_out(part, observed, targets)
        wanted = without(part, unwanted)
        refused = hindered(wanted, observed, targets)
        plan = build_plan(without(wanted, refused), observed, targets, tuple(INTERNAL_TOPICS))
        outcome = DirectProvisioner(topology).apply(only_growth(replace(plan, digest=topology.digest), name))
        return Growth(outcome, unwanted.get(name, {}), refused.get(name, {}))

    return grow


def only_growth(plan: Plan, flow: str) -> Plan:
    """Return the steps of `plan` that make topics of a flow, or let them grow."""
    clusters = tuple(
        ClusterPlan(cluster.alias, cluster.datacenter, tuple(step for step in cluster.steps if _grows(step, flow)))
        for cluster in plan.clusters
    )
    return replace(plan, clusters=clusters)


def _grows(step: Step, flow: str) -> bool:
    if isinstance(step, CreateTopic | AddPartitions):
        return step.topic.flow == flow
    return isinstance(step, CreateInternalTopic)
