"""Transcripts of pages: commands with what they print, and whether a real output is like it.

Figures, times, digests, users, addresses and folders may differ, and the columns that they widen. A line of three dots
stands for any lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DOTS = "..."
_DIFFERS = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "DIGEST"),
    (re.compile(r"\b[\w.-]+@[\w.-]+"), "USER"),
    (re.compile(r"(?<!\S)/\S*/(?=[\w-]+\.yaml)"), "FOLDER/"),
    (re.compile(r"(?<![\w.-])-?\d[\d,.]*(?: (?:s|ms|min|h)\b)?(?![\w-])"), "N"),
    (re.compile(r"(?<=\s)-(?=\s|$)"), "N"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Typed:
    """A command of a page.

    Attributes:
        line: as it is typed.
        printed: what the page shows of it; empty where it shows nothing.
    """

    line: str
    printed: tuple[str, ...] = ()


def transcript(page: str) -> list[Typed]:
    """Return the commands of a page's blocks `console` and `sh`, in their order."""
    found = []
    for kind, text in _BLOCK.findall(page):
        lines = text.splitlines()
        if kind == "sh":
            found += [Typed(line) for line in lines]
        else:
            assert lines[0].startswith("$ "), lines[0]
            found.append(Typed(lines[0][2:], tuple(lines[1:])))
    return found


def unlike(expected: tuple[str, ...], printed: str) -> str:
    """Return the first line that a page shows and an output does not have; empty where the output is like it."""
    lines = [plain(line) for line in printed.splitlines()]
    at, is_any = 0, False
    for line in expected:
        if line == _DOTS:
            is_any = True
            continue
        wanted = plain(line)
        found = next((where for where in range(at, len(lines)) if lines[where] == wanted), None) if is_any else at
        if found is None or found >= len(lines) or lines[found] != wanted:
            return line
        at, is_any = found + 1, False
    return "" if is_any or at == len(lines) else f"the end, before {lines[at]}"


def plain(line: str) -> str:
    """Return a line without what is of the moment."""
    for pattern, word in _DIFFERS:
        line = pattern.sub(word, line)
    return line.strip()
