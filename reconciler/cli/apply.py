"""`anabranch apply`: show the plan, ask, carry it out, put the declaration in force, and say what became of it all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import Files, ask, load_topology, print_json, print_problems, stderr_console, stdout_console
from reconciler.cli.locking import Locks
from reconciler.cli.planning import Clusters, PlanFormat, chosen_targets, observe_and_plan, print_plan
from reconciler.cli.provisioner import ChosenProvisioner, Provisioning, PulumiDir, provisioning
from reconciler.model.errors import Problem, Refused
from reconciler.model.outcome import Outcome
from reconciler.model.steps import ClusterPlan, CreateInternalTopic, Plan
from reconciler.model.topology import Topology

if TYPE_CHECKING:
    from reconciler.report.plan_file import SavedPlan

_PLAN_AGAIN = "make the plan again with `anabranch plan --out`, and review it"


def apply(
    files: Files,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Annotated[PlanFormat, typer.Option("--format", help="How plan and outcome are written.")] = "text",
    clusters: Clusters = None,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Carry out the plan that `plan --out` wrote, unless something has moved."
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="How long to wait for another apply to end.")
    ] = 60.0,
    provisioner: ChosenProvisioner = "auto",
    pulumi_dir: PulumiDir = None,
) -> None:
    """Make the target clusters what the declaration says, and put it in force there: show the plan, ask, do it."""
    topology = load_topology(files)
    by = provisioning(provisioner, pulumi_dir, files)
    reviewed = _read(topology, saved, clusters) if saved is not None else None
    targets = reviewed.targets if reviewed is not None else chosen_targets(topology, clusters)
    if reviewed is None and not yes and not sys.stdin.isatty():
        message = "it is needed where there is no terminal to ask on; `anabranch plan` shows what would be done"
        raise typer.BadParameter(message, param_hint="--yes")
    with Locks(topology, targets, wait) as locks:
        plan = _shown(topology, targets, output, yes) if reviewed is None else _checked(topology, reviewed)
        if locks.take_rest(plan):
            # Where the lock is kept was made on the way; everything else must be as it was shown.
            now, _ = observe_and_plan(topology, targets)
            _refuse_when_moved_on(_state_apart(plan), _state_apart(now))
        outcome = _carry_out(topology, plan, locks, by)
    _print_outcome(plan, outcome, output)
    if not outcome.is_complete:
        raise typer.Exit(1)


def _shown(topology: Topology, targets: Sequence[str], output: PlanFormat, yes: bool) -> Plan:
    """Make a plan, show it and ask.

    Raises:
        Refused: AB407, the clusters have changed since the plan was shown.
    """
    plan, _ = observe_and_plan(topology, targets)
    if output != "json":
        print_plan(plan, output)
    if not plan.changes_nothing and not yes:
        _ask()
        _refuse_when_moved_on(plan, observe_and_plan(topology, targets)[0])
    return plan


def _read(topology: Topology, path: Path, clusters: Sequence[str] | None) -> SavedPlan:
    """Read a plan file; whoever hands it over has reviewed it.

    Raises:
        DeclaredInputError: AB183, it is no plan file.
        Refused: AB412, the plan was made from other files than these.
    """
    from reconciler.report.plan_file import read_plan

    if clusters:
        message = "a plan file says for which clusters it is"
        raise typer.BadParameter(message, param_hint="--clusters")
    saved = read_plan(path)
    if (saved.topology, saved.digest) != (topology.name, topology.digest):
        found = f"was made from {saved.topology}, digest {saved.digest}; these files are {topology.name}, digest "
        raise Refused(Problem("AB412", str(path), f"{found}{topology.digest}", _PLAN_AGAIN))
    return saved


def _checked(topology: Topology, saved: SavedPlan) -> Plan:
    """Return the plan of a file, made anew.

    Raises:
        Refused: AB407, it is not what would be done now.
    """
    from reconciler.plan.moved import moved
    from reconciler.report.plan_json import plan_json

    plan, _ = observe_and_plan(topology, saved.targets)
    if differences := moved(saved.plan, plan_json(plan)):
        raise Refused([Problem("AB407", str(saved.path), difference, _PLAN_AGAIN) for difference in differences])
    return plan


def _state_apart(plan: Plan) -> Plan:
    """Return a plan without the topics of our own state."""

    def rest(cluster: ClusterPlan) -> ClusterPlan:
        return replace(cluster, steps=tuple(s for s in cluster.steps if not isinstance(s, CreateInternalTopic)))

    return replace(plan, clusters=tuple(map(rest, plan.clusters)))


def _ask() -> None:
    """Ask whether to go on.

    Raises:
        typer.Exit: the answer is not yes.
    """
    if (ask("Carry this out? [y/N]") or "").lower() not in {"y", "yes"}:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)


def _refuse_when_moved_on(shown: Plan, now: Plan) -> None:
    """Refuse to carry out anything that was not shown.

    Raises:
        Refused: AB407, the clusters have changed since the plan was shown.
    """
    if shown != now:
        problem = Problem(
            "AB407", "", "the clusters changed while the plan was read", "run apply again and read the new plan"
        )
        raise Refused(problem)


def _carry_out(topology: Topology, plan: Plan, locks: Locks, by: Provisioning) -> Outcome:
    """Apply a plan with a progress bar on stderr, which a terminal alone shows."""
    from rich.progress import Progress

    if plan.changes_nothing:
        return Outcome()
    console = stderr_console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("applying", total=len(plan.steps))
        return by.make(topology, lambda _: progress.advance(bar), locks.check).apply(plan)


def _print_outcome(plan: Plan, outcome: Outcome, output: PlanFormat) -> None:
    from reconciler.report.outcome_text import outcome_lines
    from reconciler.report.plan_json import outcome_json, plan_json

    if output == "json":
        print_json({"plan": plan_json(plan), "outcome": outcome_json(outcome)})
    elif not plan.changes_nothing:
        stdout_console().print("", *outcome_lines(outcome), sep="\n")
    problems = [*(failure.problem for failure in outcome.failed), *outcome.not_in_force]
    print_problems(dict.fromkeys(problems))
