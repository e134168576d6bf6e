"""What a picture of a topology shows, before it is drawn: boxes, arrows, text, and the tone of each.

`graph` and `plan` make pictures; `mermaid` and `svg` draw them, so that both show the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from reconciler.model.base.text import shown
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.report.text.words import counted

Tone = Literal["plain", "add", "change", "delete", "same", "absent"]
"""What becomes of something: `plain` where nothing is compared, `absent` where the plan does not look at it."""

Style = Literal["", "code", "strong", "dim", "add", "change", "delete"]
Key = Tone | Literal["dotted", "words"]
"""What stands before the words of a legend: an arrow of that tone, a dotted one, or nothing."""

Line = tuple[tuple[str, Style], ...]
"""Words in a row, each with how it is written."""


@dataclass(frozen=True)
class Box:
    """One cluster.

    Attributes:
        alias: of the cluster.
        group: the data centre that it stands in.
        lines: text below its alias.
        tone: its colour.
    """

    alias: str
    group: str
    lines: tuple[Line, ...] = ()
    tone: Tone = "plain"


@dataclass(frozen=True)
class Arrow:
    """One flow.

    Attributes:
        name: of the flow.
        source: alias.
        target: alias.
        lines: its text.
        tone: its colour.
        dotted: whether it does not run.
    """

    name: str
    source: str
    target: str
    lines: tuple[Line, ...] = ()
    tone: Tone = "plain"
    dotted: bool = False


@dataclass(frozen=True)
class Picture:
    """A whole picture.

    Attributes:
        title: what stands above it.
        subtitle: the line below the title.
        description: the same as text, for screen readers.
        boxes: every cluster once, in the order of declaration.
        arrows: every flow once, in the order of expansion.
        legend: what tones and marks mean.
    """

    title: str
    subtitle: str
    description: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    legend: tuple[tuple[Key, str], ...] = ()

    @property
    def groups(self) -> dict[str, list[Box]]:
        """The boxes by data centre."""
        grouped: dict[str, list[Box]] = {}
        for box in self.boxes:
            grouped.setdefault(box.group, []).append(box)
        return grouped


def printable(picture: Picture) -> Picture:
    """Return a picture whose words are all in one line each, and none of whose characters is hidden."""

    def line(words: Line) -> Line:
        return tuple((shown(text), style) for text, style in words)

    boxes = (
        replace(box, alias=shown(box.alias), group=shown(box.group), lines=tuple(map(line, box.lines)))
        for box in picture.boxes
    )
    arrows = (
        replace(
            arrow,
            name=shown(arrow.name),
            source=shown(arrow.source),
            target=shown(arrow.target),
            lines=tuple(map(line, arrow.lines)),
        )
        for arrow in picture.arrows
    )
    return Picture(
        shown(picture.title),
        shown(picture.subtitle),
        shown(picture.description),
        tuple(boxes),
        tuple(arrows),
        tuple((key, shown(words)) for key, words in picture.legend),
    )


def topology_picture(topology: Topology) -> Picture:
    """Return the picture of what topology files expand to."""
    boxes = tuple(
        Box(cluster.alias, cluster.datacenter, _addresses(cluster.declared_addresses))
        for cluster in topology.clusters.values()
    )
    arrows = tuple(
        Arrow(flow.name, flow.source, flow.target, _words(flow), dotted=bool(_resting(flow))) for flow in topology.flows
    )
    counts = f"{counted(len(boxes), 'cluster')}, {counted(len(arrows), 'flow')}"
    told = "; ".join(f"{one.source} to {one.target}" for one in arrows)
    said = dict.fromkeys(why for flow in topology.flows for why in _resting(flow))
    legend: tuple[tuple[Key, str], ...] = (("dotted", " or ".join(said)),) if said else ()
    return Picture(
        topology.name,
        counts,
        f"{counts}{': ' if told else ''}{told}.",
        boxes,
        arrows,
        (("plain", "flow, in the colour of its source"), *legend),
    )


def columns(flow: Flow) -> tuple[str, ...]:
    """Return the text of a flow: target, topics, their names there, and settings that are not the default."""
    extras = (
        f"flow {flow.name}" if flow.name != f"{flow.source}-{flow.target}" else "",
        f"offsets {flow.offsets}" if flow.offsets != "auto" else "",
        counted(flow.tasks, "task") if flow.tasks > 1 else "",
        f"replication factor {flow.replication_factor}" if flow.replication_factor else "",
        *_resting(flow),
    )
    return f"→ {flow.target}", taken(flow), _named(flow), ", ".join(filter(None, extras))


def _resting(flow: Flow) -> tuple[str, ...]:
    """Return why a flow does not run."""
    return (*(() if flow.enabled else ("disabled",)), *(("failed over",) if flow.failed_over else ()))


def taken(flow: Flow) -> str:
    """Return which topics a flow selects."""
    topics = ", ".join(flow.topics.include)
    return f"{topics} (without {', '.join(flow.topics.exclude)})" if flow.topics.exclude else topics


def _named(flow: Flow) -> str:
    """Return how copies are named."""
    return flow.policy.describe(flow.source)


def _words(flow: Flow) -> tuple[Line, ...]:
    _, topics, named, extras = columns(flow)
    lines: tuple[tuple[str, Style], ...] = ((topics, "code"), (named, ""), (extras, "dim"))
    return tuple((line,) for line in lines if line[0])


def _addresses(bootstrap: tuple[str, ...]) -> tuple[Line, ...]:
    first, *others = bootstrap
    more: Line = ((f" +{len(others)}", "dim"),) if others else ()
    return (((first, "dim"), *more),)
