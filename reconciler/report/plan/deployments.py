"""What a plan changes of the processes of data centres: as text, as Markdown, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from reconciler.model.base.text import shown
from reconciler.model.planning.deployments import (
    FILES,
    DeploymentPlan,
    DeploymentStep,
    DeployProcess,
    FactChange,
    StopProcess,
    UpdateProcess,
)
from reconciler.report.text.columns import WIDEST
from reconciler.report.text.line import Line, Wrapping
from reconciler.report.text.markdown import code, plain
from reconciler.report.text.words import fact_change

_HANG = 11
_DETAIL = " " * 13
# What stands in the heading, or says the same for every process.
_NOT_SHOWN = ("kind", FILES)


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


def deployment_lines(plan: DeploymentPlan, turn: str) -> Iterator[Line]:
    """Yield the lines of one data centre.

    Args:
        plan: of it.
        turn: when it is changed, in words that follow a name.
    """
    yield Wrapping.assemble((plan.datacenter, "bold"), f" (processes, {plan.kind}{turn})")
    for step in plan.steps:
        match step:
            case DeployProcess():
                yield _head("+", "green", "deploy", step.name).aside(f"   {step.why}" if step.why else "")
                yield from _facts({name: one for name, one in step.process.facts.items() if name not in _NOT_SHOWN})
            case UpdateProcess():
                how = "replaced" if step.restarts else "goes on, and reads its files anew"
                yield _head("~", "yellow", "update", step.name).aside(f"   {how}")
                yield from _facts({one.fact: fact_change(one) for one in step.changes})
            case StopProcess():
                yield _head("-", "red", "stop", step.name).aside(f"   {step.why}")
    for name in plan.kept:
        yield _head("=", "dim", "runs", name)
    for notice in plan.notices:
        yield _head("!", "yellow", "note", notice)


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


def _facts(facts: dict[str, str]) -> Iterator[Line]:
    told = {name: one for name, one in facts.items() if one}
    width = max(map(len, told), default=0)
    for name, value in told.items():
        yield Wrapping(f"{_DETAIL}{name:<{width}}  {shown(value, WIDEST)}", hang=len(_DETAIL) + 2)


def _head(mark: str, style: str, kind: str, rest: str) -> Wrapping:
    line = Wrapping("  ", hang=_HANG)
    line.append(mark, style).append(f" {kind:<6} {rest}")
    return line
