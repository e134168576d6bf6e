"""Carries a plan out wave by wave: data centre after data centre, the next one only when the one before is well."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.steps import Plan
from reconciler.operate.interrupts import Interrupts
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.watching import Lookout

if TYPE_CHECKING:
    from reconciler.plan.guardrails.waves import Place

_NOT_WELL = "AB431"
_PAUSE_SECONDS = 0.5
_TOLD = 3


@dataclass(frozen=True)
class WaveGate:
    """What must hold between two waves.

    Attributes:
        max_lag: seconds that a partition of a running flow may be behind.
        patience: seconds to wait for that.
    """

    max_lag: float
    patience: float


def in_waves(
    topology: Topology,
    plan: Plan,
    gate: WaveGate | None,
    apply: Callable[[Plan], Outcome],
    interrupts: Interrupts | None = None,
    reporter: Reporter = SILENT,
) -> Outcome:
    """Carry a plan out, and return what became of every step of every wave.

    Args:
        topology: what is declared.
        plan: for all targets.
        gate: what must hold between two waves, beside that the first is done; None where nothing runs by the plan.
        apply: carries one wave out.
        interrupts: whether a signal has come.
        reporter: receives a note as each wave begins.
    """
    from reconciler.plan.guardrails.waves import parked, waves

    parts = waves(plan)
    if len(parts) == 1:
        return apply(plan)
    interrupts = interrupts or Interrupts()
    if gate is None:
        return _one_after_the_other(parts, apply, lambda aliases: interrupts.problem, reporter)
    with closing(
        Lookout(topology, [cluster.alias for cluster in plan.clusters], with_in_force=True, with_groups=True)
    ) as lookout:
        look = lookout.look()
        before = parked(look.flows, look.statuses, look.now)

        def stands_against(aliases: Sequence[str]) -> Problem | None:
            ask = partial(_objections, topology, aliases, lookout, before, gate)
            said = _await(ask, gate.patience, lambda: interrupts.problem is not None)
            return interrupts.problem or (_stopped(said, gate) if said else None)

        return _one_after_the_other(parts, apply, stands_against, reporter)


def _one_after_the_other(
    parts: Sequence[Plan],
    apply: Callable[[Plan], Outcome],
    stands_against: Callable[[Sequence[str]], Problem | None],
    reporter: Reporter,
) -> Outcome:
    outcome = Outcome()
    for number, part in enumerate(parts, 1):
        aliases = [cluster.alias for cluster in part.clusters]
        reporter.note(f"wave {number} of {len(parts)}: {', '.join(aliases)}", "info")
        _add(part, apply, outcome)
        if number == len(parts):
            break
        why = None if outcome.is_complete else f"wave {number} was not completed"
        if why is None and not part.changes_nothing and (problem := _what_stands_against(aliases, stands_against)):
            outcome.stopped = replace(problem, where=f"wave {number} ({', '.join(aliases)})")
            why = "the wave before is not well" if problem.code == _NOT_WELL else problem.message
        if why is not None:
            rest = [step for later in parts[number:] for step in (*later.steps, *later.deployment_steps)]
            outcome.skipped += [Skipped(step, why) for step in rest]
            break
    return outcome


def _what_stands_against(
    aliases: Sequence[str], stands_against: Callable[[Sequence[str]], Problem | None]
) -> Problem | None:
    """Return why the next wave must not be begun; that a cluster could not be read is a reason."""
    try:
        return stands_against(aliases)
    except AnabranchError as error:
        return error.problems[0]


def _add(part: Plan, apply: Callable[[Plan], Outcome], outcome: Outcome) -> None:
    """Carry one wave out, and add what became of it to what became of those before.

    Raises:
        AnabranchError: it was not begun, and nothing was done before it.
    """
    try:
        outcome.add(apply(part))
    except AnabranchError as error:
        if not (outcome.done or outcome.failed or outcome.skipped or outcome.in_force or outcome.not_in_force):
            raise
        # Raised, it would hide what was changed before.
        outcome.failed += [Failure(step, error.problems[0]) for step in part.steps]
        outcome.skipped += [Skipped(step, "its clusters could not be changed") for step in part.deployment_steps]
        outcome.not_in_force += error.problems[1:] if part.steps else error.problems


def _objections(
    topology: Topology, aliases: Sequence[str], lookout: Lookout, before: Collection[Place], gate: WaveGate
) -> list[str]:
    """Return what stands against going on after some targets were changed."""
    from reconciler.model.recorded.failed_flows import failed_flows
    from reconciler.plan.guardrails.waves import about_groups, objections

    look = lookout.look()
    flows = [
        flow for flow in topology.flows_into(aliases) if not failed_flows([flow], look.failed_over.get(flow.target, {}))
    ]
    unseen = [f"{alias} does not answer" for alias in look.failures if alias in aliases]
    found: list[str] = []
    for flow in flows:
        said = [*objections(topology, flow, look.statuses, before, gate.max_lag, look.now)]
        about = [*about_groups(flow, look.statuses, look.last_looks.get(flow.name), look.now)]
        if about and (error := look.unheard.get(flow.target)) is not None:
            about = [f"when its consumer groups were last looked at cannot be read: {error.problems[0]}"]
        found += [f"flow {flow.name}: {one}" for one in (*said, *about)]
    return unseen + found


def _await(ask: Callable[[], list[str]], patience: float, is_over: Callable[[], bool]) -> list[str]:
    """Call until there are no objections, or patience or the command ends; return the last objections."""
    deadline = time.monotonic() + patience
    while (said := ask()) and time.monotonic() < deadline and not is_over():
        time.sleep(_PAUSE_SECONDS)
    return said


def _stopped(said: Sequence[str], gate: WaveGate) -> Problem:
    more = f"; and {len(said) - _TOLD} more" if len(said) > _TOLD else ""
    return Problem(
        _NOT_WELL,
        "",
        f"is not well after {gate.patience:g} s, and later waves were not begun: {'; '.join(said[:_TOLD])}{more}",
        "mend what it names, or put the former declaration in force again; then apply: it goes on with the next wave",
    )
