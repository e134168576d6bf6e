"""Which remote topics a topology asks for, given what its sources hold.

Pure. Used by the plan and by the Pulumi program, so that both mean the same topics.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.desired import DesiredTopic
from reconciler.model.observed import ObservedCluster
from reconciler.model.topology import Topology
from reconciler.plan.offsets import Choice, Observed, choices
from reconciler.plan.settings import settings_of


def desired_topics(topology: Topology, observed: Observed, targets: Collection[str]) -> tuple[DesiredTopic, ...]:
    """Return the remote topics of the flows into `targets`, by cluster, name and flow.

    Those whose offsets would be translated are left out: nothing could fill them yet. Two flows may ask for the copy of
    one original here; the guardrails of the plan refuse that.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    return desired_of(choices(topology, observed, targets), observed)


def desired_of(chosen: Collection[Choice], observed: Observed) -> tuple[DesiredTopic, ...]:
    """Return the remote topics of the choices whose offsets are identical, in their order."""
    return tuple(_remote_topic(choice, observed[choice.flow.target]) for choice in chosen if choice.against is None)


def _remote_topic(choice: Choice, target: ObservedCluster) -> DesiredTopic:
    flow, original = choice.flow, choice.original
    replication = flow.replication_factor or min(original.replication_factor, target.brokers)
    existing = target.topics.get(choice.remote)
    return DesiredTopic(
        cluster=flow.target,
        name=choice.remote,
        flow=flow.name,
        source=flow.source,
        source_topic=original.name,
        source_topic_id=original.topic_id,
        partitions=original.partitions,
        replication_factor=replication,
        offsets=choice.mode,
        settings=settings_of(original, target, existing.replication_factor if existing else replication),
        padding=choice.padding,
    )
