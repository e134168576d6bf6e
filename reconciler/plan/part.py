"""A plan for some remote topics alone (`--target`): what else a topology asks for neither helps nor hinders.

Pure. Nothing is put in force by it, as it does not make a target what is declared.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reconciler.model.observed import ObservedCluster
from reconciler.model.steps import ClusterPlan, CreateInternalTopic, Notice, Plan, PlannedFlow
from reconciler.model.topology import Topology
from reconciler.plan.left_out import without
from reconciler.plan.offsets import Observed, choices, taken_topics

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


def only(plan: Plan, names: Collection[str], digest: str) -> Plan:
    """Return the part of a plan that is about the remote topics `names`.

    Args:
        plan: of a narrowed topology.
        names: of remote topics.
        digest: of the whole declaration.
    """
    return replace(plan, digest=digest, clusters=tuple(_only(cluster, names) for cluster in plan.clusters))


def _only(cluster: ClusterPlan, names: Collection[str]) -> ClusterPlan:
    kept = tuple(step for step in cluster.steps if step.name in names)
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
    )


def _has_topics(flow: PlannedFlow) -> bool:
    return flow.topics > 0
