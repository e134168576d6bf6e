"""Rows as lines whose columns line up, the same on a terminal and in a pipe: nothing is cut or wrapped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text

_GAP = 2


def aligned(
    titles: Sequence[str], rows: Sequence[Sequence[str | Text]], right: Collection[str] = (), indent: int = 0
) -> list[Text]:
    """Return a line of titles and one for each row, or nothing without rows; a column without any cell is left out.

    Args:
        titles: of the columns.
        rows: a cell for each title.
        right: titles of the columns that stand to the right, as numbers do.
        indent: spaces before the first column.
    """
    shown = [column for column in range(len(titles)) if any(len(row[column]) for row in rows)]
    cells = [[Text(title, style="bold") for title in titles], *rows]
    widths = {column: max(len(row[column]) for row in cells) for column in shown}
    lines = []
    for row in cells if rows else ():
        line = Text(" " * indent)
        for column in shown:
            space, cell = " " * (widths[column] - len(row[column])), row[column]
            line.append(" " * _GAP if column != shown[0] else "")
            first, second = (space, cell) if titles[column] in right else (cell, space)
            line.append(first).append(second)
        line.rstrip()
        lines.append(line)
    return lines
