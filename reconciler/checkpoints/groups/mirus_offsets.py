"""Offsets as the offset tool of Mirus prints and takes them: CSV without a header, or a JSON object in each line.

Source: `MirusOffsetTool`, `OffsetInfo` and `OffsetSerDe`; the columns are connector, topic, partition and offset, and
the offset is that of the next record. A position that was reset has none.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping

from reconciler.model.base.text import json_text
from reconciler.model.offsets.committed import Position

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


def text_of(positions: Iterable[Position], connector: str, *, is_json: bool) -> str:
    """Return positions of a flow as those of a connector, by original topic; `rows_of` reads them.

    Args:
        positions: with an offset each.
        connector: its name in Mirus.
        is_json: whether each line is an object, and not of CSV.
    """
    rows = [(connector, one.topic, one.partition, one.offset) for one in positions]
    if is_json:
        return "".join(f"{json_text(dict(zip(_KEYS, row, strict=True)))}\n" for row in rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


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
