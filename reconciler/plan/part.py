"""A plan for some remote topics alone (`--target`): what else a topology declares neither helps nor hinders.

Pure. Nothing is put in force by it, as it does not make a target what is declared.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reconciler.model.acls.requirements import covered
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import (
    AclChange,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Notice,
    Plan,
    PlannedFlow,
    RevokeAcl,
)
from reconciler.plan.acls.bindings import acl_steps, withdrawals
from reconciler.plan.copies.offsets import Observed, choices, taken_topics
from reconciler.plan.guardrails.left_out import without

_NOT_WHOLE = "only what --target names is planned: what is in force stays in force"


def known_names(topology: Topology, observed: Observed, targets: Collection[str]) -> frozenset[str]:
    """Return the remote topics that flows into `targets` ask for, and those that are ours there."""
    wanted = {choice.remote for choice in choices(topology, observed, targets)}
    return frozenset(wanted.union(*(ours(topology, observed[alias]) for alias in targets)))


def ours(topology: Topology, target: ObservedCluster) -> frozenset[str]:
    """Return the topics that are on record as ours at a target, whether they are there or not."""
    return frozenset(name for name, record in target.owned.items() if record.topology == topology.name)


def narrowed(topology: Topology, observed: Observed, targets: Collection[str], names: Collection[str]) -> Topology:
    """Return the topology whose flows take only what they copy to the remote topics `names`."""
    others = {
        flow.name: {
            original.name: "not asked for"
            for original in taken_topics(flow, topology, observed)
            if flow.remote_topic(original.name) not in names
        }
        for flow in topology.flows_into(targets)
    }
    return without(topology, others)


def only(plan: Plan, names: Collection[str], topology: Topology, observed: Observed) -> Plan:
    """Return the part of a plan that is about the remote topics `names`.

    Args:
        plan: of a narrowed topology.
        names: of remote topics.
        topology: the whole declaration.
        observed: what the plan was made from.
    """
    clusters = tuple(_only(cluster, names, _withdrawn(cluster, topology, observed)) for cluster in plan.clusters)
    return replace(plan, digest=topology.digest, clusters=clusters)


def _withdrawn(cluster: ClusterPlan, topology: Topology, observed: Observed) -> tuple[AclChange, ...]:
    """Return what takes back ACLs on patterns, where topics are made that one of them would cover."""
    chosen = choices(topology, observed, (cluster.alias,))
    steps = withdrawals(acl_steps(topology, observed, chosen, cluster.alias), observed[cluster.alias])
    made = [step.name for step in cluster.steps if isinstance(step, CreateTopic)]
    return steps if covered(made, {step.binding.pattern for step in steps if isinstance(step, RevokeAcl)}) else ()


def _only(cluster: ClusterPlan, names: Collection[str], first: tuple[AclChange, ...]) -> ClusterPlan:
    kept = (*first, *(step for step in cluster.steps if step.name in names))
    state = tuple(step for step in cluster.steps if isinstance(step, CreateInternalTopic)) if kept else ()
    told = tuple(notice for notice in cluster.warnings if notice.subject in names)
    return replace(
        cluster,
        steps=(*state, *kept),
        flows=tuple(flow for flow in cluster.flows if _has_topics(flow)),
        not_started=tuple(topic for topic in cluster.not_started if topic.remote in names),
        left_alone=tuple(notice for notice in cluster.left_alone if notice.subject in names),
        warnings=(*told, Notice(f"cluster {cluster.alias}", _NOT_WHOLE)),
        declared=None,
        changes=(),
    )


def _has_topics(flow: PlannedFlow) -> bool:
    return flow.topics > 0
