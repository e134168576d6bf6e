"""Offsets in files, as `offsets export` writes them: CSV with a header, or JSON. No cluster is contacted.

All errors of a file are found at once, each with its line. Pure but for reading the file.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecoder
from pathlib import Path
from typing import Any, get_args

from reconciler.checkpoints.groups import mirus_offsets
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.files import UnreadableFile, parse_json, read_text
from reconciler.model.base.text import LONGEST_CELL, from_cell
from reconciler.model.offsets.committed import COLUMNS, Asked, Kind

VERSION = 1
LARGEST_OFFSET = 2**63 - 1
_LARGEST_PARTITION = 2**31 - 1
# Leading zeros are accepted; thousands of digits Python would refuse to read.
_LONGEST_NUMBER = 100
# The characters of a wrong value that a message shows.
_LONGEST_SHOWN = 200
_KINDS: tuple[Kind, ...] = get_args(Kind)
_NEEDED = ("topic", "partition", "offset")
_TEXTS = (*_KINDS, "topic", "metadata")
_SHAPE = '{"version": 1, "offsets": [{"group": …, "topic": …, "partition": …, "offset": …}, …]}'
_WHITE = " \t\r\n"

Row = tuple[int, Mapping[str, object]]


@dataclass(frozen=True)
class OffsetFile:
    """The moves in a file.

    Attributes:
        kind: whose offsets.
        asked: one for each row that can be understood.
        problems: what is wrong with the others.
    """

    kind: Kind
    asked: tuple[Asked, ...]
    problems: tuple[Problem, ...]


def read_file(path: Path, *, of_mirus: bool = False) -> OffsetFile:
    """Read a file: JSON where its name ends with `.json`, else CSV.

    Args:
        path: of the file.
        of_mirus: whether Mirus' offset tool has printed it.

    Raises:
        DeclaredInputError: AB620, the file cannot be read, or is not laid out as an offset file is.
    """
    try:
        # Unchanged: metadata of groups may hold line breaks of all kinds.
        text = read_text(path)
    except OSError as error:
        raise _unusable(path, 0, f"cannot be read: {error.strerror}", "name a file that is there") from None
    except UnreadableFile as error:
        raise _unusable(path, 0, str(error), "write it with `anabranch offsets export`") from None
    if of_mirus:
        if (printed := mirus_offsets.rows_of(text)) is None:
            message = "is not what Mirus' offset tool prints: connector, topic, partition and offset in each line"
            raise _unusable(path, 1, message, "print it with mirus-offset-tool.sh --describe, as CSV or JSON")
        return _understood(path, "flow", printed)
    rows, columns = _json_rows(path, text) if path.suffix.lower() == ".json" else _csv_rows(path, text)
    kind = _kind(path, columns)
    return _understood(path, kind, rows)


def _understood(path: Path, kind: Kind, rows: list[Row]) -> OffsetFile:
    asked: list[Asked] = []
    problems: list[Problem] = []
    first: dict[tuple[str, str, int], int] = {}
    for line, row in rows:
        where = f"{path}:{line}"
        wrong = list(_wrong(kind, row))
        if wrong:
            problems += [Problem("AB621", where, message, remedy) for message, remedy in wrong]
            continue
        one = Asked(
            owner=str(row[kind]),
            topic=str(row["topic"]),
            partition=int(str(row["partition"])),
            offset=int(str(row["offset"])),
            metadata=str(row.get("metadata") or ""),
            where=where,
        )
        key = (one.owner, *one.log)
        if key in first:
            message = (
                f"{kind} {one.owner}, topic {one.topic}, partition {one.partition} stands in line {first[key]}, too"
            )
            problems.append(Problem("AB622", where, message, "leave one of the two"))
            continue
        first[key] = line
        asked.append(one)
    return OffsetFile(kind, tuple(asked), tuple(problems))


def _wrong(kind: Kind, row: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the values of one row, each with what to do."""
    if None in row:
        yield "expected as many values as there are columns; found more", "put text with commas in double quotes"
    for name in (kind, "topic"):
        value = row.get(name)
        # Kafka allows a group with an empty name.
        if not isinstance(value, str) or not (value or name == "group"):
            yield f"expected a {name}; found {_found(value)}", f"name the {name}"
        elif not _is_text(value):
            yield f"expected a {name}; found {_found(value)}, which is no Unicode text", f"name the {name}"
    for name, largest in (("partition", _LARGEST_PARTITION), ("offset", LARGEST_OFFSET)):
        if (message := _wrong_number(row.get(name), largest)) is not None:
            yield f"{name}: {message}", f"write a whole number from 0 to {largest}"
    metadata = row.get("metadata")
    if not isinstance(metadata, str | None):
        yield f"metadata: expected text; found {_found(metadata)}", "write text, or leave it out"
    elif metadata is not None and not _is_text(metadata):
        yield f"metadata: expected text; found {_found(metadata)}, which is no Unicode text", "write text"


