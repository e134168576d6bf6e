"""A topology as a tree for people, as a Mermaid flowchart for pull requests, and as an SVG picture for pages.

`anabranch graph` calls it. Pure: it reads the topology alone.
"""

from __future__ import annotations

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.report.pictures.mermaid import mermaid
from reconciler.report.pictures.picture import columns, topology_picture
from reconciler.report.pictures.svg import svg
from reconciler.report.text.line import Line, Lines
from reconciler.report.text.words import counted


def graph_text(topology: Topology) -> Lines:
    """Return data centres, their clusters, and the flows out of each."""
    counts = f"{counted(len(topology.clusters), 'cluster')}, {counted(len(topology.flows), 'flow')}"
    lines = [Line.assemble((topology.name, "bold"), f" · {counts}")]
    widths = _widths([columns(flow) for flow in topology.flows])
    for datacenter, clusters in _by_datacenter(topology).items():
        lines += [Line(), Line(datacenter, style="bold cyan")]
        for cluster in clusters:
            addresses = (f"  {', '.join(cluster.declared_addresses)}", "dim")
            lines.append(Line.assemble((f"  {cluster.alias}", "bold"), addresses))
            lines += [
                Line("    ").append(_line(flow, widths)) for flow in topology.flows if flow.source == cluster.alias
            ]
    return Lines(lines)


def graph_mermaid(topology: Topology) -> str:
    """Return a Mermaid flowchart: one subgraph per data centre, one arrow per flow, dotted where it does not run."""
    return mermaid(topology_picture(topology))


def graph_svg(topology: Topology, with_style: bool = True) -> str:
    """Return an SVG document: a panel for each data centre, an arrow for each flow in the colour of its source.

    Args:
        topology: what is drawn.
        with_style: whether it holds its stylesheet, `pictures.svg_style.stylesheet`.
    """
    return svg(topology_picture(topology), with_style)


def _by_datacenter(topology: Topology) -> dict[str, list[Cluster]]:
    grouped: dict[str, list[Cluster]] = {}
    for cluster in topology.clusters.values():
        grouped.setdefault(cluster.datacenter, []).append(cluster)
    return grouped


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _line(flow: Flow, widths: list[int]) -> Line:
    runs = flow.enabled and not flow.failed_over
    cells = [cell.ljust(width) for cell, width in zip(columns(flow), widths, strict=True)]
    line = Line("   ".join(cells).rstrip(), style="" if runs else "dim")
    line.stylize("green" if runs else "dim", 0, 1)
    return line
