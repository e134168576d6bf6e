"""Pictures as Mermaid flowcharts, which pull requests and wikis draw.

Pure. `graph` and `plan` call it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reconciler.report.pictures.picture import Arrow, Line, Picture, Tone, printable

# Quotes end a label, # begins an entity, and * is Markdown to some versions of Mermaid.
_UNSAFE_IN_LABELS = re.compile(r"[^A-Za-z0-9 _.,:/()\[\]?+…-]")

# Fill, line and text: read on the light and on the dark page alike, as the text brings its ground with it.
_BOXES: dict[Tone, tuple[str, str, str]] = {
    "add": ("#dafbe1", "#1a7f37", "#0b4a1c"),
    "change": ("#fff4d1", "#9a6700", "#5a3c00"),
    "delete": ("#ffebe9", "#cf222e", "#82071e"),
    "same": ("#eaeef2", "#8c959f", "#424a53"),
    "absent": ("#f6f8fa", "#c2c8cf", "#6e7781"),
}


def mermaid(picture: Picture) -> str:
    """Return a flowchart: a subgraph for each data centre, an arrow for each flow, dotted where it does not run.

    A plan's tones are classes of boxes and styles of links.
    """
    picture = printable(picture)
    lines = ["flowchart LR"]
    ids = {box.alias: f"c{index}" for index, box in enumerate(picture.boxes)}
    toned = any(box.tone != "plain" for box in picture.boxes)
    for index, (group, boxes) in enumerate(picture.groups.items()):
        lines.append(f'  subgraph d{index}["{_label(group)}"]')
        for box in boxes:
            # Addresses are for the larger picture.
            said = [box.alias, *(map(plain_text, box.lines) if toned else ())]
            lines.append(f'    {ids[box.alias]}["{_rows(said)}"]')
        lines.append("  end")
    for arrow in picture.arrows:
        line = "-.->" if arrow.dotted else "-->"
        lines.append(f'  {ids[arrow.source]} {line}|"{_rows(_told(arrow))}"| {ids[arrow.target]}')
    if toned:
        lines += _styles(picture, ids)
    return "\n".join(lines) + "\n"


def plain_text(line: Line) -> str:
    """Return a line's words alone."""
    return "".join(text for text, _ in line)


def _told(arrow: Arrow) -> list[str]:
    return [plain_text(line) for line in arrow.lines] or [arrow.name]


def _styles(picture: Picture, ids: dict[str, str]) -> Iterator[str]:
    for tone, (fill, stroke, text) in _BOXES.items():
        boxes = [ids[box.alias] for box in picture.boxes if box.tone == tone]
        links = [str(index) for index, arrow in enumerate(picture.arrows) if arrow.tone == tone]
        if boxes:
            yield f"  classDef {tone} fill:{fill},stroke:{stroke},color:{text}"
            yield f"  class {','.join(boxes)} {tone}"
        if links:
            width = "2px" if tone in ("add", "change", "delete") else "1px"
            yield f"  linkStyle {','.join(links)} stroke:{stroke},stroke-width:{width}"


def _rows(texts: Sequence[str]) -> str:
    return "<br/>".join(_label(text) for text in texts)


def _label(text: str) -> str:
    """Return text that is safe between a Mermaid label's quotes."""
    return _UNSAFE_IN_LABELS.sub(lambda found: f"#{ord(found[0])};", text)
