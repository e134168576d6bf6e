"""`anabranch status`: what the running flows say of themselves, read from the status topics alone."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from reconciler.cli.common import Files, TextOrJson, load_topology, print_json, stdout_console
from reconciler.cli.planning import Clusters, chosen_targets
from reconciler.model.errors import together
from reconciler.model.status import TaskStatus


def status(
    files: Files,
    output: Annotated[TextOrJson, typer.Option("--format", help="How the result is written.")] = "text",
    clusters: Clusters = None,
) -> None:
    """Tell whether the flows run, how fast, how far behind, and what is parked and why."""
    from reconciler.observe.reach import unreachable_among
    from reconciler.report.status import status_json, status_lines, summarise
    from reconciler.state.status import StatusReader, newest_runs

    topology = load_topology(files)
    targets = chosen_targets(topology, clusters)
    failures = unreachable_among([topology.clusters[alias] for alias in targets])
    statuses: list[TaskStatus] = []
    for alias in targets:
        if alias not in failures:
            reader = StatusReader(topology.clusters[alias])
            statuses += reader.current()
            reader.close()
    flows = [flow for flow in topology.flows_into(targets) if flow.target not in failures]
    now = time.time()
    summaries = summarise(flows, newest_runs(statuses, now), now)
    if output == "json":
        print_json(status_json(summaries))
    else:
        console = stdout_console()
        for line in status_lines(summaries):
            console.print(line)
    if failures:
        # Some flows could not be asked: what is printed is incomplete, and must not pass for all there is.
        raise together(list(failures.values()))
