"""Pictures as SVG documents: nothing from elsewhere, light and dark as the page is, text for screen readers.

`graph` and `plan` call it. Pure: the same picture gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from xml.sax.saxutils import escape, quoteattr

from reconciler.report.pictures.mermaid import plain_text
from reconciler.report.pictures.picture import Line, Picture, printable
from reconciler.report.pictures.svg_layout import laid_out
from reconciler.report.pictures.svg_parts import (
    ALIAS_CHARACTERS,
    ALIAS_HEIGHT,
    BOX_PADDING,
    HEAD,
    LABEL_PADDING,
    LINE_HEIGHT,
    PANEL_PADDING,
    TEXT_SIZE,
    ConnectingLine,
    Layout,
    Node,
    Panel,
    Rect,
    fitted,
    shortened,
    text_width,
)
from reconciler.report.pictures.svg_style import HUES, stylesheet

_MARGIN = 28.0
_LEGEND_GAP = 26.0
_SWATCH = 22.0
_TITLE_SIZE = 20.0
_FEW_FLOWS = 8
_BASELINE = 0.72
"""How far below a line's upper edge its letters stand, in parts of its height."""


def svg(picture: Picture, with_style: bool = True) -> str:
    """Return an SVG document that ends with a newline.

    Args:
        picture: what is drawn.
        with_style: whether it holds its stylesheet; pages that allow no styles inside of them link it.
    """
    # XML 1.0 has no place for control characters, however they are written.
    picture = printable(picture)
    layout = laid_out(_with_ends(picture))
    legend = _legend_places(picture)
    needed = [layout.width, *(x + width + _MARGIN for x, width in legend)]
    needed += [2 * _MARGIN + text_width(((picture.title, "strong"),), _TITLE_SIZE)]
    needed += [2 * _MARGIN + text_width(((picture.subtitle, ""),), 13.0)]
    width, height = max(needed), layout.height + (_LEGEND_GAP + 14 if legend else 0.0)
    hues = {node.box.alias: f"hue{index % len(HUES)}" for index, node in enumerate(layout.nodes)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="anabranch" role="img" aria-labelledby="title desc" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}">',
        f'<title id="title">{_text(picture.title)}</title>',
        f'<desc id="desc">{_text(picture.description)}</desc>',
        *([f"<style>\n{stylesheet()}</style>"] if with_style else []),
        f'<rect class="page" width="{_n(width)}" height="{_n(height)}"/>',
        f'<text class="title" x="{_n(_MARGIN)}" y="42">{_text(picture.title)}</text>',
        f'<text class="subtitle" x="{_n(_MARGIN)}" y="64">{_text(picture.subtitle)}</text>',
        *_drawn(layout, hues),
        *_legend(picture, legend, layout.height + 4),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _with_ends(picture: Picture) -> Picture:
    """Return a picture whose labels name the ends of their flows where lines are many to follow."""
    if len(picture.arrows) <= _FEW_FLOWS:
        return picture
    named = (replace(one, lines=(((f"{one.source} → {one.target}", "strong"),), *one.lines)) for one in picture.arrows)
    return replace(picture, arrows=tuple(named))


def _drawn(layout: Layout, hues: dict[str, str]) -> Iterator[str]:
    for panel in layout.panels:
        yield from _panel(panel)
    for wire in layout.wires:
        yield from _wire(wire, hues)
    for node in layout.nodes:
        yield from _node(node, hues[node.box.alias])
    # Labels come last: a line never runs over words.
    for wire in layout.wires:
        yield from _label(wire, hues)


def _panel(panel: Panel) -> Iterator[str]:
    fits = int((panel.width - 2 * PANEL_PADDING) / text_width((("x", "strong"),), 12.5))
    name = str(panel.name)
    yield f'<g class="panel" data-datacenter={_attribute(name)}>'
    yield f"<title>{_text(name)}</title>"
    yield f'<rect {_place(panel)} rx="12"/>'
    yield f'<text x="{_n(panel.x + PANEL_PADDING)}" y="{_n(panel.y + 20)}">{_text(shortened(name, fits))}</text>'
    yield "</g>"


def _node(node: Node, hue: str) -> Iterator[str]:
    box = node.box
    said = [box.alias, *map(plain_text, box.lines)]
    yield f'<g class="cluster {_tone(box.tone, hue)}" data-cluster={_attribute(box.alias)}>'
    yield f"<title>{_text(chr(10).join(said))}</title>"
    yield f'<rect class="body" {_place(node)} rx="8"/>'
    yield f'<rect class="mark" x="{_n(node.x)}" y="{_n(node.y + 8)}" width="4" height="{_n(node.height - 16)}" rx="2"/>'
    y = node.middle - (ALIAS_HEIGHT + LINE_HEIGHT * len(fitted(box.lines))) / 2
    x = node.x + BOX_PADDING
    alias = _text(shortened(box.alias, ALIAS_CHARACTERS))
    yield f'<text class="alias" x="{_n(x)}" y="{_n(y + ALIAS_HEIGHT * _BASELINE)}">{alias}</text>'
    yield from _lines(fitted(box.lines), x, y + ALIAS_HEIGHT)
    yield "</g>"


