"""`anabranch lag`: how far behind each partition is, the worst first, from the status topics alone."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.cli.common import Files, load_topology
from reconciler.cli.look.watching import Show, Watch, starting, tell
from reconciler.cli.shared_options import Clusters, OneFlow, Output, check_flow
from reconciler.operate.targets import chosen_targets
from reconciler.operate.watching import Lookout, StatusView


def lag(
    files: Files,
    output: Output = "text",
    clusters: Clusters = None,
    flow: OneFlow = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="Only this topic, by its original or remote name.")
    ] = None,
    watch: Watch = None,
) -> None:
    """List the partitions, the worst first: position, end, lag in records and in time, and latency."""
    from reconciler.report.status.lag import LagRow, lag_lines, lag_rows
    from reconciler.report.status.to_json import lag_json

    topology = load_topology(files)
    check_flow(topology, flow)
    start = starting(files)

    def rows(look: StatusView) -> list[LagRow]:
        return lag_rows([one for one in look.flows if flow in (None, one.name)], look.statuses, look.now, topic)

    show = Show(
        lines=lambda look: lag_lines(rows(look), "" if look.statuses or look.failures else start),
        value=lambda look: lag_json(rows(look), look.now, sorted(look.failures)),
    )
    tell(Lookout(topology, chosen_targets(topology, clusters)), show, output, watch)
