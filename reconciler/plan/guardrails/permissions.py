"""What flows need and the clusters do not allow, or demand and cannot get: each an error before anything is made.

Pure. Called by `build`, which raises what is found here together with the guardrails' refusals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.plan.copies.offsets import Choice, Observed


def impossible_demands(
    topology: Topology, observed: Observed, chosen: Collection[Choice], targets: Collection[str]
) -> Iterator[Problem]:
    """Yield what flows demand and cannot have: identical offsets, or markers as fill, or a place for dead letters."""
    for choice in chosen:
        if choice.against is not None and choice.flow.offsets == "identical":
            flow = choice.flow
            yield Problem(
                "AB361",
                f"{topology.clusters[flow.target].where}, topic {choice.remote}",
                f"flow {flow.name} demands identical offsets, and they cannot be held: {choice.against}",
                f"exclude {choice.original.name} from flow {flow.name} (topics.exclude), give the copies names of "
                "their own (policy.type: default), or demand nothing (offsets: auto): then the others are copied",
            )
    for flow in topology.flows_into(targets):
        where = topology.clusters[flow.target].where
        if flow.dlq is not None and flow.dlq not in observed[flow.target].names:
            yield flow.lacks_dlq(topology.clusters[flow.target])
        if flow.dlq in {choice.remote for choice in chosen if choice.flow.target == flow.target}:
            yield Problem(
                "AB363",
                f"{where}, topic {flow.dlq}",
                f"flow {flow.name} would put records aside there (dlq), and it is a copy of a topic",
                "name another topic as dlq",
            )
        access = observed[flow.target].access
        if _needs_markers(flow, chosen) and not access.may_write_markers:
            target = topology.clusters[flow.target]
            hidden = "" if access.operations else " (or may not DESCRIBE the cluster, which would show it)"
            yield Problem(
                "AB362",
                target.where,
                f"flow {flow.name} demands fill: markers, and {target.user} is not allowed "
                f"{access.marker_operation} on the cluster{hidden}",
                f"grant {access.marker_operation} on the cluster, or let fill be auto: it takes transactions then",
            )


def _needs_markers(flow: Flow, chosen: Collection[Choice]) -> bool:
    """Return whether a flow demands markers for copies that have or may get gaps: begun ones keep their offsets."""
    is_begun = any(choice.flow.name == flow.name and choice.against is None for choice in chosen)
    return flow.demands_markers or (flow.fill == "markers" and is_begun)


def missing_permissions(
    topology: Topology, observed: Observed, desired: Collection[DesiredTopic], targets: Collection[str]
) -> Iterator[Problem]:
    """Yield what the replicator would be refused, at targets and at sources, as far as the clusters report it now."""
    for flow in topology.flows_into(targets):
        access = observed[flow.target].access
        # A copy with identical offsets takes a transactional id for its producer.
        is_begun = _has_begun_identical(flow, observed[flow.target], desired)
        needs_ids = is_begun or not flow.repeats
        otherwise = "" if is_begun or flow.offsets == "identical" else _otherwise(flow)
        for refusal in access.refusals:
            if refusal.flow == flow.name and (needs_ids or not refusal.transactional):
                problem = _refused(topology, flow.target, refusal.operation, refusal.resource, f"flow {flow.name}")
                yield replace(problem, remedy=problem.remedy + otherwise) if refusal.transactional else problem
        if needs_ids and not access.has_transactions:
            yield Problem(
                "AB364",
                topology.clusters[flow.target].where,
                f"flow {flow.name} is to copy exactly once, and the cluster has no transactions",
                f"take Apache Kafka 2.8 or newer{otherwise}",
            )
    for topic in desired:
        yield from refused_operations(topology, observed, topic)


def _has_begun_identical(flow: Flow, target: ObservedCluster, desired: Collection[DesiredTopic]) -> bool:
    return any(
        topic.offsets == "identical" and topic.name in target.owned for topic in desired if topic.flow == flow.name
    )


def _otherwise(flow: Flow) -> str:
    return (
        f", or declare `delivery: at-least-once` for flow {flow.name}: its copies have offsets of their own then, and "
        "records may be repeated"
    )


def refused_operations(topology: Topology, observed: Observed, topic: DesiredTopic) -> Iterator[Problem]:
    """Yield what the replicator would be refused on one copy and on its original."""
    existing = observed[topic.cluster].topics.get(topic.name)
    if lacking := existing.lacks(topic.operations) if existing else ():
        operations = " and ".join(lacking)
        yield _refused(topology, topic.cluster, operations, f"topic {topic.name}", f"flow {topic.flow}")
    if observed[topic.source].topics[topic.source_topic].lacks(("READ",)):
        yield _refused(topology, topic.source, "READ", f"topic {topic.source_topic}", f"flow {topic.flow}")


def _refused(topology: Topology, alias: str, operation: str, resource: str, needed_by: str) -> Problem:
    cluster = topology.clusters[alias]
    return Problem(
        "AB360",
        cluster.where,
        f"{cluster.user} is not allowed {operation} on {resource}, which {needed_by} needs",
        f"grant {operation} on {resource}",
    )
