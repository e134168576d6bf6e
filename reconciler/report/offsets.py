"""Offsets that groups have committed, and positions of flows, as a table, as CSV and as JSON; and what moves them.

CSV and JSON are what `offsets import` reads; docs/reference/offsets.md describes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.model.base.text import csv_text
from reconciler.model.offsets.committed import COLUMNS, Cells, Committed, Kind, Move, MovedOffset, Position, owners
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line
from reconciler.report.text.measures import UNKNOWN
from reconciler.report.text.words import counted

Rows = Sequence[Committed] | Sequence[Position]

VERSION = 1
_WORDS = ("group", "flow", "topic", "metadata", "remote", "offsets")


def offsets_csv(kind: Kind, rows: Rows) -> str:
    """Return a header and a line for each row; unknown values are empty."""
    return csv_text(COLUMNS[kind], (tuple(row.cells().values()) for row in rows))


def offsets_json(rows: Rows) -> dict[str, Any]:
    """Return the rows as JSON types: `{"version": 1, "offsets": [{"group", "topic", "partition", "offset", …}, …]}`."""
    return {"version": VERSION, "offsets": [row.cells() for row in rows]}


def offsets_lines(kind: Kind, rows: Rows) -> list[Line]:
    """Return a table; the notes of flows' positions, which are the replicator's own, are left out."""
    titles = [name for name in COLUMNS[kind] if (kind, name) != ("flow", "metadata")]
    cells = [[_cell(title, found) for title in titles] for found in (row.cells() for row in rows)]
    shown = [title.replace("_", " ") for title in titles]
    right = [title for title in shown if title not in _WORDS]
    return aligned(shown, cells, right=right) or [Line("no offsets")]


def _cell(title: str, cells: Cells) -> str:
    value = cells[title]
    if title == "leader_epoch":
        # Most commit none: then there is no such column.
        return "" if value is None else str(value)
    return UNKNOWN if value is None else str(value)


def moves_lines(kind: Kind, moves: Sequence[Move]) -> list[Line]:
    """Return what would be written: from where to where, and what that means for a copy."""
    rows: list[list[str | Line]] = [
        [
            move.owner,
            move.topic,
            str(move.partition),
            "none" if move.before is None else str(move.before),
            str(move.after),
            _remark(kind, move),
        ]
        for move in moves
    ]
    return aligned((kind, "topic", "partition", "from", "to", ""), rows, right=("partition", "from", "to"))


def _remark(kind: Kind, move: Move) -> str:
    said = []
    if move.is_clamped:
        said.append(f"clamped: {move.asked} is outside of the log")
    if move.before == move.after:
        said.append("as it is")
    elif move.before is not None:
        by = abs(move.after - move.before)
        again, never = ("copied again", "never copied") if kind == "flow" else ("read again", "passed over")
        what = f"{counted(by, 'offset')} {again if move.after < move.before else never}"
        said.append(what)
    return "; ".join(said)


def kept_lines(kind: Kind, kept: Sequence[Move]) -> list[Line]:
    """Return which offsets are left as they are, as their owners stand further (`--only-forward`)."""
    return [
        Line(f"{kind} {one.owner}: {one.topic}/{one.partition} stays at {one.before}, and not at {one.after}", "yellow")
        for one in kept
    ]


def moved_line(kind: Kind, moves: Sequence[Move], moved: MovedOffset) -> str:
    """Return in one line what became of moves."""
    if not moved.done:
        return "nothing was written"
    whose = counted(len(owners(moved.done)), kind)
    done = f"wrote {counted(len(moved.done), 'offset')} of {whose}"
    left = len(moves) - len(moved.done)
    return f"{done}; {left} not written" if left else done


def moves_json(kind: Kind, moves: Sequence[Move], moved: MovedOffset | None) -> dict[str, Any]:
    """Return moves as JSON types, each with whether it was written.

    Args:
        kind: whose offsets.
        moves: what would be written.
        moved: what became of it; None where nothing was tried (`--dry-run`).
    """
    done = set(moved.done) if moved else set()
    return {
        "dryRun": moved is None,
        "moves": [{**move.to_json(kind), "written": move in done} for move in moves],
        "problems": [
            {"code": one.code, "where": one.where, "message": one.message, "remedy": one.remedy}
            for one in (moved.problems if moved else ())
        ],
    }
