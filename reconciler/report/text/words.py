"""Wording that all printers of plans share, so that text and Markdown are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.planning.changes import Change, FieldChange, StoppedTopic
from reconciler.model.planning.deployments import DeployProcess, FactChange, StopProcess, UpdateProcess
from reconciler.model.planning.desired import DesiredTopic, Reason, TopicSetting
from reconciler.model.planning.removals import RemovalReason
from reconciler.model.planning.steps import (
    AclChange,
    ChangeReason,
    ClusterPlan,
    GrantAcl,
    OwnershipReason,
    Plan,
    PlannedFlow,
    RevokeAcl,
)
from reconciler.model.recorded.declaration import DESTROYED, Declared

_THOUSAND = 1000
_TWO_MINUTES = 120

SETTING_REASONS: dict[Reason, str] = {
    "source": "as at the source",
    "source-default": "the default at the source",
    "identical-offsets": "for identical offsets",
    "declared": "declared for the flow",
    "kept": "as it was made; the flow does not follow",
}
CHANGE_REASONS: dict[ChangeReason, str] = {
    "source-change": "changed at the source since the last apply",
    "target-change": "changed at the target since the last apply",
    "missing": "not set by the last apply",
    "obsolete": "no longer asked for",
}
OWNERSHIP_REASONS: dict[OwnershipReason, str] = {
    "interrupted": "the apply that made it was interrupted",
    "flow-renamed": "its flow has another name now",
    "grown": "partitions were added since the last apply",
    "made-anew": "its original was made anew, and the copy goes on with that",
    "rebuilt": "its record was lost, and the records of copies prove it",
    "adopted": "it stood there before, and is adopted",
}
REMOVAL_REASONS: dict[RemovalReason, str] = {
    "destroyed": "made by this topology",
    "flow-gone": "its flow is not declared any more",
    "not-taken": "its flow takes the original no longer",
    "recreated": "recreated, and copied again from its original",
    "renamed": "its flow gives the copy another name now",
}
IN_DOUBT = "on record as ours, but this declaration would not have made them"


def acl_reason(step: AclChange) -> str:
    """Return why an ACL is granted or revoked."""
    if step.role == "own" and not (isinstance(step, RevokeAcl) and step.with_topic):
        kept = "; it stays, as another topology granted it too" if isinstance(step, RevokeAcl) and step.is_kept else ""
        needs = "needs it" if isinstance(step, GrantAcl) else "no longer needs it"
        return f"the replicator {needs} for flow {step.flow}{kept}"
    if isinstance(step, GrantAcl):
        return f"as the originals of flow {step.flow}"
    if step.is_foreign:
        return "no apply granted it; --allow-delete takes it away"
    if step.with_topic:
        return "as what it is about is deleted"
    kept = "; it stays, as another topology granted it too" if step.is_kept else ""
    match step.cause:
        case "wide":
            return f"it covers more than copies; each copy of flow {step.flow} has what its original allows{kept}"
        case "unfollowed":
            return f"flow {step.flow} follows no ACLs (acls: false){kept}"
        case "gone":
            return f"the originals of flow {step.flow} no longer have it{kept}"


def place(plan: Plan, cluster: ClusterPlan) -> str:
    """Return where a target stands, and when it is changed where there are several waves."""
    return f"{cluster.datacenter}{turn(plan, cluster.wave)}"


def turn(plan: Plan, wave: int) -> str:
    """Return when something is changed, in words that follow a name; empty where there is one wave."""
    if len(plan.waves) <= 1 or wave not in plan.waves:
        return ""
    return f", wave {plan.waves.index(wave) + 1} of {len(plan.waves)}"


def counted(number: int, noun: str) -> str:
    """Return `1 task`, `2,000 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def padding(flow: PlannedFlow) -> tuple[str, str]:
    """Return how much is padded for a flow, and what that means."""
    where = f"in {counted(flow.padding.partitions, 'partition')} whose logs begin above 0"
    cost = f"about {_lasting(flow.padding.seconds)} and {_sized(flow.padding.bytes)}, deleted again"
    return f"{flow.padding.offsets:,} offsets", f"{where}: {cost}"


def in_force(declared: Declared) -> str:
    """Return which declaration is in force at a target, and which one apply would put in force."""
    if declared.is_in_force:
        return str(declared.in_force)
    if declared.digest == DESTROYED:
        now = declared.in_force or "nothing is in force"
        return f"{now}; destroy leaves nothing in force, so that no `replicate` makes anything anew"
    if declared.in_force is None:
        return f"first apply, digest {declared.digest}"
    now = str(declared.in_force)
    if declared.is_unknown:
        now = f"{now}; what it declares is not recorded there, so what changes against it is not known"
    return f"{now}; apply puts this declaration in force, digest {declared.digest}"


def field_change(change: FieldChange) -> str:
    """Return what becomes of a field: `1 → 4`, or the item of a list that comes or goes: `- orders`."""
    if change.old is None:
        return f"+ {change.new}"
    return f"- {change.old}" if change.new is None else f"{change.old} → {change.new}"


def fact_change(change: FactChange) -> str:
    """Return what becomes of a fact of a process: `0.1.0 → 0.2.0`."""
    return f"{change.old or '(none)'} → {change.new or '(none)'}"


def fate(change: Change) -> str:
    """Return what a plan does with a flow, in words after its name; empty if its fields show it."""
    return {"begins": "begins", "ends": f"ends   {change.why}", "changes": ""}[change.fate]


def stopped(stop: StoppedTopic) -> tuple[str, str]:
    """Return in words that follow a flow's name that it copies a topic no longer, and what becomes of the copy."""
    stay = "1 record stays" if stop.records == 1 else f"{stop.records:,} records stay"
    return f"stops copying {stop.topic}", f"{stay} in {stop.remote}, which follows no longer"


def _lasting(seconds: float) -> str:
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < _TWO_MINUTES else f"{round(whole / 60)} min"


def _sized(size: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < _THOUSAND:
            return f"{size} {unit}"
        size = round(size / _THOUSAND)
    return f"{size} GB"


def _deployed(plan: Plan) -> Iterator[str]:
    """Yield how many processes are deployed, updated and stopped."""
    kinds = ((DeployProcess, "deploy"), (UpdateProcess, "update"), (StopProcess, "stop"))
    counts = [(sum(isinstance(step, kind) for step in plan.deployment_steps), does) for kind, does in kinds]
    for number, (count, does) in enumerate([one for one in counts if one[0]]):
        noun = "" if number else " process" if count == 1 else " processes"
        yield f"{count:,}{noun} to {does}"


def summary(plan: Plan) -> str:
    """Return the one line that sums a plan up."""
    own = f", and {counted(plan.own_to_add, 'topic')} of our own;" if plan.own_to_add else ","
    changes = f"{plan.to_add:,} to add{own} {plan.to_change:,} to change, {plan.to_delete:,} to delete."
    if plan.deployment_steps:
        changes += f" {', '.join(_deployed(plan))}."
    if plan.to_end:
        changes += f" {counted(plan.to_end, 'flow')} {'ends' if plan.to_end == 1 else 'end'}."
    left_out = sum(len(cluster.not_started) for cluster in plan.clusters)
    said = f"Nothing to do: {changes}" if plan.changes_nothing else changes
    return f"{said} {counted(left_out, 'topic')} not started." if left_out else said


def shared_settings(topics: Sequence[DesiredTopic]) -> tuple[TopicSetting, ...]:
    """Return what several new topics all get alike and none of them has from its original: shown once for all."""
    if len(topics) <= 1:
        return ()
    alike = set(topics[0].settings).intersection(*(topic.settings for topic in topics[1:]))
    return tuple(setting for setting in topics[0].settings if setting in alike and setting.reason != "source")
