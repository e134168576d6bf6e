"""`anabranch recreate`: delete single copies, and have them copied again from their originals."""

from __future__ import annotations

import typer

from reconciler.cli.apply import Asking
from reconciler.cli.common import TERMINAL, Files, load_topology
from reconciler.cli.planning import print_outcome, tell_next
from reconciler.cli.shared_options import (
    AllowDelete,
    Clusters,
    DeletesYes,
    LockWait,
    PlanOutput,
    TakeOver,
    Topics,
    allowances,
)
from reconciler.operate.recreating import RecreateOptions, Recreating


def recreate(
    files: Files,
    *,
    target: Topics = None,
    allow_delete: AllowDelete = None,
    take_over: TakeOver = False,
    yes: DeletesYes = False,
    output: PlanOutput = "text",
    clusters: Clusters = None,
    wait: LockWait = 60.0,
) -> None:
    """Delete the copies that --target names, make them anew, and copy again what their originals have.

    Runs go on meanwhile, with these topics paused.
    """
    topology = load_topology(files)
    options = RecreateOptions(clusters or (), target or (), allowances(allow_delete) or {}, take_over, wait)
    applied = Recreating(topology, options, TERMINAL).run(Asking(topology, output, yes))
    print_outcome(applied.plan, applied.outcome, output)
    if not applied.outcome.is_complete:
        raise typer.Exit(applied.exit_code)
    if output == "text":
        tell_next("status", files, ["--watch"])
