"""What every line for a terminal is made of, and the terminal: text that others wrote is shown, and orders nothing.

All printers make their lines of `Line`, and the commands print on a `Terminal`; no other module imports rich's `Text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from reconciler.model.base.text import kept_in_lines, shown

NARROW = 100
"""Columns; a terminal with fewer shows no asides."""
_HANG = 4


class Line(Text):
    """One line: of each text that it is made of, what is not printable is shown escaped, a line break too.

    Text is no markup: `[bold]` and `:smile:` are printed as they are. A terminal too narrow for it shows it in several
    lines, broken between words and indented; there, what it only adds (`aside`) is left out below `NARROW` columns.
    Pipes and files get it whole.

    Args:
        text: what it begins with.
        style: as rich names styles.
        hang: columns by which all but the first of several lines are indented; by default 4 more than the line itself.
        settings: further ones of rich's `Text`.
    """

    def __init__(self, text: str = "", style: Any = "", hang: int | None = None, **settings: Any) -> None:
        super().__init__(shown(text), style, **settings)
        self._hang = hang
        self._told: int | None = None

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

    def aside(self, text: str) -> Line:
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
        if cell_len(line.plain) <= width:
            yield from Text.__rich_console__(line, console, options)
            return
        begin = len(line.plain) - len(line.plain.lstrip(" "))
        hang = begin + _HANG if self._hang is None else self._hang
        hang = hang if hang * 2 <= width else 0
        indent = 0
        while cell_len(line.plain) > width - indent:
            cut = _fitting(line.plain, width - indent, width - hang)
            yield Text.assemble(" " * indent, line[:cut])
            line = line[cut:]
            line = line[len(line.plain) - len(line.plain.lstrip(" ")) :]
            indent = hang
        yield Text.assemble(" " * indent, line)


def _fitting(text: str, width: int, following: int) -> int:
    """Return how many characters go into one line, at least one.

    Up to a gap between columns where what follows has room in the next line as a whole; else up to a blank, where there
    is one between words.

    Args:
        text: more than goes into the line.
        width: columns of the line.
        following: columns of the next one.
    """
    most = 1
    while most < len(text) and cell_len(text[: most + 1]) <= width:
        most += 1
    begin = len(text) - len(text.lstrip(" "))
    gap = text.rfind("  ", begin, most + 1)
    if gap > begin and cell_len(text[gap:].strip()) <= following:
        return len(text[:gap].rstrip(" "))
    blank = text.rfind(" ", begin, most + 1)
    return blank if blank > begin else most


class Lines(Text):
    """Lines below each other, without a line break behind the last.

    Args:
        lines: these.
    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        super().__init__()
        self._lines = list(lines)
        for number, line in enumerate(self._lines):
            self.append("\n" if number else "").append_text(line)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """Yield each line for a console, which wraps it by itself; the protocol is rich's."""
        yield from self._lines if console.is_terminal else super().__rich_console__(console, options)


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
        lines = [Line(one) if isinstance(one, str) else one for one in objects]
        # rich joins texts, and prints them without asking each how it is shown.
        is_one = len(lines) == 1 and isinstance(lines[0], (Line, Lines)) and self.is_terminal and "end" not in how
        super().print(*([Group(*lines)] if is_one else lines), **how)

    def status(self, status: RenderableType, **how: Any) -> Status:
        """Return what shows on a terminal that something is under way; rich would read markup there."""
        return super().status(Line(status) if isinstance(status, str) else status, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed, also of cells and bars that are not made of lines, without foreign escapes."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else kept_in_lines(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
