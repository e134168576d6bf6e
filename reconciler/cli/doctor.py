"""`anabranch doctor`: is everything there that replication needs, on this machine and on the clusters?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import default_files, has_default_files, load_topology, stderr_console, stdout_console
from reconciler.cli.environments import in_environment
from reconciler.cli.formats import print_json
from reconciler.cli.shared_options import Clusters, Output
from reconciler.operate.checking import cluster_checks, machine_checks
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.deployments.pods import pod_checks
from reconciler.operate.targets import chosen_targets


def doctor(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Topology files; without any, this machine alone is checked."),
    ] = None,
    clusters: Clusters = None,
    output: Output = "text",
) -> None:
    """Check this machine and the clusters, and show what stands against replicating. Changes nothing."""
    from reconciler.report.health import checks_json, checks_text

    files = in_environment(files or (default_files() if has_default_files() else []))
    if clusters and not files:
        message = "it goes with topology files; without any, this machine alone is looked at"
        raise typer.BadParameter(message, param_hint="--clusters")
    checks = list(machine_checks())
    if files:
        topology = load_topology(files)
        targets = chosen_targets(topology, clusters)
        with stderr_console().status("looking at the clusters"):
            checks += cluster_checks(topology, targets)
            checks += pod_checks(topology, targets)
            checks += Deployments(topology).checks(targets)
    if output == "json":
        print_json(checks_json(checks))
    else:
        stdout_console().print(checks_text(checks))
    if any(check.level == "failure" for check in checks):
        raise typer.Exit(1)
