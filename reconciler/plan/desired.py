"""Which remote topics a topology asks for, given what its sources hold.

Pure. Used by the plan and by the Pulumi program, so that both mean the same topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.model.desired import DesiredTopic
from reconciler.model.flow import Flow
from reconciler.model.observed import ObservedCluster, ObservedTopic
from reconciler.model.topology import Topology
from reconciler.plan.settings import settings_of

Observed = Mapping[str, ObservedCluster]


def desired_topics(topology: Topology, observed: Observed, targets: Collection[str]) -> tuple[DesiredTopic, ...]:
    """Return the remote topics of the flows into `targets`, by cluster, name and flow.

    Two flows may ask for one name here; the guardrails of the plan refuse that.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    found = [
        _remote_topic(flow, original, observed[flow.target])
        for flow in topology.flows_into(targets)
        for original in taken_topics(flow, topology, observed)
    ]
    return tuple(sorted(found, key=lambda topic: (topic.cluster, topic.name, topic.flow)))


def taken_topics(flow: Flow, topology: Topology, observed: Observed) -> tuple[ObservedTopic, ...]:
    """Return the topics at the source that a flow takes, by name."""
    topics = observed[flow.source].topics
    return tuple(topics[name] for name in sorted(topics) if flow.takes(name, topology.aliases))


def _remote_topic(flow: Flow, original: ObservedTopic, target: ObservedCluster) -> DesiredTopic:
    name = flow.remote_topic(original.name)
    replication = flow.replication_factor or min(original.replication_factor, target.brokers)
    existing = target.topics.get(name)
    return DesiredTopic(
        cluster=flow.target,
        name=name,
        flow=flow.name,
        source=flow.source,
        source_topic=original.name,
        source_topic_id=original.topic_id,
        partitions=original.partitions,
        replication_factor=replication,
        offsets="identical",
        settings=settings_of(original, target, existing.replication_factor if existing else replication),
    )
