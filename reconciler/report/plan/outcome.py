"""What became of a plan, as text: done, failed and not tried."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.planning.deployments import DeploymentStep, DeployProcess, StopProcess, UpdateProcess
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    PlanStep,
    RevokeAcl,
)
from reconciler.report.text.line import Line


def outcome_lines(outcome: Outcome) -> Iterator[Line]:
    """Yield a line for each step, a sum, and where the declaration was put in force."""
    yield from map(Line, _lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    for step in outcome.done:
        yield f"  done      {step.cluster}  {task(step)}"
    for failure in outcome.failed:
        yield f"  failed    {failure.step.cluster}  {task(failure.step)}"
    for skipped in outcome.skipped:
        yield f"  not done  {skipped.step.cluster}  {task(skipped.step)}: {skipped.why}"
    if outcome.done or outcome.failed or outcome.skipped:
        yield f"{len(outcome.done)} done, {len(outcome.failed)} failed, {len(outcome.skipped)} not done."
    else:
        yield "No topic and no ACL had to be changed: flows alone."
    if outcome.in_force:
        yield f"This declaration is now in force at {', '.join(outcome.in_force)}."
        yield from _lacking(outcome)
    elif outcome.closed:
        yield f"Nothing is in force any more at {', '.join(outcome.closed)}: `anabranch apply` makes the copies anew."
    elif outcome.is_part:
        yield "What was in force stays in force: only a part was done."
    elif not outcome.is_complete:
        yield "What was in force stays in force."


def _lacking(outcome: Outcome) -> Iterator[str]:
    """Yield which topics are missing, or not as they should be, although the declaration is in force."""
    missing = {step.name: None for step in outcome.lacking if isinstance(step, CreateTopic)}
    others = {step.name: None for step in outcome.lacking if step.name not in missing}
    for names, what in ((missing, "Missing"), (others, "Not as they should be")):
        if names:
            yield f"{what}: {', '.join(names)}. Flows copy the others; `replicate` and the next `apply` try again."


def _of_process(step: DeploymentStep) -> str:
    match step:
        case DeployProcess():
            return f"deploy {step.name}"
        case UpdateProcess():
            return f"{'replace' if step.restarts else 'write files of'} {step.name}"
        case StopProcess():
            return f"stop {step.name}"


def task(step: PlanStep) -> str:
    """Return what a step does, in a few words."""
    match step:
        case CreateInternalTopic():
            return f"make {step.name} for our own state"
        case CreateTopic():
            return f"make {step.name}"
        case GrantAcl():
            return f"grant {step.name}"
        case RevokeAcl():
            return f"revoke {step.name}"
        case AddPartitions():
            return f"grow {step.name} to {step.topic.partitions} partitions"
        case AlterConfig():
            return f"set {', '.join(change.key for change in step.changes)} of {step.name}"
        case DeleteTopic():
            return f"delete {step.name}"
        case ForgetTopic():
            return f"forget {step.name}, which is gone"
        case DeployProcess() | UpdateProcess() | StopProcess():
            return _of_process(step)
        case _:
            return f"record that {step.name} is ours"
