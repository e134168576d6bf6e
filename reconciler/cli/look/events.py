"""`anabranch events`: applies, changes at run time, pauses and failovers, from what the targets have on record."""

from __future__ import annotations

import typer

from reconciler.cli.common import TERMINAL, Files, load_topology, print_problems, stdout_console
from reconciler.cli.formats import print_json
from reconciler.cli.shared_options import Clusters, Output
from reconciler.model.base.errors import Unreachable


def events(
    files: Files,
    output: Output = "text",
    clusters: Clusters = None,
) -> None:
    """List applies, changes at run time, pauses and failovers with user and time, the newest last."""
    from reconciler.operate.recalling import events as recalled
    from reconciler.report.status.events import event_lines, events_json

    topology = load_topology(files)
    with TERMINAL.working("reading what is on record"):
        found, problems = recalled(topology, clusters)
    if output == "json":
        print_json(events_json(found, problems))
    else:
        for line in event_lines(found):
            stdout_console().print(line, soft_wrap=True)
    if problems:
        print_problems(problems)
        raise typer.Exit(Unreachable.exit_code)
