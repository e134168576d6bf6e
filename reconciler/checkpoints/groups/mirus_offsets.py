"""Offsets as the offset tool of Mirus prints them: CSV without a header, or a JSON object in each line.

Source: `MirusOffsetTool`, `OffsetInfo` and `OffsetSerDe`; the columns are connector, topic, partition and offset, and
the offset is that of the next record. A position that was reset has none.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping

_COLUMNS = ("flow", "topic", "partition", "offset")
_KEYS = ("connectorId", *_COLUMNS[1:])

Row = tuple[int, Mapping[str, object]]


def rows_of(text: str) -> list[Row] | None:
    """Return the rows of a file with their lines, each connector as a flow; None where Mirus has not printed it.

    Args:
        text: of the file.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        return None
    read = _object if lines[0][1].lstrip().startswith("{") else _cells
    rows = [(number, row) for number, line in lines if (row := read(line)) is not None]
    # A file of ours begins with a header, or is one object.
    return [row for row in rows if row[1]["offset"] not in (None, "")] if len(rows) == len(lines) else None


def _object(line: str) -> Mapping[str, object] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != set(_KEYS):
        return None
    return dict(zip(_COLUMNS, (found[key] for key in _KEYS), strict=True))


def _cells(line: str) -> Mapping[str, object] | None:
    try:
        (cells,) = csv.reader(io.StringIO(line), strict=True)
    except (csv.Error, ValueError):
        return None
    is_ours = len(cells) == len(_COLUMNS) and cells[2].isdecimal() and (not cells[3] or cells[3].isdecimal())
    return dict(zip(_COLUMNS, cells, strict=True)) if is_ours else None
