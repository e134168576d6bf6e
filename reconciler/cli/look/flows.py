"""`anabranch flows`: which flows the files declare. It connects to nothing."""

from __future__ import annotations

from reconciler.cli.common import Files, load_topology, stdout_console
from reconciler.cli.formats import print_json
from reconciler.cli.shared_options import Output


def flows(
    files: Files,
    output: Output = "text",
) -> None:
    """List the flows that the files declare, with their topics and groups, without connecting."""
    from reconciler.report.flows import flow_lines, flows_json

    topology = load_topology(files)
    if output == "json":
        print_json(flows_json(topology.flows))
    else:
        for line in flow_lines(topology.flows):
            stdout_console().print(line)
