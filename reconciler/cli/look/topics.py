"""`anabranch topics`: the topics of flows, those that are furthest behind first, from the status topics alone."""

from __future__ import annotations

from reconciler.cli.common import Files, load_topology
from reconciler.cli.look.watching import Show, Watch, starting, tell
from reconciler.cli.shared_options import Clusters, OneFlow, Output, check_flow
from reconciler.operate.watching import StatusView, status_lookout


def topics(
    files: Files,
    output: Output = "text",
    clusters: Clusters = None,
    flow: OneFlow = None,
    watch: Watch = None,
) -> None:
    """List the topics that are copied, and as what, those that are furthest behind first."""
    from reconciler.report.status.topics import TopicRow, topic_lines, topic_rows, topics_json

    topology = load_topology(files)
    check_flow(topology, flow)

    def rows(look: StatusView) -> list[TopicRow]:
        return topic_rows([one for one in look.summaries() if flow in (None, one.name)])

    show = Show(
        lines=lambda look: topic_lines(rows(look), "" if look.statuses or look.failures else starting(files)),
        value=lambda look: topics_json(rows(look), look.now, sorted(look.failures)),
    )
    tell(status_lookout(topology, clusters), show, output, watch)
