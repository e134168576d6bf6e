"""A topology as a tree for people and as a Mermaid flowchart for pull requests.

`anabranch graph` calls it. Pure: the topology is all it sees.
"""

from __future__ import annotations

import re

from rich.text import Text

from reconciler.model.cluster import Cluster
from reconciler.model.flow import Flow
from reconciler.model.topology import Topology

# Quotes end a label, # begins an entity, and * is Markdown to some versions of Mermaid.
_UNSAFE_IN_LABELS = re.compile(r"[^A-Za-z0-9 _.,:/()\[\]?+…-]")


def graph_text(topology: Topology) -> Text:
    """Return data centres, their clusters, and the flows out of each."""
    counts = f"{_count(len(topology.clusters), 'cluster')}, {_count(len(topology.flows), 'flow')}"
    text = Text.assemble((topology.name, "bold"), f" · {counts}")
    widths = _widths([_columns(flow) for flow in topology.flows])
    for datacenter, clusters in _by_datacenter(topology).items():
        text.append(f"\n\n{datacenter}", style="bold cyan")
        for cluster in clusters:
            text.append(f"\n  {cluster.alias}", style="bold")
            text.append(f"  {', '.join(cluster.bootstrap)}", style="dim")
            for flow in topology.flows:
                if flow.source == cluster.alias:
                    text.append("\n    ").append_text(_line(flow, widths))
    return text


def graph_mermaid(topology: Topology) -> str:
    """Return a Mermaid flowchart: one subgraph per data centre, one arrow per flow, dotted where it is disabled."""
    lines = ["flowchart LR"]
    ids = {alias: f"c{index}" for index, alias in enumerate(topology.clusters)}
    for index, (datacenter, clusters) in enumerate(_by_datacenter(topology).items()):
        lines.append(f'  subgraph d{index}["{_label(datacenter)}"]')
        lines += [f'    {ids[cluster.alias]}["{_label(cluster.alias)}"]' for cluster in clusters]
        lines.append("  end")
    for flow in topology.flows:
        arrow = "-->" if flow.enabled else "-.->"
        label = "<br/>".join(_label(column) for column in _columns(flow)[1:] if column)
        lines.append(f'  {ids[flow.source]} {arrow}|"{label}"| {ids[flow.target]}')
    return "\n".join(lines) + "\n"


def _by_datacenter(topology: Topology) -> dict[str, list[Cluster]]:
    grouped: dict[str, list[Cluster]] = {}
    for cluster in topology.clusters.values():
        grouped.setdefault(cluster.datacenter, []).append(cluster)
    return grouped


def _columns(flow: Flow) -> tuple[str, ...]:
    """Return what is said of a flow: target, topics, their names there, and what is not the default."""
    topics = ", ".join(flow.topics.include)
    if flow.topics.exclude:
        topics += f" without {', '.join(flow.topics.exclude)}"
    extras = (
        f"flow {flow.name}" if flow.name != f"{flow.source}-{flow.target}" else "",
        f"offsets {flow.offsets}" if flow.offsets != "auto" else "",
        _count(flow.tasks, "task") if flow.tasks > 1 else "",
        f"replication factor {flow.replication_factor}" if flow.replication_factor else "",
        "" if flow.enabled else "disabled",
    )
    return f"→ {flow.target}", topics, _named(flow), ", ".join(filter(None, extras))


def _named(flow: Flow) -> str:
    """Say how the copies are called."""
    policy = flow.policy
    prefixed = f"as {flow.source}{policy.separator}…"
    match policy.kind:
        case "identity":
            return "same names"
        case "rename":
            others = prefixed if policy.prefixes else "same names"
            return f"renamed by {_count(len(policy.rules), 'rule')}, others {others}"
        case "class":
            return f"named by {policy.entry_point}"
    return prefixed


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _line(flow: Flow, widths: list[int]) -> Text:
    cells = [cell.ljust(width) for cell, width in zip(_columns(flow), widths, strict=True)]
    line = Text("   ".join(cells).rstrip(), style="" if flow.enabled else "dim")
    line.stylize("green" if flow.enabled else "dim", 0, 1)
    return line


def _label(text: str) -> str:
    """Return text that is safe between a Mermaid label's quotes."""
    return _UNSAFE_IN_LABELS.sub(lambda found: f"#{ord(found[0])};", text)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
