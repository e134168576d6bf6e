"""`anabranch apply`: show the plan, ask, carry it out, put the declaration in force, and print what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, check_can_ask, confirm, go_on, load_topology
from reconciler.cli.formats import PlanFormat
from reconciler.cli.planning import print_outcome, show_plan, tell_next
from reconciler.cli.provisioner import ChosenProvisioner, PulumiDir, provisioning
from reconciler.cli.shared_options import (
    AllowDelete,
    Clusters,
    LockWait,
    PlanOutput,
    TakeOver,
    Topics,
    allowances,
)
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.operate.applying import Applying, ApplyOptions, Approval


def apply(
    files: Files,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: PlanOutput = "text",
    clusters: Clusters = None,
    target: Topics = None,
    allow_delete: AllowDelete = None,
    take_over: TakeOver = False,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Carry out the plan that `plan --out` wrote, unless something has moved."
        ),
    ] = None,
    wait: LockWait = 60.0,
    max_lag: Annotated[
        float,
        typer.Option("--max-lag", metavar="SECONDS", min=0.0, help="How far behind flows may be before the next wave."),
    ] = 60.0,
    patience: Annotated[
        float, typer.Option("--patience", metavar="SECONDS", min=0.0, help="How long to wait for that.")
    ] = 600.0,
    provisioner: ChosenProvisioner = "auto",
    pulumi_dir: PulumiDir = None,
) -> None:
    """Make the target clusters as declared, and put the declaration in force there: show the plan, ask, do it."""
    topology = load_topology(files)
    by = provisioning(provisioner, pulumi_dir, files)
    allowed = allowances(allow_delete) or {}
    options = ApplyOptions(clusters or (), target or (), allowed, take_over, wait, max_lag, patience, saved)
    applying = Applying(topology, options, TERMINAL)
    by.check_part(applying.scope.topics)
    applied = applying.run(Asking(topology, output, yes), by.make)
    outcome = applied.outcome
    print_outcome(applied.plan, outcome, output)
    if output == "text" and outcome.is_complete and topology.flows_into(outcome.in_force):
        tell_next("replicate", files, note=", unless it runs: then it goes on with this by itself")
    if not outcome.is_complete:
        raise typer.Exit(applied.exit_code)


@dataclass(frozen=True)
class Asking(Approval):
    """Prints a plan, and reads an answer from the terminal.

    Attributes:
        topology: what is declared.
        output: how the plan is shown.
        yes: whether no answer is read.
    """

    topology: Topology
    output: PlanFormat
    yes: bool

    def show(self, plan: Plan) -> None:
        """Print the plan."""
        show_plan(plan, self.output, asks=not self.yes)

    def agree(self, plan: Plan) -> bool:
        """Ask, unless --yes is given.

        Raises:
            typer.Exit: the answer is not yes.
            NoTerminal: AB144, there is no terminal.
        """
        if self.yes:
            return False
        check_can_ask(self.yes)
        if deleted := plan.deletions("topic"):
            confirm(self.topology, deleted)
        else:
            go_on()
        return True
