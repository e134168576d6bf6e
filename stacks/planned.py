"""Steps of a plan as a stack sees them: their resources, and whether they are those that were planned. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    RecordOwnership,
    RevokeAcl,
    Step,
)
from stacks.names import acl_name, topic_name

_OF_TOPICS = (CreateTopic, AddPartitions, AlterConfig, RecordOwnership)


def resource_of(step: Step) -> str:
    """Return the name of the resource that a step is about."""
    if isinstance(step, AclChange):
        return acl_name(step.cluster, step.binding)
    return topic_name(step.cluster, step.name)


def lasting(cluster: ClusterPlan) -> tuple[Step, ...]:
    """Return the steps that are left when our own topics are there, and that no permission to delete has to allow.

    Deletions are none of Pulumi's business, and each makes sure by itself that it is about the very topic.
    """
    return tuple(step for step in cluster.steps if not (isinstance(step, CreateInternalTopic) or _is_allowed(step)))


def _is_allowed(step: Step) -> bool:
    return isinstance(step, Removal) or (isinstance(step, RevokeAcl) and (step.is_foreign or step.with_topic))


def is_as_planned(found: Sequence[Step], planned: Sequence[Step]) -> bool:
    """Tell whether steps are those of the plan; an original that was not there then, and had no id, has one now."""

    def then(step: Step, before: Step) -> Step:
        if isinstance(step, _OF_TOPICS) and isinstance(before, _OF_TOPICS) and not before.topic.source_topic_id:
            return replace(step, topic=replace(step.topic, source_topic_id=""))
        return step

    return len(found) == len(planned) and all(then(step, old) == old for step, old in zip(found, planned, strict=True))
