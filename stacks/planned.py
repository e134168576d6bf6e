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


def moved_on(found: Sequence[Step], planned: Sequence[Step]) -> list[str]:
    """Return the names of the resources whose steps are not those of the plan; none where all are.

    An original that was not there then, and had no id, has one now: its step is the same.
    """

    def then(step: Step, before: Step) -> Step:
        if isinstance(step, _OF_TOPICS) and isinstance(before, _OF_TOPICS) and not before.topic.source_topic_id:
            return replace(step, topic=replace(step.topic, source_topic_id=""))
        return step

    before, now = _by_resource(planned), _by_resource(found)
    return sorted(
        name
        for name in before.keys() | now.keys()
        if len(olds := before.get(name, [])) != len(news := now.get(name, []))
        or any(then(step, old) != old for step, old in zip(news, olds, strict=True))
    )


def _by_resource(steps: Sequence[Step]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(resource_of(step), []).append(step)
    return found
