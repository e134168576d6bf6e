"""`anabranch plan`: show what an apply would do, and change nothing."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, load_topology, stderr_console
from reconciler.cli.formats import FORMAT, PlanFormatOrPicture, as_written
from reconciler.cli.planning import DIFFERENT, print_picture, print_plan, tell_next
from reconciler.cli.shared_options import AllowDelete, Clusters, TakeOver, Topics, allowances
from reconciler.operate.planning import PlannedApply, PlanOptions, data_centres_of
from reconciler.operate.planning import plan as plan_of
from reconciler.report.plan.to_markdown import SHORTEST

Longest = Annotated[
    int | None,
    typer.Option(
        "--longest",
        metavar="CHARACTERS",
        min=SHORTEST,
        help="Leave out of Markdown what has no room, counted: names of new topics first.",
    ),
]


def plan(
    files: Files,
    *,
    output: Annotated[
        PlanFormatOrPicture, typer.Option(*FORMAT, callback=as_written, help="How the plan is written, or drawn.")
    ] = "text",
    clusters: Clusters = None,
    target: Topics = None,
    allow_delete: AllowDelete = None,
    take_over: TakeOver = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 3 when there is something to do.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the plan there, for `apply --plan`.")
    ] = None,
    longest: Longest = None,
    whole: Annotated[
        Path | None, typer.Option("--whole", metavar="FILE", help="Write all of the Markdown there as well.")
    ] = None,
    observed_folder: Annotated[
        Path | None,
        typer.Option(
            "--write-observed", metavar="DIR", help="Write what was observed there, for a preview with Pulumi."
        ),
    ] = None,
) -> None:
    """Show what apply would do: the live clusters against the declaration. Changes nothing."""
    _check_lengths(output, longest, whole)
    topology = load_topology(files)
    allowed = allowances(allow_delete) or {}
    options = PlanOptions(clusters or (), target or (), allowed, take_over)
    # The Pulumi program declares data centres whole.
    made = plan_of(topology, options, TERMINAL, whole_data_centres=observed_folder is not None)
    planned = made.plan
    if observed_folder is not None:
        _write_observed(observed_folder, made)
    _write(made, out, whole)
    match output:
        case "mermaid" | "svg":
            print_picture(topology, planned, output)
        case _:
            print_plan(planned, output, longest, shlex.join(["anabranch", "plan", *map(str, files)]))
    made.check()
    if output == "text" and not planned.changes_nothing:
        _tell_next(files, out, {"--clusters": clusters, "--target": target, "--allow-delete": allow_delete})
    if detailed_exitcode and not planned.changes_nothing:
        raise typer.Exit(DIFFERENT)


def _write_observed(folder: Path, made: PlannedApply) -> None:
    from reconciler.observe.record import write_observed

    for path in write_observed(folder, made.topology, made.observed, data_centres_of(made.topology, made.targets)):
        stderr_console().print(f"wrote {path}", style="dim")


def _write(made: PlannedApply, out: Path | None, whole: Path | None) -> None:
    """Write the plan into the files that the options name."""
    from reconciler.report.plan.file import write_plan, write_text
    from reconciler.report.plan.to_markdown import plan_markdown

    if out is not None:
        write_plan(out, made.plan, made.targets, made.scope.topics)
        stderr_console().print(f"wrote {out}", style="dim")
    if whole is not None:
        write_text(whole, plan_markdown(made.plan))


def _tell_next(files: Collection[Path], out: Path | None, same: Mapping[str, list[str] | None]) -> None:
    """Print the command that carries the plan out: from its file, or with the options that it was made with."""
    options = [word for option, values in same.items() for value in values or () for word in (option, value)]
    tell_next("apply", files, options if out is None else ["--plan", str(out)])


def _check_lengths(output: str, longest: int | None, whole: Path | None) -> None:
    for option, value in (("--longest", longest), ("--whole", whole)):
        if value is not None and output != "markdown":
            message = "only Markdown has it: --format markdown"
            raise typer.BadParameter(message, param_hint=option)
