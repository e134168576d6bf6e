"""`anabranch flows`: which flows the files declare. It connects to nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.cli.common import Files, load_topology, stdout_console
from reconciler.cli.formats import FORMAT, TextOrData, as_written, print_json


def flows(
    files: Files,
    output: Annotated[
        TextOrData, typer.Option(*FORMAT, callback=as_written, help="How the result is written.")
    ] = "text",
) -> None:
    """List the flows that the files declare, with their topics and groups, without connecting."""
    from reconciler.report.flows import flow_lines, flows_json

    topology = load_topology(files)
    if output == "json":
        print_json(flows_json(topology.flows))
    else:
        for line in flow_lines(topology.flows):
            stdout_console().print(line)
