"""`anabranch drift`: show what outsiders changed since the last apply, field by field, and change nothing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, load_topology, print_problems, stdout_console
from reconciler.cli.formats import FORMAT, PlanFormat, as_written, print_json
from reconciler.cli.planning import DIFFERENT
from reconciler.cli.shared_options import Clusters, Topics
from reconciler.model.base.errors import Unreachable
from reconciler.model.planning.drift import Drift
from reconciler.operate.drifting import DriftOptions
from reconciler.operate.drifting import drift as drift_of


def drift(
    files: Files,
    output: Annotated[PlanFormat, typer.Option(*FORMAT, callback=as_written, help="How drift is written.")] = "text",
    clusters: Clusters = None,
    target: Topics = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="FIELD", help="Leave a field out, as retention.ms; may be repeated."),
    ] = None,
    *,
    all_settings: Annotated[
        bool,
        typer.Option("--all-settings", help="Also settings that no copy gets, as the throttles of a rebalance."),
    ] = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 3 when something drifted.")
    ] = False,
) -> None:
    """Show what is on record of the last apply against what is there. Changes nothing, and reads targets alone."""
    topology = load_topology(files)
    options = DriftOptions(clusters or (), target or (), ignore or (), all_settings)
    result = drift_of(topology, options, TERMINAL)
    _print(result, output)
    if result.unseen:
        print_problems(result.unseen)
        raise typer.Exit(Unreachable.exit_code)
    if detailed_exitcode and not result.is_clean:
        raise typer.Exit(DIFFERENT)


def _print(result: Drift, output: PlanFormat) -> None:
    from reconciler.report.plan.drift import drift_json, drift_markdown, drift_text

    if output == "json":
        print_json(drift_json(result))
    elif output == "markdown":
        sys.stdout.write(drift_markdown(result))
    else:
        stdout_console().print(drift_text(result))
