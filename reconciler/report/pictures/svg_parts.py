"""What an SVG picture is made of, and how large each is: boxes, panels, slots, and the wires through them.

Shared by `svg_layout`, which gives them their places, and `svg`, which draws them. All numbers are pixels.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Literal

from reconciler.report.pictures.picture import Arrow, Box, Line

PANEL_PADDING = 16.0
PANEL_HEAD = 30.0
BOX_PADDING = 14.0
ALIAS_HEIGHT = 20.0
LINE_HEIGHT = 16.0
LABEL_PADDING = 9.0
PORT_GAP = 16.0
HEAD = 9.0
MIN_BOX = 118.0
CHARACTERS = 34
ALIAS_CHARACTERS = 28

ALIAS_SIZE = 14.0
TEXT_SIZE = 11.5
_EM, _BOLD_EM = 0.61, 0.71
"""How wide a letter is, plain and bold, in parts of the size: not known here, as a page has its own fonts, so much."""

Side = Literal["left", "right"]


@dataclass(eq=False)
class Rect:
    """A place: its left upper corner and its size. Two are the same only when they are one."""

    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    @property
    def middle(self) -> float:
        """Where its middle is, from top to bottom."""
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


@dataclass(eq=False)
class Node(Rect):
    """A cluster's box."""

    box: Box = field(default_factory=lambda: Box("", ""))
    ports: dict[Side, list[Port]] = field(default_factory=lambda: {"left": [], "right": []})


@dataclass(eq=False)
class Panel(Rect):
    """A data centre with its boxes; without a name it is no more than the place of one box."""

    name: str | None = None
    nodes: list[Node] = field(default_factory=list)


@dataclass(eq=False)
class Slot(Rect):
    """A flow's place in a channel or column: its label, or where it passes."""

    is_label: bool = False


@dataclass(eq=False)
class ConnectingLine:
    """One flow on its way: from its left end to its right one, or between two boxes of one column.

    Attributes:
        arrow: the flow.
        ends: the boxes; of two columns, the left one first.
        sides: at which of their edges.
        slots: what it passes, from left to right.
        label: the slot that has its words.
        is_turned: whether it goes from the second end to the first.
    """

    arrow: Arrow
    ends: tuple[Node, Node]
    sides: tuple[Side, Side]
    slots: list[Slot]
    label: Slot
    is_turned: bool

    def points(self) -> list[tuple[float, float]]:
        """Return its points from source to target; it bends wherever two of them differ in both directions."""
        first, last = (_port(node, side, self) for node, side in zip(self.ends, self.sides, strict=True))
        found = [first]
        if self.sides[0] == self.sides[1]:
            apart = 6.0 if self.ends[0].middle <= self.ends[1].middle else -6.0
            faces, edge = self.label, self.track
            x, inner = (edge.right, faces.right) if self.sides[0] == "left" else (edge.x, faces.x)
            found += [(x, faces.middle - apart), (inner, faces.middle - apart)]
            found += [(inner, faces.middle + apart), (x, faces.middle + apart)]
        else:
            for slot, (left, right) in zip(self.slots, self.spans, strict=True):
                found += [(left, slot.middle), (right, slot.middle)]
        found.append(last)
        return found[::-1] if self.is_turned else found

    track: Rect = field(default_factory=Rect)
    spans: list[tuple[float, float]] = field(default_factory=list)


@dataclass(eq=False)
class Port:
    """Where a flow meets an edge of a box, and how far down."""

    wire: ConnectingLine
    y: float = 0.0


@dataclass
class Layout:
    """A picture with every place known."""

    panels: list[Panel]
    nodes: list[Node]
    wires: list[ConnectingLine]
    width: float
    height: float


def text_width(line: Line, size: float = TEXT_SIZE) -> float:
    """Return how wide words are at most; those of wide scripts count twice."""
    bold = ("strong", "add", "change", "delete")
    return sum(_cells(text) * size * (_BOLD_EM if style in bold else _EM) for text, style in line)


def _cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def shortened(text: str, characters: int = CHARACTERS) -> str:
    """Return text that is no longer than a label allows."""
    return text if len(text) <= characters else text[: characters - 1].rstrip(" ,") + "…"


def box_width(box: Box) -> float:
    """Return how wide a cluster's box must be."""
    alias = text_width(((shortened(box.alias, ALIAS_CHARACTERS), "strong"),), ALIAS_SIZE)
    return max([MIN_BOX, *(each + 2 * BOX_PADDING for each in (alias, *map(text_width, fitted(box.lines))))])


def box_height(box: Box) -> float:
    """Return how high a cluster's box must be for its words."""
    return 2 * BOX_PADDING + ALIAS_HEIGHT + LINE_HEIGHT * len(fitted(box.lines)) - 2


def label_width(arrow: Arrow) -> float:
    """Return how wide a flow's label must be."""
    return max(map(text_width, fitted(arrow.lines)), default=0.0) + 2 * LABEL_PADDING


def label_height(arrow: Arrow) -> float:
    """Return how high a flow's label must be."""
    return LINE_HEIGHT * max(1, len(fitted(arrow.lines))) + LABEL_PADDING


def fitted(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """Return lines of which none is longer than a label allows; topics have two before they are cut short."""
    return tuple(row for line in lines for row in (_wrapped(line) if len(line) == 1 else (_cut(line),)))


def _wrapped(line: Line) -> tuple[Line, ...]:
    ((text, style),) = line
    if style != "code":
        return (_cut(line),)
    first, *others = wrap(text, CHARACTERS, break_on_hyphens=False) or [""]
    rest = text[len(first) :].strip() if others else ""
    return tuple(((row, style),) for row in (first, shortened(rest)) if row)


def _cut(line: Line) -> Line:
    left, kept = CHARACTERS, []
    for text, style in line:
        if left > 1:
            kept.append((shortened(text, left), style))
            left -= len(text)
    return tuple(kept)


def _port(node: Node, side: Side, wire: ConnectingLine) -> tuple[float, float]:
    """Return where a wire meets a box's edge."""
    y = next(port.y for port in node.ports[side] if port.wire is wire)
    return (node.x if side == "left" else node.right), y