def _is_text(value: str) -> bool:
    """Return whether a string can be encoded: JSON can hold lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wrong_number(value: object, largest: int) -> str | None:
    """Return the error of a number as CSV or JSON holds it; None for a right one."""
    if isinstance(value, str):
        if not (value.removeprefix("-").isdecimal() and value.isascii()):
            return f"expected a whole number; found {_found(value)}"
        if len(value) > _LONGEST_NUMBER:
            return f"expected at most {largest}; found {len(value)} digits"
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return f"expected a whole number; found {_found(value)}"
    if number < 0:
        return f"expected no negative number; found {number}"
    return f"expected at most {largest}; found {number}" if number > largest else None


def _found(value: object) -> str:
    if value in (None, ""):
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    text = text if _is_text(text) else json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _kind(path: Path, columns: Mapping[str, int]) -> Kind:
    """Return whose offsets a file holds, by its columns with the line that each is first named in.

    Raises:
        DeclaredInputError: AB620, columns are missing, or not known.
    """
    line = min(columns.values(), default=1)
    named = [kind for kind in _KINDS if kind in columns]
    if len(named) != 1:
        found = "both" if named else "neither"
        message = f"expected a column group, or a column flow; found {found} in {', '.join(columns) or 'no columns'}"
        raise _unusable(path, line, message, f"begin with {','.join(COLUMNS['group'][:4])}")
    kind = named[0]
    problems = [
        Problem("AB620", f"{path}:{line}", f"expected a column {name}; found {', '.join(columns)}", f"add {name}")
        for name in _NEEDED
        if name not in columns
    ]
    problems += [
        Problem("AB620", f"{path}:{at}", f"column {_found(name)} is not known", f"known are {', '.join(COLUMNS[kind])}")
        for name, at in columns.items()
        if name not in COLUMNS[kind]
    ]
    if problems:
        raise DeclaredInputError(problems)
    return kind


def _unusable(path: Path, line: int, message: str, remedy: str) -> DeclaredInputError:
    return DeclaredInputError(Problem("AB620", f"{path}:{line}" if line else str(path), message, remedy))


# --- CSV -------------------------------------------------------------------------------------------------------------


def _csv_rows(path: Path, text: str) -> tuple[list[Row], dict[str, int]]:
    """Return the rows with their lines, and the columns."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    columns: list[str] = []
    try:
        begins = 1
        with long_cells():
            for values in lines:
                if values and not columns:
                    columns = [value.strip() for value in values]
                    if len(set(columns)) < len(columns):
                        raise _unusable(path, begins, "a column is named twice", "name each once")
                elif values:
                    rows.append((begins, _row(columns, values)))
                begins = lines.line_num + 1
    except csv.Error as error:
        raise _unusable(
            path, lines.line_num, f"is not CSV: {error}", "write it with `anabranch offsets export`"
        ) from None
    return rows, dict.fromkeys(columns, 1)


@contextmanager
def long_cells() -> Iterator[None]:
    """Let Python's reader of CSV take cells as long as `csv_text` may write them."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _row(columns: list[str], values: list[str]) -> Mapping[str, object]:
    row: dict[Any, object] = {name: _value(name, cell) for name, cell in zip(columns, values, strict=False)}
    return row if len(values) <= len(columns) else row | {None: values[len(columns) :]}


def _value(column: str, cell: str) -> str | None:
    """Return what a cell holds; an empty one is nothing, and no empty name."""
    return (from_cell(cell) if cell else None) if column in _TEXTS else cell


# --- JSON ------------------------------------------------------------------------------------------------------------


def _json_rows(path: Path, text: str) -> tuple[list[Row], dict[str, int]]:
    """Return the rows with their lines, and the columns that any of them has."""
    try:
        # Wrong numbers are reported later, with their lines.
        value = parse_json(text, finite=False)
    except UnreadableFile as error:
        raise _unusable(path, error.line, str(error), f"write {_SHAPE}") from None
    if not isinstance(value, dict) or value.get("version") != VERSION or not isinstance(value.get("offsets"), list):
        raise _unusable(path, 1, f"is no file of offsets of version {VERSION}", f"write {_SHAPE}")
    rows: list[Row] = []
    columns: dict[str, int] = {}
    for line, row in _elements(text):
        if not isinstance(row, dict):
            raise _unusable(path, line, f"expected an object; found {_found(row)}", f"write {_SHAPE}")
        rows.append((line, row))
        for name in row:
            columns.setdefault(name, line)
    return rows, columns if rows else dict.fromkeys(COLUMNS["group"], 1)


def _elements(text: str) -> Iterator[tuple[int, object]]:
    """Yield each element of the last `offsets` of a JSON object with its line; the text is known to hold one."""
    decoder, places = JSONDecoder(), list[tuple[int, object]]()
    at = _behind_white(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        at = _behind_white(text, _behind_white(text, at) + 1)
        if name == "offsets" and text[at] == "[":
            places, at = _listed(text, at, decoder)
        else:
            _, at = decoder.raw_decode(text, at)
        at = _behind_comma(text, at)
    yield from places


def _listed(text: str, at: int, decoder: JSONDecoder) -> tuple[list[tuple[int, object]], int]:
    """Return the elements of the list that begins at a place, with their lines, and the place behind it."""
    found: list[tuple[int, object]] = []
    line, counted = 1, 0
    at = _behind_white(text, at + 1)
    while text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        value, at = decoder.raw_decode(text, at)
        found.append((line, value))
        at = _behind_comma(text, at)
    return found, at + 1


def _behind_comma(text: str, at: int) -> int:
    at = _behind_white(text, at)
    return _behind_white(text, at + 1) if text[at] == "," else at


def _behind_white(text: str, at: int) -> int:
    while text[at] in _WHITE:
        at += 1
    return at
