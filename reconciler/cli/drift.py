"""`anabranch drift`: show what outsiders changed since the last apply, field by field, and change nothing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reconciler.cli.common import (
    FORMAT,
    TERMINAL,
    Files,
    as_written,
    load_topology,
    print_json,
    print_problems,
    stdout_console,
)
from reconciler.cli.planning import DIFFERENT, PlanFormat
from reconciler.cli.targeting import Clusters, Topics
from reconciler.model.base.errors import Unreachable
from reconciler.model.planning.drift import Drift
from reconciler.operate.planning import report_away
from reconciler.operate.targets import changed_clusters, check_names


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
    """Show what is on record of the last apply against what is there. Changes nothing, and asks targets alone."""
    from reconciler.observe.topology import observe_owned
    from reconciler.plan.findings.drift import drift_of
    from reconciler.plan.part import ours

    topology = load_topology(files)
    targets = changed_clusters(topology, clusters)
    with TERMINAL.working("looking at the clusters"):
        seen_or_away, unseen = observe_owned(topology, targets, resting_may_be_away=True)
    report_away(seen_or_away, TERMINAL)
    observed = {alias: seen for alias, seen in seen_or_away.items() if not seen.is_away}
    if target and not unseen:
        check_names(target, {name for seen in observed.values() for name in (*ours(topology, seen), *seen.names)})
    found = tuple(
        one
        for one in drift_of(topology, observed, all_settings)
        if one.field not in (ignore or ()) and (not target or one.topic in target)
    )
    result = Drift(topology.name, tuple(alias for alias in targets if alias in observed), found, tuple(unseen))
    _print(result, output)
    if unseen:
        print_problems(unseen)
        raise typer.Exit(Unreachable.exit_code)
    if detailed_exitcode and found:
        raise typer.Exit(DIFFERENT)


def _print(result: Drift, output: PlanFormat) -> None:
    from reconciler.report.plan.drift import drift_json, drift_markdown, drift_text

    if output == "json":
        print_json(drift_json(result))
    elif output == "markdown":
        sys.stdout.write(drift_markdown(result))
    else:
        stdout_console().print(drift_text(result))
