"""Build the plan: desired against observed, as ordered steps.

Pure: no clock, no network, the same plan for the same facts. Called by the commands and by the reconcile loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from reconciler.model.base.errors import EnvironmentFault, Refused, together
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Plan,
    RecordOwnership,
    Step,
    comes_before_topics,
)
from reconciler.model.recorded.declaration import Declared, declaration_into
from reconciler.plan.acls.bindings import acl_steps, open_copies, unfollowed
from reconciler.plan.changes import changes, out_of_reach
from reconciler.plan.copies.desired import desired_of
from reconciler.plan.copies.differences import config_changes
from reconciler.plan.copies.failed_over import failover_notices, of_running, renamed_copies, resolved, running
from reconciler.plan.copies.flows import not_started, planned_flow
from reconciler.plan.copies.offsets import Choice, Observed, choices
from reconciler.plan.copies.recreated import is_to_be_recorded
from reconciler.plan.copies.refused_names import misnamed
from reconciler.plan.findings.notices import left_alone, warnings
from reconciler.plan.guardrails.permissions import impossible_demands, missing_permissions
from reconciler.plan.guardrails.refusals import refusals


def build_plan(topology: Topology, observed: Observed, targets: Collection[str]) -> Plan:
    """Return the plan that makes the target clusters what the topology declares.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of the target clusters to plan for.

    Raises:
        Refused: AB401 to AB409, with every refusal.
        EnvironmentFault: AB360 to AB362, with every permission that is missing and every demand that cannot be met.
        AnabranchError: both, together.
    """
    declared, topology = topology, resolved(topology, observed)
    chosen = choices(topology, observed, targets)
    begun = of_running(chosen)
    desired = desired_of(begun, observed)
    _raise_problems(running(topology), observed, begun, desired, targets)
    clusters = []
    by_flow: dict[str, list[Choice]] = {}
    for choice in chosen:
        by_flow.setdefault(choice.flow.name, []).append(choice)
    for alias in topology.aliases:
        flows = tuple(flow for flow in topology.flows_into(targets) if flow.target == alias)
        if not flows and alias not in targets:
            continue
        topics = tuple(topic for topic in desired if topic.cluster == alias)
        ends = observed[alias].in_force
        coming = _declared(declared, observed[alias]) if flows or (ends and ends.is_declared) else None
        wanted = {choice.remote for choice in chosen if choice.flow.target == alias}
        clusters.append(
            ClusterPlan(
                alias=alias,
                datacenter=topology.clusters[alias].datacenter,
                steps=_ordered(
                    tuple(_steps([topic for topic in topics if topic.is_made], observed[alias]) if flows else ()),
                    tuple(_granted(declared, observed, chosen, alias)),
                ),
                flows=tuple(
                    planned_flow(flow, by_flow.get(flow.name, ()), observed[alias].access)
                    for flow in flows
                    if not flow.failed_over
                ),
                not_started=tuple(not_started([choice for choice in begun if choice.flow.target == alias])),
                left_alone=(
                    *left_alone(chosen, observed[alias], topology),
                    *unfollowed(declared, observed, chosen, alias),
                ),
                warnings=(
                    *warnings(topics, alias, topology, observed),
                    *open_copies(declared, observed, chosen, alias),
                    *failover_notices(declared, observed[alias]),
                ),
                declared=coming,
                wave=topology.wave(alias),
                changes=tuple(changes(coming, declared, observed[alias], wanted)),
            )
        )
    return Plan(declared.name, declared.digest, tuple(clusters), tuple(out_of_reach(declared, observed)))


def with_acls_of(plan: Plan, topology: Topology, observed: Observed) -> Plan:
    """Return the plan with the changes of ACLs that another declaration needs, such as one that takes more topics.

    Args:
        plan: of what may be done.
        topology: of what is copied.
        observed: what the plan was made from.
    """
    chosen = choices(resolved(topology, observed), observed, [cluster.alias for cluster in plan.clusters])
    clusters = []
    for cluster in plan.clusters:
        topics = tuple(step for step in cluster.steps if not isinstance(step, AclChange))
        acls = acl_steps(topology, observed, chosen, cluster.alias)
        clusters.append(replace(cluster, steps=_ordered(topics, acls)))
    return replace(plan, clusters=tuple(clusters))


def _granted(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> Iterator[Step]:
    """Yield the ACLs of a cluster, and before them the journal of what is ours, where only ACLs are ours."""
    steps = acl_steps(topology, observed, chosen, alias)
    if steps and not topology.flows_into((alias,)):
        yield from (CreateInternalTopic(alias, name) for name in lacking(observed[alias])[:1])
    yield from steps


def _ordered(topics: Sequence[Step], acls: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps of a cluster in their order: ACLs of copies that are there come before topics are made."""
    made = {step.name for step in topics if isinstance(step, CreateTopic)}

    def place(step: Step) -> int:
        if isinstance(step, CreateInternalTopic):
            return 0
        return 1 if isinstance(step, AclChange) and comes_before_topics(step, made) else 2

    return tuple(sorted((*topics, *acls), key=place))