def _wire(wire: ConnectingLine, hues: dict[str, str]) -> Iterator[str]:
    points = wire.points()
    end, before = points[-1], points[-2]
    way = 1 if end[0] > before[0] else -1
    points[-1] = (end[0] - way * (HEAD - 2), end[1])
    x, y = end
    head = f"M{_n(x)} {_n(y)}L{_n(x - way * HEAD)} {_n(y - 4.5)}L{_n(x - way * HEAD)} {_n(y + 4.5)}Z"
    ends = f"data-source={_attribute(wire.arrow.source)} data-target={_attribute(wire.arrow.target)}"
    yield f'<g class="wire {_classes(wire, hues)}" {ends}>'
    yield f'<path class="line" d="{_path(points)}"/>'
    yield f'<path class="head" d="{head}"/>'
    yield "</g>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return a path that bends softly wherever it goes both sideways and up or down."""
    (x, y), *others = points
    parts = [f"M{_n(x)} {_n(y)}"]
    for to_x, to_y in others:
        if x != to_x and _n(y) != _n(to_y):
            half = _n((x + to_x) / 2)
            parts.append(f"C{half} {_n(y)} {half} {_n(to_y)} {_n(to_x)} {_n(to_y)}")
        else:
            parts.append(f"L{_n(to_x)} {_n(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


def _label(wire: ConnectingLine, hues: dict[str, str]) -> Iterator[str]:
    arrow, place = wire.arrow, wire.label
    told = [f"{arrow.source} → {arrow.target} ({arrow.name})", *map(plain_text, arrow.lines)]
    yield f'<g class="flow {_classes(wire, hues)}" data-flow={_attribute(arrow.name)}>'
    yield f"<title>{_text(chr(10).join(told))}</title>"
    yield f'<rect class="label" {_place(place)} rx="6"/>'
    yield from _lines(fitted(arrow.lines), place.x + LABEL_PADDING, place.y + LABEL_PADDING / 2)
    yield "</g>"


def _lines(lines: Sequence[Line], x: float, y: float) -> Iterator[str]:
    for index, line in enumerate(lines):
        words = "".join(
            f'<tspan class="{style}">{_text(text)}</tspan>' if style else _text(text) for text, style in line
        )
        yield f'<text x="{_n(x)}" y="{_n(y + (index + _BASELINE) * LINE_HEIGHT)}">{words}</text>'


def _classes(wire: ConnectingLine, hues: dict[str, str]) -> str:
    dotted = " dotted" if wire.arrow.dotted else ""
    return _tone(wire.arrow.tone, hues[wire.arrow.source]) + dotted


def _tone(tone: str, hue: str) -> str:
    return hue if tone == "plain" else tone


def _legend_places(picture: Picture) -> list[tuple[float, float]]:
    """Return where each entry of the legend begins and how wide it is."""
    places, x = [], _MARGIN
    for kind, words in picture.legend:
        width = text_width(((words, ""),), TEXT_SIZE) + (0 if kind == "words" else _SWATCH + 8)
        places.append((x, width))
        x += width + _LEGEND_GAP / 2
    return places


def _legend(picture: Picture, places: Sequence[tuple[float, float]], y: float) -> Iterator[str]:
    if not places:
        return
    yield '<g class="legend">'
    for (kind, words), (x, _) in zip(picture.legend, places, strict=True):
        start = x if kind == "words" else x + _SWATCH + 8
        if kind != "words":
            tone = {"plain": HUES[0][0], "dotted": "absent dotted"}.get(kind, kind)
            line = f"M{_n(x)} {_n(y)}L{_n(x + _SWATCH - HEAD + 2)} {_n(y)}"
            tip = x + _SWATCH
            head = f"M{_n(tip)} {_n(y)}L{_n(tip - HEAD)} {_n(y - 4.5)}L{_n(tip - HEAD)} {_n(y + 4.5)}Z"
            yield f'<g class="{tone}"><path class="line" d="{line}"/><path class="head" d="{head}"/></g>'
        yield f'<text x="{_n(start)}" y="{_n(y + 4)}">{_text(words)}</text>'
    yield "</g>"


def _place(rect: Rect) -> str:
    return f'x="{_n(rect.x)}" y="{_n(rect.y)}" width="{_n(rect.width)}" height="{_n(rect.height)}"'


def _n(value: float) -> str:
    """Return a number as short as it can be to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(text)


def _attribute(text: str) -> str:
    return quoteattr(text)
