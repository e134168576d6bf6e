"""A plan, and what became of it, as plain values for JSON.

The commands print them. The shape is versioned by `format`; within a version fields are only added.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from reconciler.model.planning.deployments import DeploymentStep
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic, Removal
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Notice,
    Plan,
    PlannedFlow,
    PlanStep,
    RevokeAcl,
    Step,
    TopicChange,
)
from reconciler.model.recorded.declaration import Declared
from reconciler.report.plan.deployments import deployment_json
from reconciler.report.text.words import acl_reason

FORMAT = 1


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the plan: `format`, `topology`, `digest`, `summary`, `clusters`, `notices` and `deployments`.

    `summary` has `add`, `own` (of these, topics of our own state), `change`, `delete`, `end` and `deploy` (processes
    that are deployed, replaced or stopped); `notices` are about clusters that the plan is not for. Each of
    `deployments` has `datacenter`, `kind`, `wave`, `steps` (`action`: `deploy-process`, `update-process` or
    `stop-process`; `process`, its `facts`, and `changes` or `why`), `kept` (processes that stay) and `notices`.

    Each cluster has `alias`, `datacenter`, `wave`, `steps`, `flows`, `not_started`, `left_alone`, `warnings`, `changes`
    and `declared` (null, or the `digest` of this declaration for the cluster, what is `in_force` there: null, or
    `digest`, `since`, `by` and `owner`, and whether what that declares is `recorded`). `changes` are those against it:
    each has its `subject`, `name` and `fate`, the `fields` that change (`field`, `old`, `new`; null for an item of a
    list that comes or goes), the topics that a flow `stops` copying, and `why` it ends.

    Each step has an `action` and what belongs to it:
    `create-internal-topic`, `create-topic`, `add-partitions`, `alter-config`, `record-ownership`, `delete-topic` and
    `forget-topic` have a `topic`, and its `topic_id` where another one is left alone; `grant-acl` and `revoke-acl`
    have the `acl` in words, and its parts.
    """
    return {
        "format": FORMAT,
        "topology": plan.topology,
        "digest": plan.digest,
        "summary": {
            "add": plan.to_add + plan.own_to_add,
            "own": plan.own_to_add,
            "change": plan.to_change,
            "delete": plan.to_delete,
            "end": plan.to_end,
            "deploy": len(plan.deployment_steps),
        },
        "clusters": [_cluster(cluster) for cluster in plan.clusters],
        "notices": [_notice(notice) for notice in plan.notices],
        "deployments": [deployment_json(deployment, action) for deployment in plan.deployments],
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return what became of the steps: `done`, `failed` (with `problem`) and `skipped` (with `why`).

    `in_force` are the clusters where the declaration was put in force, `not_in_force` the problems where that failed;
    `closed` are those where nothing is in force any more; `stopped` is null, or the problem for which the rest was
    not begun: a wave that is not well, or an interruption.
    """
    return {
        "done": [_where(step) for step in outcome.done],
        "failed": [_where(failure.step) | {"problem": asdict(failure.problem)} for failure in outcome.failed],
        "skipped": [_where(skipped.step) | {"why": skipped.why} for skipped in outcome.skipped],
        "in_force": list(outcome.in_force),
        "not_in_force": [asdict(problem) for problem in outcome.not_in_force],
        "closed": list(outcome.closed),
        "stopped": asdict(outcome.stopped) if outcome.stopped else None,
    }


def _cluster(cluster: ClusterPlan) -> dict[str, Any]:
    return {
        "alias": cluster.alias,
        "datacenter": cluster.datacenter,
        "wave": abs(cluster.wave),
        "steps": [_step(step) for step in cluster.steps],
        "flows": [_flow(flow) for flow in cluster.flows],
        "not_started": [asdict(topic) for topic in cluster.not_started],
        "left_alone": [_notice(notice) for notice in cluster.left_alone],
        "warnings": [_notice(notice) for notice in cluster.warnings],
        "changes": [asdict(change) for change in cluster.changes],
        "declared": _declared(cluster.declared) if cluster.declared else None,
    }


def _declared(declared: Declared) -> dict[str, Any]:
    return {
        "digest": declared.digest,
        "in_force": declared.in_force.to_json() if declared.in_force else None,
        "recorded": declared.former is not None,
    }


def _notice(notice: Notice) -> dict[str, str]:
    return {"subject": notice.subject, "message": notice.message}


def _flow(flow: PlannedFlow) -> dict[str, Any]:
    padding = asdict(flow.padding) | {"seconds": flow.padding.seconds, "bytes": flow.padding.bytes}
    return asdict(flow) | {"padding": padding}


def _where(step: PlanStep) -> dict[str, Any]:
    if isinstance(step, DeploymentStep):
        return {"action": action(step), "datacenter": step.process.datacenter, "process": step.name}
    return {"action": action(step), "cluster": step.cluster, _noun(step): step.name}


def _noun(step: Step) -> str:
    return "acl" if isinstance(step, AclChange) else "topic"


def action(step: PlanStep) -> str:
    """Return the name of a step's kind: `create-topic` for a `CreateTopic`."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in type(step).__name__)
    return words.removeprefix("-")


def _step(step: Step) -> dict[str, Any]:
    values: dict[str, Any] = {"action": action(step), _noun(step): step.name}
    if isinstance(step, CreateInternalTopic):
        return values
    if isinstance(step, AclChange):
        foreign = isinstance(step, RevokeAcl) and step.is_foreign
        told = {"binding": asdict(step.binding), "flow": step.flow, "foreign": foreign, "reason": acl_reason(step)}
        return values | told
    if isinstance(step, Removal):
        return values | _removal(step)
    values |= _origin(step.topic)
    if isinstance(step, TopicChange):
        values |= {"topic_id": step.topic_id}
    match step:
        case CreateTopic(topic):
            values |= {
                "partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "offsets": topic.offsets,
                "settings": [
                    {"key": setting.key, "value": setting.value, "reason": setting.reason} for setting in topic.settings
                ],
            }
        case AddPartitions():
            values |= {"found": step.found, "partitions": step.topic.partitions}
        case AlterConfig():
            values |= {"changes": [asdict(change) for change in step.changes]}
        case _:
            values |= {"reason": step.reason}
    return values


def _removal(step: Removal) -> dict[str, Any]:
    values = {"flow": step.flow, "source": {"cluster": step.source, "topic": step.source_topic}}
    match step:
        case DeleteTopic():
            doubt = {"doubt": step.doubt} if step.doubt else {}
            return values | {"topic_id": step.topic_id, "reason": step.reason} | doubt
        case ForgetTopic():
            return values


def _origin(topic: DesiredTopic) -> dict[str, Any]:
    return {"flow": topic.flow, "source": {"cluster": topic.source, "topic": topic.source_topic}}
