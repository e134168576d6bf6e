"""Pictures of terminals: what a command has drawn, as SVG that loads nothing."""

from __future__ import annotations

import io
import re

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def picture(drawn: str, title: str, columns: int) -> str:
    """Return what is on a terminal as SVG.

    Args:
        drawn: with escapes of colours, without others.
        title: shown above it.
        columns: of the terminal.
    """
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(drawn), soft_wrap=True)
    return console.export_svg(title=title, code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="terminal")
