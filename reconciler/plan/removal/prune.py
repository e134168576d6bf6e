"""What a plan deletes on request: copies of ours that the declaration has no longer.

Pure. The declaration alone decides, never what stands at a source: a copy whose original is gone stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import is_reserved
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeleteTopic, RemovalReason
from reconciler.model.planning.steps import ClusterPlan, Plan, RevokeAcl
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.acls.bindings import revoked_with, strangers, wanted_bindings
from reconciler.plan.copies.identity import has_id
from reconciler.plan.copies.offsets import Observed, choices
from reconciler.plan.guardrails.doubtful_records import doubt


def pruned(plan: Plan, topology: Topology, observed: Observed) -> Plan:
    """Return the plan with the deletion of what nothing declares any longer, behind everything else.

    Args:
        plan: of the topology.
        topology: what is declared.
        observed: what the plan was made from.

    Raises:
        Refused: AB422, nothing of ours would be left on a cluster.
    """
    if not any(flow.enabled for flow in topology.flows):
        raise Refused(_emptied(topology, "the topology", "no enabled flow is declared"))
    targets = [cluster.alias for cluster in plan.clusters]
    wanted = {(choice.flow.target, choice.remote) for choice in choices(topology, observed, targets)}
    clusters, problems = [], []
    for cluster in plan.clusters:
        names = {remote for alias, remote in wanted if alias == cluster.alias}
        steps = tuple(prunable(topology, observed[cluster.alias], names))
        if steps and not topology.flows_into((cluster.alias,)) and any(one.flows for one in plan.clusters):
            # Flows into it end with this plan, and its copies were not named.
            steps = ()
        if steps and not names:
            where = topology.clusters[cluster.alias].where
            problems.append(_emptied(topology, where, "no flow into it takes any topic now", cluster.alias))
        clusters.append(_with(cluster, steps, revoked_with(topology, observed[cluster.alias], {s.name for s in steps})))
    if problems:
        raise Refused(problems)
    return replace(plan, clusters=tuple(clusters))


def cleared(plan: Plan, topology: Topology, observed: Observed) -> Plan:
    """Return the plan with the revocation of what others granted on copies of ours, and originals do not have.

    Args:
        plan: of the topology.
        topology: what is declared.
        observed: what the plan was made from.
    """

    def with_strangers(cluster: ClusterPlan) -> ClusterPlan:
        target = observed[cluster.alias]
        # Flows whose originals' ACLs are unknown, as they could not be read.
        unseen = {
            flow.name
            for flow in topology.flows_into((cluster.alias,))
            if flow.acls and observed[flow.source].acls.sight in ("unasked", "hidden")
        }
        wanted = wanted_bindings(topology, observed, choices(topology, observed, (cluster.alias,)), cluster.alias)
        revoked = (
            RevokeAcl(cluster.alias, one, flow, is_foreign=True)
            for one, flow in strangers(topology, target).items()
            if one not in wanted and flow not in unseen
        )
        return replace(cluster, steps=(*cluster.steps, *revoked))

    return replace(plan, clusters=tuple(map(with_strangers, plan.clusters)))


def prunable(topology: Topology, target: ObservedCluster, wanted: Collection[str]) -> Iterator[DeleteTopic]:
    """Yield the deletion of each copy of ours that no flow declares, by name.

    Args:
        topology: what is declared.
        target: the cluster.
        wanted: remote topics that flows declare there.
    """
    for name, record in sorted(target.owned.items()):
        existing = target.topics.get(name)
        if record.topology != topology.name or name in wanted or existing is None or is_reserved(name):
            continue
        if not has_id(existing.topic_id) or record.topic_id != existing.topic_id:
            continue
        reason = obsolete(topology, target.alias, record)
        if reason is not None:
            why = doubt(topology, target.alias, record)
            yield DeleteTopic.of(target.alias, record, existing.topic_id, reason, why)


def obsolete(topology: Topology, alias: str, record: OwnedTopic) -> RemovalReason | None:
    """Return why no flow declares a copy any longer, whatever stands at its source; None where one may.

    A flow that is not enabled declares its copies as well. A source that is not declared any more may have another
    alias now, so its copies are not pruned.
    """
    if record.source not in topology.clusters or _may_be_asked_for(topology, alias, record):
        return None
    flow = next((one for one in topology.flows if one.name == record.flow), None)
    if flow is None or (flow.source, flow.target) != (record.source, alias):
        return "flow-gone"
    return "renamed" if flow.topics.matches(record.source_topic) else "not-taken"


def _may_be_asked_for(topology: Topology, alias: str, record: OwnedTopic) -> bool:
    for flow in topology.flows:
        if flow.target != alias:
            continue
        if flow.source == record.source and flow.topics.matches(record.source_topic) and _names(flow, record):
            return True
        if record.offsets == "translated":
            # It may have several originals, of which one alone is on record.
            original = flow.policy.original(flow.source, record.name)
            if flow.topics.matches(original) if original else flow.policy.may_name(flow.source, record.name):
                return True
    return False


def _names(flow: Flow, record: OwnedTopic) -> bool:
    """Return whether the flow gives the copy this name, or may: it is unknown where the flow has no usable name."""
    nameless = flow.nameless(record.source_topic) is not None
    return nameless or flow.remote_topic(record.source_topic) == record.name


def _with(cluster: ClusterPlan, deletions: tuple[DeleteTopic, ...], revoked: tuple[RevokeAcl, ...]) -> ClusterPlan:
    names = {step.name for step in deletions}
    left = tuple(notice for notice in cluster.left_alone if notice.subject not in names)
    changes = tuple(
        replace(change, stops=tuple(one for one in change.stops if one.remote not in names))
        for change in cluster.changes
    )
    known = {step.name for step in cluster.steps if isinstance(step, RevokeAcl)}
    more = (step for step in revoked if step.name not in known)
    return replace(cluster, steps=(*cluster.steps, *deletions, *more), left_alone=left, changes=changes)


def _emptied(topology: Topology, where: str, found: str, alias: str | None = None) -> Problem:
    options = f" --clusters {alias}" if alias else ""
    return Problem(
        "AB422",
        where,
        f"{found}, so that every copy of {topology.name} would be deleted",
        f"correct the declaration; to delete all copies is what `anabranch destroy FILE...{options}` is for",
    )