def _declared(topology: Topology, target: ObservedCluster) -> Declared:
    declaration = declaration_into(topology, target.alias)
    return Declared(
        declaration.digest,
        target.in_force,
        declaration,
        target.declaration,
        topology.owner,
        tuple(sorted(topology.targets)),
        tuple(one for one in topology.overrides if one.target == target.alias),
        target.overrides,
    )


def _raise_problems(
    topology: Topology,
    observed: Observed,
    chosen: Collection[Choice],
    desired: Collection[DesiredTopic],
    targets: Collection[str],
) -> None:
    """Raise all refusals of this plan, together."""
    stray = {(flow.name, name) for flow in topology.flows_into(targets) for name in misnamed(topology, flow, observed)}
    # What its policy excludes has been reported with the policy's place, and demands nothing.
    named = [choice for choice in chosen if (choice.flow.name, choice.original.name) not in stray]
    faults = (
        *impossible_demands(topology, observed, named, targets),
        *missing_permissions(topology, observed, desired, targets),
    )
    refused = (*refusals(topology, observed, desired, targets), *renamed_copies(topology, observed, targets))
    errors = [kind(problems) for kind, problems in ((Refused, refused), (EnvironmentFault, faults)) if problems]
    if errors:
        raise together(errors)


def _steps(topics: Collection[DesiredTopic], target: ObservedCluster) -> Iterator[Step]:
    """Yield the steps for one cluster in the order in which they must be carried out."""
    # Ownership is recorded before a topic is made, so our own topics come first.
    yield from (CreateInternalTopic(target.alias, name) for name in lacking(target))
    yield from (CreateTopic(topic) for topic in topics if topic.name not in target.topics)
    existing = [_no_fewer(topic, target.topics[topic.name]) for topic in topics if topic.name in target.topics]
    for topic, found in existing:
        if topic.partitions > found.partitions:
            yield AddPartitions(topic, found.topic_id, found.partitions)
    changes = config_changes([topic for topic, _ in existing], target.topics, target.owned)
    for topic, found in existing:
        if topic.name in changes:
            yield AlterConfig(topic, found.topic_id, changes[topic.name])
    for topic, found in existing:
        record = target.owned[topic.name]
        if not record.is_confirmed:
            yield RecordOwnership(topic, found.topic_id, "interrupted")
        elif record.flow != topic.flow:
            yield RecordOwnership(topic, found.topic_id, "flow-renamed")
        elif topic.partitions == found.partitions > record.partitions:
            yield RecordOwnership(topic, found.topic_id, "grown")
        elif topic.partitions == found.partitions and topic.name not in changes and is_to_be_recorded(topic, record):
            yield RecordOwnership(topic, found.topic_id, "made-anew")


def lacking(target: ObservedCluster) -> list[str]:
    """Return which topics of our own state a target lacks, that of ownership first."""
    return [name for name in target.journals if name not in target.names]


def _no_fewer(topic: DesiredTopic, found: ObservedTopic) -> tuple[DesiredTopic, ObservedTopic]:
    """Return an existing topic with the partitions that it has at least: what is recorded is what there is."""
    return replace(topic, partitions=max(topic.partitions, found.partitions)), found
