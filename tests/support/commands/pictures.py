"""What commands draw on a terminal, and pictures of that: SVG that loads nothing."""

from __future__ import annotations

import html
import io
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)

_TEXT = re.compile(r"<text [^>]*\by=\"([\d.]+)\"[^>]*>(.*?)</text>", re.DOTALL)
SECONDS = 300.0
PICTURES = os.environ.get("ANABRANCH_TEST_PICTURES", "")
"""A folder in which tests keep pictures, to be looked at; `make pictures` makes those of the documentation."""


def drawn_by(folder: Path, arguments: Sequence[str], columns: int, **environment: str) -> str:
    """Return what a command draws on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (60, columns))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler.cli.main", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=known | {"TERM": "xterm-256color"} | environment,
    )
    os.close(theirs)
    drawn, deadline = b"", time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            drawn += os.read(ours, 65_536)
        except OSError:
            # The other end is closed: the command has ended.
            break
    os.close(ours)
    assert process.wait(SECONDS) in (0, 1), drawn
    return drawn.decode().replace("\r\n", "\n")


def picture(drawn: str, title: str, columns: int) -> str:
    """Return what is on a terminal as SVG.

    Args:
        drawn: as `drawn_by` returns it.
        title: shown above it.
        columns: of the terminal.
    """
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(_coloured(drawn)), soft_wrap=True)
    return console.export_svg(title=title, code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="terminal")


def text_of(svg: str) -> str:
    """Return the lines of a picture, without its title."""
    lines: dict[str, str] = {}
    for y, words in _TEXT.findall(svg.partition('<g class="terminal-matrix">')[2]):
        lines[y] = lines.get(y, "") + html.unescape(words).replace("\xa0", " ").strip("\n")
    return "\n".join(lines.values())


def _coloured(drawn: str) -> str:
    """Return what is left on the screen with its colours, without the spinner."""
    orders = re.sub(r"\x1b\[[?\d;]*[A-LN-Za-ln-z]", "", drawn)
    parts = re.split(r"\r|\n", orders)
    return "\n".join(one for one in parts if not re.match(r"(?:\x1b\[[\d;]*m)*[\u2800-\u28ff]", one)).strip("\n")
