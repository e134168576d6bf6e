"""What a plan changes of the processes of data centres: as Markdown, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from reconciler.model.planning.deployments import (
    DeploymentPlan,
    DeploymentStep,
    DeployProcess,
    FactChange,
    StopProcess,
    UpdateProcess,
)
from reconciler.report.text.markdown import code, plain
from reconciler.report.text.words import fact_change


def deployment_json(plan: DeploymentPlan, action: Callable[[DeploymentStep], str]) -> dict[str, Any]:
    """Return the deployment of one data centre as JSON types."""
    return {
        "datacenter": plan.datacenter,
        "kind": plan.kind,
        "wave": plan.wave,
        "steps": [_step_json(step) | {"action": action(step)} for step in plan.steps],
        "kept": list(plan.kept),
        "notices": list(plan.notices),
    }


def _step_json(step: DeploymentStep) -> dict[str, Any]:
    told: dict[str, Any] = {"process": step.name, "facts": step.process.facts}
    match step:
        case UpdateProcess():
            return told | {"changes": [asdict(one) for one in step.changes], "restarts": step.restarts}
        case _:
            return told | {"why": step.why}


def deployment_entries(plan: DeploymentPlan) -> Iterator[str]:
    """Yield a line of Markdown for each step of one data centre, what stops first."""
    for step in sorted(plan.steps, key=lambda one: not isinstance(one, StopProcess)):
        at = f"{plain(plan.datacenter)} ({plain(plan.kind)}): {code(step.name)}"
        match step:
            case DeployProcess():
                why = f"; {plain(step.why)}" if step.why else ""
                yield f"`+` {at} is deployed: {code(step.process.facts['command'])}{why}"
            case UpdateProcess():
                how = "is replaced" if step.restarts else "reads its files anew"
                yield f"`~` {at} {how}: {'; '.join(map(_change, step.changes))}"
            case StopProcess():
                yield f"`-` {at} **is stopped**: {plain(step.why)}"
    yield from (f"⚠ {plain(plan.datacenter)}: {plain(notice)}" for notice in plan.notices)


def _change(change: FactChange) -> str:
    return f"{code(change.fact)} {code(fact_change(change))}"
