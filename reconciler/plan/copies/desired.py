"""Which remote topics a topology declares, given what its sources hold.

Pure. Used by the plan and by the Pulumi program, so that both mean the same topics.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from reconciler.model.declared.flow import TARGETS_DEFAULT
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.plan.copies.failed_over import of_running, resolved
from reconciler.plan.copies.offsets import Choice, Observed, choices
from reconciler.plan.copies.recreated import kept_as_it_is
from reconciler.plan.copies.settings import settings_of


def desired_topics(topology: Topology, observed: Observed, targets: Collection[str]) -> tuple[DesiredTopic, ...]:
    """Return the remote topics of the flows into `targets` that are not failed over, by cluster, name and flow.

    A copy with translated offsets may have several originals, of which the one on record, or the first, stands for all.
    Two flows may declare the copy of one original with identical offsets here; the guardrails of the plan refuse that.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    return desired_of(of_running(choices(resolved(topology, observed), observed, targets)), observed)


def desired_of(chosen: Collection[Choice], observed: Observed) -> tuple[DesiredTopic, ...]:
    """Return the remote topics of the choices that can be copied, in their order."""
    found = []
    possible = [choice for choice in chosen if choice.blocked is None]
    for _, group in groupby(possible, key=lambda choice: (choice.flow.target, choice.remote, choice.mode)):
        choices = tuple(group)
        target = observed[choices[0].flow.target]
        if choices[0].mode == "identical":
            found += [_remote_topic(choice, target) for choice in choices]
        else:
            found.append(_shared_topic(choices, target))
    return tuple(found)


def _shared_topic(choices: Sequence[Choice], target: ObservedCluster) -> DesiredTopic:
    """Return the remote topic of several originals: as many partitions as the largest of them."""
    record = target.owned.get(choices[0].remote)
    held = None if record is None else (record.source, record.source_topic)
    first = next((c for c in choices if (c.flow.source, c.original.name) == held), choices[0])
    return replace(_remote_topic(first, target), partitions=max(_partitions(choice, target) for choice in choices))


def _partitions(choice: Choice, target: ObservedCluster) -> int:
    if (kept := kept_as_it_is(choice.flow, choice.original, target)) is not None:
        return kept.partitions
    return max(choice.original.partitions, choice.flow.partitions or 0) if choice.kept_at is None else choice.kept_at


def _remote_topic(choice: Choice, target: ObservedCluster) -> DesiredTopic:
    flow, original = choice.flow, choice.original
    asked = target.default_replicas if flow.replication_factor == TARGETS_DEFAULT else flow.replication_factor
    replication = asked or min(original.replication_factor, target.brokers)
    existing, record = target.topics.get(choice.remote), target.owned.get(choice.remote)
    kept = kept_as_it_is(flow, original, target)
    return DesiredTopic(
        cluster=flow.target,
        name=choice.remote,
        flow=flow.name,
        source=flow.source,
        source_topic=original.name,
        source_topic_id=original.topic_id if kept is None else kept.source_topic_id,
        partitions=_partitions(choice, target),
        replication_factor=replication,
        offsets=choice.mode,
        settings=settings_of(
            original,
            target,
            existing.replication_factor if existing else replication,
            flow.configs if kept is None else replace(flow.configs, sync=False),
            record.configs if existing and record else None,
        ),
        padding=choice.padding,
        is_made=flow.create,
    )
