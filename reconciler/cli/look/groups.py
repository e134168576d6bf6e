"""`anabranch groups`: the consumer groups that flows take along, and when their positions were written last."""

from __future__ import annotations

from reconciler.cli.common import Files, load_topology
from reconciler.cli.look.watching import Show, Watch, tell
from reconciler.cli.shared_options import Clusters, OneFlow, Output, check_flow
from reconciler.model.declared.flow import Flow
from reconciler.operate.watching import StatusView, status_lookout


def groups(
    files: Files,
    output: Output = "text",
    clusters: Clusters = None,
    flow: OneFlow = None,
    watch: Watch = None,
) -> None:
    """List the consumer groups that flows take along, and when their positions were written at the target."""
    from reconciler.report.status.groups import all_groups_json, group_lines

    topology = load_topology(files)
    check_flow(topology, flow)

    def chosen(look: StatusView) -> list[Flow]:
        return [one for one in look.flows if flow in (None, one.name)]

    show = Show(
        lines=lambda look: group_lines(chosen(look), look.last_looks, look.now),
        value=lambda look: all_groups_json(chosen(look), look.last_looks, look.now, sorted(look.failures)),
    )
    tell(status_lookout(topology, clusters), show, output, watch)
