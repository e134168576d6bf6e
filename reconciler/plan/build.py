"""Build the plan: desired against observed, as ordered steps.

Pure: no clock, no network, the same plan for the same facts. Called by the commands and by the reconcile loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.desired import DesiredTopic
from reconciler.model.errors import Refused
from reconciler.model.observed import ObservedCluster
from reconciler.model.steps import (
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Notice,
    Plan,
    PlannedFlow,
    RecordOwnership,
    Step,
)
from reconciler.model.topology import Topology
from reconciler.plan.desired import Observed, desired_topics, taken_topics
from reconciler.plan.differences import config_changes
from reconciler.plan.guardrails import refusals
from reconciler.plan.settings import unknown_keys


def build_plan(
    topology: Topology, observed: Observed, targets: Collection[str], internal_topics: Collection[str]
) -> Plan:
    """Return the plan that makes the target clusters what the topology says.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of the target clusters to plan for.
        internal_topics: names of the topics that our state needs on each target.

    Raises:
        Refused: AB401 to AB406, with every refusal.
    """
    desired = desired_topics(topology, observed, targets)
    problems = tuple(refusals(topology, observed, desired, targets))
    if problems:
        raise Refused(problems)
    clusters = []
    for alias in topology.aliases:
        flows = tuple(flow for flow in topology.flows_into(targets) if flow.target == alias)
        if not flows and alias not in targets:
            continue
        topics = tuple(topic for topic in desired if topic.cluster == alias)
        clusters.append(
            ClusterPlan(
                alias=alias,
                datacenter=topology.clusters[alias].datacenter,
                steps=tuple(_steps(topics, observed[alias], internal_topics)) if flows else (),
                flows=tuple(
                    PlannedFlow(
                        name=flow.name,
                        source=flow.source,
                        target=flow.target,
                        tasks=flow.tasks,
                        topics=len(taken_topics(flow, topology, observed)),
                        offsets="identical",
                    )
                    for flow in flows
                ),
                left_alone=tuple(_left_alone(topics, observed[alias], topology)),
                warnings=tuple(_warnings(topics, alias, topology, observed)),
            )
        )
    return Plan(topology.name, topology.digest, tuple(clusters))


def _steps(topics: Collection[DesiredTopic], target: ObservedCluster, internal: Collection[str]) -> Iterator[Step]:
    """Yield the steps for one cluster in the order in which they must be carried out."""
    # Ownership is recorded before a topic is made, so our own topics come first.
    yield from (CreateInternalTopic(target.alias, name) for name in internal if name not in target.names)
    yield from (CreateTopic(topic) for topic in topics if topic.name not in target.topics)
    existing = [(topic, target.topics[topic.name]) for topic in topics if topic.name in target.topics]
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


def _left_alone(topics: Collection[DesiredTopic], target: ObservedCluster, topology: Topology) -> Iterator[Notice]:
    """Yield what is ours on this cluster and no longer asked for: it is never deleted."""
    wanted = {topic.name for topic in topics}
    flows = {flow.name: flow for flow in topology.flows}
    for name, record in sorted(target.owned.items()):
        if record.topology != topology.name or name in wanted or name not in target.names:
            continue
        flow = flows.get(record.flow)
        original = f"{record.source}'s {record.source_topic}"
        if flow is None:
            why = f"no flow {record.flow} is declared any more"
        elif not flow.enabled:
            why = f"flow {record.flow} is not enabled"
        elif flow.takes(record.source_topic, topology.aliases):
            why = f"{original} is gone"
        else:
            why = f"flow {record.flow} no longer takes {original}"
        yield Notice(name, why)


def _warnings(topics: Collection[DesiredTopic], alias: str, topology: Topology, observed: Observed) -> Iterator[Notice]:
    """Yield what the user should know about one target and the flows into it."""
    target = observed[alias]
    factors = {flow.name: flow.replication_factor for flow in topology.flows}
    flows = topology.flows_into([alias])
    if not flows:
        yield Notice(f"cluster {alias}", "no enabled flow leads into it")
    for flow in flows:
        if not taken_topics(flow, topology, observed):
            yield Notice(f"flow {flow.name}", f"no topic of {flow.source} matches; it waits for one")
    for topic in topics:
        original = observed[topic.source].topics[topic.source_topic]
        if left_out := unknown_keys(original, target):
            yield Notice(topic.name, f"{alias} does not know {', '.join(left_out)}, set on the original: left out")
        found, record = target.topics.get(topic.name), target.owned.get(topic.name)
        if found is None or record is None:
            continue
        if found.partitions > topic.partitions:
            yield Notice(topic.name, f"has {found.partitions} partitions, the original {topic.partitions}: never fewer")
        if factors[topic.flow] not in (None, found.replication_factor):
            message = f"has replication {found.replication_factor}, asked for is {factors[topic.flow]}: left as it is"
            yield Notice(topic.name, message)
        if record.is_confirmed and record.source_topic_id != topic.source_topic_id:
            yield Notice(topic.name, f"{topic.source}'s {topic.source_topic} was made anew since the last apply")
