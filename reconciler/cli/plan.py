"""`anabranch plan`: show what an apply would do, and change nothing."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import FORMAT, TERMINAL, Files, as_written, load_topology, stderr_console
from reconciler.cli.deleting import AllowDelete, allowances
from reconciler.cli.owning import TakeOver
from reconciler.cli.planning import DIFFERENT, PlanFormatOrPicture, print_picture, print_plan, tell_next
from reconciler.cli.targeting import Clusters, Topics
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Plan
from reconciler.operate.planning import PlanScope, observe_and_plan
from reconciler.operate.targets import planned_clusters
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
    from reconciler.plan.guardrails.owners import check_owner
    from reconciler.plan.removal.deletion_limit import check_deletions

    _check_lengths(output, longest, whole)
    topology = load_topology(files)
    allowed = allowances(allow_delete)
    targets, notices = planned_clusters(topology, clusters, TERMINAL)
    scope = PlanScope(tuple(target or ()), frozenset(allowed or ()), notices)
    # The program declares data centres whole.
    entire = _data_centres_of(topology, targets) if observed_folder is not None else ()
    planned, observed = observe_and_plan(topology, targets, scope, entire, TERMINAL)
    if observed_folder is not None:
        _write_observed(observed_folder, topology, observed, entire)
    _write(planned, targets, scope, out, whole)
    match output:
        case "mermaid" | "svg":
            print_picture(topology, planned, output)
        case _:
            print_plan(planned, output, longest, shlex.join(["anabranch", "plan", *map(str, files)]))
    check_owner(topology, observed, targets, take_over)
    check_deletions(planned, observed, allowed or {}, scope.topics)
    if output == "text" and not planned.changes_nothing:
        _tell_next(files, out, {"--clusters": clusters, "--target": target, "--allow-delete": allow_delete})
    if detailed_exitcode and not planned.changes_nothing:
        raise typer.Exit(DIFFERENT)


def _write_observed(
    folder: Path, topology: Topology, observed: Mapping[str, ObservedCluster], entire: Collection[str]
) -> None:
    from reconciler.observe.record import write_observed

    for path in write_observed(folder, topology, observed, entire):
        stderr_console().print(f"wrote {path}", style="dim")


def _write(planned: Plan, targets: Collection[str], scope: PlanScope, out: Path | None, whole: Path | None) -> None:
    """Write the plan into the files that were asked for."""
    from reconciler.report.plan.file import write_plan, write_text
    from reconciler.report.plan.to_markdown import plan_markdown

    if out is not None:
        write_plan(out, planned, tuple(targets), scope.topics)
        stderr_console().print(f"wrote {out}", style="dim")
    if whole is not None:
        write_text(whole, plan_markdown(planned))


def _tell_next(files: Collection[Path], out: Path | None, same: Mapping[str, list[str] | None]) -> None:
    """Say how to carry the plan out: from its file, or with the options that it was made with."""
    options = [word for option, values in same.items() for value in values or () for word in (option, value)]
    tell_next("apply", files, options if out is None else ["--plan", str(out)])


def _check_lengths(output: str, longest: int | None, whole: Path | None) -> None:
    for option, value in (("--longest", longest), ("--whole", whole)):
        if value is not None and output != "markdown":
            message = "only Markdown has it: --format markdown"
            raise typer.BadParameter(message, param_hint=option)


def _data_centres_of(topology: Topology, targets: Collection[str]) -> tuple[str, ...]:
    """Return the aliases of all clusters in the data centres of targets."""
    places = {topology.clusters[alias].datacenter for alias in targets}
    return tuple(alias for alias, cluster in topology.clusters.items() if cluster.datacenter in places)
