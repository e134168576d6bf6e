"""`anabranch offsets read` and `export`: what groups have committed on a cluster, or where a flow stands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from reconciler.cli.common import Files, load_topology, print_problems, stderr_console, stdout_console
from reconciler.cli.formats import print_json
from reconciler.cli.offsets.options import (
    ClusterAlias,
    FlowName,
    GroupNames,
    SourceLost,
    TableOutput,
    TopicNames,
    check_patterns,
    declared_cluster,
    is_named,
    tell_cut,
    warn_of_idle,
)
from reconciler.cli.shared_options import declared_flow
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.text import json_text
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology

if TYPE_CHECKING:
    from reconciler.model.offsets.committed import Committed, Kind, Position

    Rows = list[Committed] | list[Position]


def read(
    files: Files,
    *,
    cluster: ClusterAlias = None,
    group: GroupNames = None,
    flow: FlowName = None,
    topic: TopicNames = None,
    source_lost: SourceLost = False,
    output: TableOutput = "text",
) -> None:
    """Print offsets of groups on a cluster (--cluster, --group), or a flow's positions (--flow)."""
    from reconciler.report.offsets import offsets_csv, offsets_json, offsets_lines

    if source_lost and flow is None:
        message = "it goes with --flow: groups are asked of their own cluster alone"
        raise typer.BadParameter(message, param_hint="--source-lost")
    kind, rows = _rows(load_topology(files), cluster, group, flow, topic, source_lost)
    if output == "json":
        print_json(offsets_json(rows))
    elif output == "csv":
        sys.stdout.write(offsets_csv(kind, rows))
    else:
        console = stdout_console()
        for line in offsets_lines(kind, rows):
            console.print(line)


def export(
    files: Files,
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to write them: JSON if its name ends so, else CSV.")
    ],
    cluster: ClusterAlias = None,
    group: GroupNames = None,
    flow: FlowName = None,
    topic: TopicNames = None,
    mirus: Annotated[
        str | None,
        typer.Option("--mirus", metavar="CONNECTOR", help="With --flow: as Mirus' offset tool reads it, of CONNECTOR."),
    ] = None,
) -> None:
    """Write offsets of groups, or a flow's positions, to a file that import reads."""
    from reconciler.checkpoints.groups.mirus_offsets import text_of
    from reconciler.report.offsets import offsets_csv, offsets_json
    from reconciler.report.text.words import counted

    if mirus is not None and flow is None:
        message = "a connector has positions of a flow: name it with --flow"
        raise typer.BadParameter(message, param_hint="--mirus")
    kind, found = _rows(load_topology(files), cluster, group, flow, topic)
    rows = cast("Rows", [row for row in found if row.offset is not None])
    is_json = out.suffix.lower() == ".json"
    if mirus is not None:
        text = text_of(cast("Sequence[Position]", rows), mirus, is_json=is_json)
    else:
        text = f"{json_text(offsets_json(rows), indent=2)}\n" if is_json else offsets_csv(kind, rows)
    try:
        out.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        problem = Problem("AB180", str(out), f"cannot be written: {error.strerror}", "name another file")
        raise DeclaredInputError(problem) from None
    stderr_console().print(f"wrote {counted(len(rows), 'offset')} to {out}", style="dim")


def _rows(
    topology: Topology,
    cluster: str | None,
    groups: Sequence[str] | None,
    flow: str | None,
    topics: Sequence[str] | None,
    source_lost: bool = False,
) -> tuple[Kind, Rows]:
    """Return what is asked for, and whose it is.

    Raises:
        typer.BadParameter: the options do not go together, or name what is not declared.
        DeclaredInputError: AB625, AB629, AB313, what stands against groups that are named in full.
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: AB311, AB313, something may not be read.
    """
    check_patterns(groups, "--group", any_text=True)
    check_patterns(topics, "--topic")
    if flow is not None:
        if cluster is not None or groups:
            message = "--flow goes without --cluster and --group: a flow's positions are at its target"
            raise typer.BadParameter(message, param_hint="--flow")
        return "flow", _positions(topology, declared_flow(topology, flow), topics, source_lost)
    if cluster is None or not groups:
        message = "name groups (--cluster ALIAS --group NAME, or --group all), or a flow (--flow NAME)"
        raise typer.BadParameter(message)
    return "group", _committed(declared_cluster(topology, cluster), groups, topics)


def _committed(cluster: Cluster, named: Sequence[str], topics: Sequence[str] | None) -> list[Committed]:
    from dataclasses import replace

    from reconciler.checkpoints.groups.groups import Groups

    with stderr_console().status(f"looking at {cluster.alias}"):
        groups = Groups(cluster)
        chosen, not_handled = groups.chosen(named)
        rows = [one for one in groups.committed(chosen) if is_named(one.topic, topics)]
        bounds = groups.bounds((one.topic, one.partition) for one in rows)
    print_problems(not_handled, severity="warning")
    warn_of_idle(topics, groups.partitions, cluster.where)
    return [replace(one, bounds=bounds.get((one.topic, one.partition))) for one in rows]


def _positions(topology: Topology, flow: Flow, topics: Sequence[str] | None, source_lost: bool) -> list[Position]:
    from reconciler.checkpoints.groups.positions import Positions

    looked_at = flow.target if source_lost else f"{flow.source} and {flow.target}"
    with stderr_console().status(f"looking at {looked_at}"):
        positions = Positions(topology, flow, source_lost=source_lost)
        told = positions.read()
        found = [one for one in told if is_named(one.topic, topics)]
    warn_of_idle(topics, {one.topic for one in told}, f"flow {flow.name}")
    tell_cut(flow.name, positions.cut)
    if source_lost:
        said = f"where logs of {flow.source} begin and end, and the lag, are not known without the source"
        stderr_console().print(said, style="yellow")
    return found
