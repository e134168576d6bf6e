"""The plan that takes everything away that a topology has made on its targets, and nothing else.

Pure. Records of ownership alone decide what is ours, by the ids of topics; sources are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import is_reserved
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic, Removal
from reconciler.model.planning.steps import ClusterPlan, Notice, Plan
from reconciler.model.recorded.declaration import DESTROYED, Declared
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.acls.bindings import revoked_with
from reconciler.plan.copies.identity import has_id
from reconciler.plan.copies.offsets import Observed
from reconciler.plan.guardrails.doubtful_records import doubt, granted_by_others


def destroy_plan(
    topology: Topology,
    observed: Observed,
    targets: Collection[str],
    only: Collection[str] = (),
) -> Plan:
    """Return the plan that deletes what is ours.

    Args:
        topology: what is declared.
        observed: the targets.
        targets: aliases of the target clusters to plan for.
        only: names of remote topics; empty means all, and then nothing stays in force.
    """
    clusters = []
    for alias in topology.aliases:
        if alias not in targets:
            continue
        target = observed[alias]
        ours = {name: one for name, one in target.owned.items() if one.topology == topology.name and _is_in(name, only)}
        steps = tuple(_steps(topology, ours, target))
        removed = {step.name for step in steps}
        revoked = revoked_with(topology, target, removed if only else None)
        is_target = bool(steps) or any(flow.target == alias for flow in topology.flows)
        ends = not only and ((bool(steps or revoked) and is_target) or target.in_force is not None)
        clusters.append(
            ClusterPlan(
                alias=alias,
                datacenter=topology.clusters[alias].datacenter,
                steps=(*steps, *revoked),
                left_alone=(
                    *_left_alone(topology, target, removed, only),
                    *(() if only else granted_by_others(topology, target)),
                ),
                warnings=tuple(_made_again(topology, alias, ours) if only else ()),
                declared=Declared(DESTROYED, target.in_force) if ends else None,
                # What is rolled out last goes first.
                wave=-topology.wave(alias),
            )
        )
    return Plan(topology.name, topology.digest, tuple(clusters))


def _is_in(name: str, only: Collection[str]) -> bool:
    return not only or name in only


def _steps(topology: Topology, ours: dict[str, OwnedTopic], target: ObservedCluster) -> Iterator[Removal]:
    for name, record in sorted(ours.items()):
        existing = target.topics.get(name)
        if existing is None:
            yield ForgetTopic(target.alias, name, record.flow, record.source, record.source_topic)
        elif against(name, record, existing) is None:
            why = doubt(topology, target.alias, record)
            yield DeleteTopic.of(target.alias, record, existing.topic_id, "destroyed", why)


def against(name: str, record: OwnedTopic, existing: ObservedTopic) -> str | None:
    """Return why a topic that is on record as ours is not deleted all the same; None where it may be."""
    if is_reserved(name):
        return "its name is that of an internal topic, which is never deleted"
    if not record.is_confirmed:
        return "an interrupted apply was about to make it, and whether it did is unknown: apply, and destroy it then"
    if not has_id(existing.topic_id):
        return "its brokers give topics no ids, so it may have been made anew by others: delete it by hand"
    if record.topic_id != existing.topic_id:
        return (
            f"ours was deleted and made again (topic id {record.topic_id} then, {existing.topic_id} now): "
            "it is not ours"
        )
    return None


def _left_alone(
    topology: Topology,
    target: ObservedCluster,
    removed: Collection[str],
    only: Collection[str],
) -> Iterator[Notice]:
    """Yield what stays although it might be taken for ours."""
    for name, record in sorted(target.owned.items()):
        if name in removed or not _is_in(name, only):
            continue
        existing = target.topics.get(name)
        if record.topology != topology.name:
            if name in target.names:
                yield Notice(name, f"the topology {record.topology} made it")
        elif existing is not None and (why := against(name, record, existing)):
            yield Notice(name, why)
    for name in sorted(target.names - target.owned.keys()):
        if _is_in(name, only) and (only or _looks_like_a_copy(topology, target.alias, name)):
            yield Notice(name, f"no apply of {topology.name} made it")
    if not only and (internal := sorted(target.names & set(target.journals))):
        yield Notice(", ".join(internal), "our own state is never deleted: it holds what was in force here")


def _looks_like_a_copy(topology: Topology, alias: str, name: str) -> bool:
    for flow in topology.flows:
        if flow.target == alias and flow.policy.prefixes and not is_reserved(name):
            original = flow.policy.original(flow.source, name)
            if original is not None and flow.takes(original, topology.aliases):
                return True
    return False


def _made_again(topology: Topology, alias: str, ours: dict[str, OwnedTopic]) -> Iterator[Notice]:
    """Yield which topics come back, as the declaration that is in force still has them."""
    for name, record in sorted(ours.items()):
        for flow in topology.flows_into((alias,)):
            taken = flow.source == record.source and flow.takes(record.source_topic, topology.aliases)
            if taken and flow.remote_topic(record.source_topic) == name:
                what = f"flow {flow.name} takes {record.source}'s {record.source_topic}"
                yield Notice(name, f"{what}: `apply` and `replicate` make it anew, unless the flow excludes it")
                break
