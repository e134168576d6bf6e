"""What `apply`, `destroy` and `adopt` share once there is a plan: asking, carrying it out, saying what became of it."""

from __future__ import annotations

from dataclasses import replace

import typer

from reconciler.cli.common import ask, print_json, print_problems, stderr_console, stdout_console
from reconciler.cli.locking import Locks
from reconciler.cli.planning import PlanFormat
from reconciler.cli.provisioner import Provisioning
from reconciler.cli.rollout import WaveGate, in_waves
from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.steps import ClusterPlan, CreateInternalTopic, Plan


def state_apart(plan: Plan) -> Plan:
    """Return a plan without the topics of our own state."""

    def rest(cluster: ClusterPlan) -> ClusterPlan:
        return replace(cluster, steps=tuple(s for s in cluster.steps if not isinstance(s, CreateInternalTopic)))

    return replace(plan, clusters=tuple(map(rest, plan.clusters)))


def go_on() -> None:
    """Ask whether to go on.

    Raises:
        typer.Exit: the answer is not yes.
    """
    if (ask("Carry this out? [y/N]") or "").lower() not in {"y", "yes"}:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)


def refuse_when_moved_on(shown: Plan, now: Plan) -> None:
    """Refuse to carry out anything that was not shown.

    Raises:
        Refused: AB407, the clusters have changed since the plan was shown.
    """
    if shown != now:
        message = "the clusters changed while the plan was read"
        raise Refused(Problem("AB407", "", message, "run it again and read the new plan"))


def carry_out(
    topology: Topology,
    plan: Plan,
    locks: Locks,
    doing: str,
    gate: WaveGate | None = None,
    by: Provisioning | None = None,
) -> Outcome:
    """Carry out a plan with a progress bar on stderr, which a terminal alone shows.

    Args:
        topology: what is declared.
        plan: it is agreed on.
        locks: of all targets that it changes.
        doing: what the bar is called.
        gate: what must hold between two waves, beside that the first is done.
        by: who does it; by default without Pulumi.
    """
    from rich.progress import Progress

    if plan.changes_nothing:
        return Outcome()
    locks.interrupts.change()
    console = stderr_console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(doing, total=len(plan.steps))
        provisioner = (by or Provisioning(())).make(topology, lambda _: progress.advance(bar), locks.check)
        provisioner.prepare(plan)
        outcome = in_waves(topology, plan, gate, provisioner.apply, locks.interrupts)
    if not outcome.is_complete and outcome.stopped is None:
        outcome.stopped = locks.interrupts.problem
    return outcome


def print_outcome(plan: Plan, outcome: Outcome, output: PlanFormat) -> None:
    """Print what became of a plan, which was printed before where it is not JSON."""
    from reconciler.report.plan.outcome import outcome_lines
    from reconciler.report.plan.to_json import outcome_json, plan_json

    if output == "json":
        print_json({"plan": plan_json(plan), "outcome": outcome_json(outcome)})
    elif not plan.changes_nothing:
        stdout_console().print("", *outcome_lines(outcome), sep="\n")
    stopped = [outcome.stopped] if outcome.stopped else []
    problems = [*(failure.problem for failure in outcome.failed), *outcome.not_in_force, *stopped]
    print_problems(dict.fromkeys(problems))
