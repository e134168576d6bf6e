"""Rows as lines whose columns line up, the same on a terminal and in a pipe: nothing is wrapped, nor cut to fit one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.model.base.text import shown
from reconciler.report.text.line import Line

_GAP = 2
WIDEST = 1_000
"""Characters; no cell shows more, as all others of its column are as wide."""


def aligned(
    titles: Sequence[str], rows: Sequence[Sequence[str | Line]], right: Collection[str] = (), indent: int = 0
) -> list[Line]:
    """Return a line of titles and one for each row, or nothing without rows; a column without any cell is left out.

    Args:
        titles: of the columns.
        rows: a cell for each title.
        right: titles of the columns that stand to the right, as numbers do.
        indent: spaces before the first column.
    """
    filled = [column for column in range(len(titles)) if any(len(row[column]) for row in rows)]
    cells = [[Line(title, style="bold") for title in titles], *(list(map(_cell, row)) for row in rows)]
    widths = {column: max(len(row[column]) for row in cells) for column in filled}
    lines = []
    for row in cells if rows else ():
        line = Line(" " * indent)
        for column in filled:
            space, cell = " " * (widths[column] - len(row[column])), row[column]
            line.append(" " * _GAP if column != filled[0] else "")
            first, second = (space, cell) if titles[column] in right else (cell, space)
            line.append(first).append(second)
        line.rstrip()
        lines.append(line)
    return lines


def _cell(cell: str | Line) -> Line:
    return Line(shown(cell, WIDEST)) if isinstance(cell, str) else cell
