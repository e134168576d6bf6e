"""The colours and letters of SVG pictures, on light and dark pages.

Called by `svg`. Rules are written out twice, without variables, as some viewers know none; those know the light page.
"""

from __future__ import annotations

from collections.abc import Iterator

# One for each cluster, from the first again behind the last; the name, on light, on dark.
HUES = (
    ("hue0", "#0969da", "#58a6ff"),
    ("hue1", "#bc4c00", "#f0883e"),
    ("hue2", "#1a7f6b", "#3fc9a8"),
    ("hue3", "#8250df", "#bc8cff"),
    ("hue4", "#9a6700", "#d9a520"),
    ("hue5", "#bf3989", "#f778ba"),
    ("hue6", "#3b5563", "#93b4c4"),
    ("hue7", "#57811b", "#94c94a"),
    ("hue8", "#c2185b", "#ff8fb1"),
    ("hue9", "#00788a", "#4dd0e1"),
    ("hue10", "#7a4b2a", "#c99a75"),
    ("hue11", "#3949ab", "#9fa8ff"),
)
# The line's colour and the ground of boxes and labels, on light and on dark.
_TONES = (
    ("add", "#1a7f37", "#dafbe1", "#3fb950", "#10301b"),
    ("change", "#9a6700", "#fff4d1", "#d29922", "#342a10"),
    ("delete", "#cf222e", "#ffebe9", "#ff7b72", "#3a1a1c"),
    ("same", "#8c959f", "#f3f5f7", "#7d8590", "#1d232b"),
    ("absent", "#b4bcc5", "#ffffff", "#4c545e", "#12171e"),
)
_SANS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif"
_MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace"

_LETTERS = f"""\
.anabranch text {{ font-family: {_SANS}; font-size: 11.5px; white-space: pre; }}
.anabranch .title {{ font-size: 20px; font-weight: 650; }}
.anabranch .subtitle {{ font-size: 13px; }}
.anabranch .alias {{ font-size: 14px; font-weight: 650; }}
.anabranch .panel text {{ font-size: 12px; font-weight: 600; letter-spacing: 0.02em; }}
.anabranch .code {{ font-family: {_MONO}; font-size: 11px; }}
.anabranch .strong, .anabranch tspan.add, .anabranch tspan.change, .anabranch tspan.delete {{ font-weight: 650; }}
.anabranch .line {{ fill: none; stroke-width: 1.8; }}
.anabranch .same .line, .anabranch .absent .line {{ stroke-width: 1.3; }}
.anabranch .dotted .line {{ stroke-dasharray: 2 5; stroke-linecap: round; }}
.anabranch .dotted .label {{ stroke-dasharray: 3 3; }}
.anabranch .panel rect, .anabranch .body {{ stroke-width: 1.2; }}
"""


def stylesheet() -> str:
    """Return the rules, with a newline at the end."""
    light = "".join(f"{rule}\n" for rule in _rules(0))
    dark = "".join(f"  {rule}\n" for rule in _rules(1))
    return f"{_LETTERS}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _rules(page: int) -> Iterator[str]:
    """Yield the rules of one page: 0 is light, 1 is dark."""
    ground, panel, edge, words, quiet, body = (
        ("#ffffff", "#f6f8fa", "#d4dae1", "#1f2328", "#59636e", "#ffffff"),
        ("#0d1117", "#151b23", "#30363f", "#e8edf3", "#9aa4af", "#1b222c"),
    )[page]
    yield f".anabranch .page {{ fill: {ground}; }}"
    yield f".anabranch text {{ fill: {words}; }}"
    yield f".anabranch .dim, .anabranch .subtitle, .anabranch .panel text, .anabranch .legend text {{ fill: {quiet}; }}"
    yield f".anabranch .panel rect {{ fill: {panel}; stroke: {edge}; }}"
    yield f".anabranch .body {{ fill: {body}; stroke: {edge}; }}"
    yield f".anabranch .label {{ fill: {ground}; stroke: {edge}; }}"
    for hue in HUES:
        yield from _lined(hue[0], hue[1 + page])
    for tone in _TONES:
        name, colour, fill = tone[0], tone[1 + 2 * page], tone[2 + 2 * page]
        yield from _lined(name, colour)
        yield f".anabranch .{name} .body, .anabranch .{name} .label {{ fill: {fill}; stroke: {colour}; }}"
        if name in ("add", "change", "delete"):
            yield f".anabranch tspan.{name} {{ fill: {colour}; }}"


def _lined(name: str, colour: str) -> Iterator[str]:
    yield f".anabranch .{name} .line {{ stroke: {colour}; }}"
    yield f".anabranch .{name} .head, .anabranch .{name} .mark {{ fill: {colour}; }}"
    yield f".anabranch .{name} .label {{ stroke: {colour}; }}"
