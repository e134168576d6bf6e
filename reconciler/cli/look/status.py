"""`anabranch status`: what the running flows publish, read from the status topics alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import Files, load_with_fields
from reconciler.cli.look.watching import Show, Watch, starting, tell
from reconciler.cli.shared_options import Clusters, Output
from reconciler.operate.watching import StatusView, status_lookout

if TYPE_CHECKING:
    from reconciler.report.text.line import Line


def status(
    files: Files,
    output: Output = "text",
    clusters: Clusters = None,
    partitions: Annotated[bool, typer.Option("--partitions", help="List every partition, with its figures.")] = False,
    watch: Watch = None,
) -> None:
    """Show whether the flows run, how fast, how far behind, and what is parked and why."""
    from reconciler.report.status.quotas import quota_lines
    from reconciler.report.status.summary import status_lines
    from reconciler.report.status.to_json import status_json
    from reconciler.report.status.unapplied import unapplied_lines
    from reconciler.report.status.unread import unread_lines

    topology, fields = load_with_fields(files)
    start = starting(files)

    def lines(look: StatusView) -> list[Line]:
        summaries = look.summaries()
        return [
            *status_lines(summaries, whole=partitions, start=start),
            *quota_lines(summaries, fields),
            *unread_lines(topology.flows, look.failures),
            *unapplied_lines(topology, look.in_force),
        ]

    show = Show(
        lines=lines,
        value=lambda look: status_json(look.summaries(), look.now, sorted(look.failures)),
    )
    tell(status_lookout(topology, clusters), show, output, watch)
