"""What every line for a terminal is made of, and the terminal: text that others wrote is shown, and orders nothing.

All printers make their lines of `Line`, and the commands print on a `Terminal`; no other module imports rich's `Text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from reconciler.model.base.text import kept_in_lines, shown

NARROW = 100
"""Columns; a terminal with fewer shows no asides."""


class Line(Text):
    """One line: of each text that it is made of, what is not printable is shown escaped, a line break too.

    Text is no markup: `[bold]` and `:smile:` are printed as they are.

    Args:
        text: what it begins with.
        style: as rich names styles.
        settings: further ones of rich's `Text`.
    """

    def __init__(self, text: str = "", style: Any = "", **settings: Any) -> None:
        super().__init__(shown(text), style, **settings)

    @classmethod
    def assemble(cls, *parts: Any, **settings: Any) -> Line:
        """Return a line of texts, lines, and pairs of a text and its style."""
        line = cls(**settings)
        for part in parts:
            line.append(*(part if isinstance(part, tuple) else (part,)))
        return line

    def append(self, text: Text | str, style: Any = None) -> Line:
        """Add text to the end."""
        super().append(shown(text) if isinstance(text, str) else text, style)
        return self


class Wrapping(Line):
    """A line that a terminal too narrow for it shows in several, broken between words and indented.

    What it only adds (`aside`) is left out below `NARROW` columns. Pipes and files get it whole, in one line.

    Args:
        text: what it begins with.
        style: as rich names styles.
        hang: columns by which all but the first of the lines are indented.
        settings: further ones of rich's `Text`.
    """

    def __init__(self, text: str = "", style: Any = "", hang: int = 4, **settings: Any) -> None:
        super().__init__(text, style, **settings)
        self._hang = hang
        self._told: int | None = None

    def aside(self, text: str) -> Wrapping:
        """Add to the end what may be left out, dim."""
        self._told = len(self)
        self.append(text, "dim")
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """Yield it for a console; the protocol is rich's."""
        if not console.is_terminal:
            yield from super().__rich_console__(console, options)
            return
        width = options.max_width
        line: Text = self if self._told is None or width >= NARROW else self[: self._told]
        hang = self._hang if self._hang * 2 <= width else 0
        indent = 0
        while cell_len(line.plain) > width - indent:
            cut = _fitting(line.plain, width - indent)
            yield Text.assemble(" " * indent, line[:cut])
            line = line[cut:]
            line = line[len(line.plain) - len(line.plain.lstrip(" ")) :]
            indent = hang
        yield Text.assemble(" " * indent, line)


def _fitting(text: str, width: int) -> int:
    """Return how many characters go into one line, at least one: up to a blank, where there is one between words."""
    most = 1
    while most < len(text) and cell_len(text[: most + 1]) <= width:
        most += 1
    begin = len(text) - len(text.lstrip(" "))
    blank = text.rfind(" ", begin, most + 1)
    return blank if blank > begin else most


class Lines(Text):
    """Lines below each other, without a line break behind the last.

    Args:
        lines: these.
    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        super().__init__()
        for number, line in enumerate(lines):
            self.append("\n" if number else "").append_text(line)


_live: list[Terminal] = []


def live_terminal() -> Terminal | None:
    """Return the terminal on which lines are shown in place just now, if any: what it prints stands above them."""
    return _live[-1] if _live else None


@contextmanager
def shown_in_place(console: Console) -> Iterator[None]:
    """Have `live_terminal` know a terminal for the length of a block."""
    if not (isinstance(console, Terminal) and console.is_terminal):
        yield
        return
    _live.append(console)
    try:
        yield
    finally:
        _live.remove(console)


class Terminal(Console):
    """A console where each `str` is one line, and on which nothing but its own styles moves or colours anything.

    Args:
        stderr: whether it is stderr, else stdout.
    """

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as rich does; text is as `Line` has it."""
        super().print(*(Line(one) if isinstance(one, str) else one for one in objects), **how)

    def status(self, status: RenderableType, **how: Any) -> Status:
        """Return what shows on a terminal that something is under way; rich would read markup there."""
        return super().status(Line(status) if isinstance(status, str) else status, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed, also of cells and bars that are not made of lines, without foreign escapes."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else kept_in_lines(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
