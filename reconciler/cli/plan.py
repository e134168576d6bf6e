"""`anabranch plan`: show what an apply would do, and change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import Files, load_topology, stderr_console
from reconciler.cli.planning import (
    DIFFERENT,
    Clusters,
    PlanFormatOrPicture,
    chosen_targets,
    observe_and_plan,
    print_picture,
    print_plan,
)


def plan(
    files: Files,
    output: Annotated[
        PlanFormatOrPicture, typer.Option("--format", help="How the plan is written, or drawn.")
    ] = "text",
    clusters: Clusters = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 3 when there is something to do.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the plan there, for `apply --plan`.")
    ] = None,
    observed_folder: Annotated[
        Path | None,
        typer.Option("--write-observed", metavar="DIR", help="Write what was observed there, for the Pulumi program."),
    ] = None,
) -> None:
    """Show what apply would do: the live clusters against the declaration. Changes nothing."""
    topology = load_topology(files)
    targets = chosen_targets(topology, clusters)
    planned, observed = observe_and_plan(topology, targets)
    if observed_folder is not None:
        from reconciler.observe.record import write_observed

        for path in write_observed(observed_folder, topology, observed, targets):
            stderr_console().print(f"wrote {path}", style="dim")
    if out is not None:
        from reconciler.report.plan_file import write_plan

        write_plan(out, planned, targets)
        stderr_console().print(f"wrote {out}", style="dim")
    match output:
        case "mermaid" | "svg":
            print_picture(topology, planned, output)
        case _:
            print_plan(planned, output)
    if detailed_exitcode and not planned.changes_nothing:
        raise typer.Exit(DIFFERENT)
