"""Text that others wrote, shown and written so that it stays text.

Names of principals and groups, errors of brokers, names of users: all of it may hold whatever a client of some cluster
has chosen, such as terminal escapes, line breaks, or letters that turn the order of others around. Every printer passes
it through here. Pure, of the standard library alone: all rooms may use it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence

LONGEST = 8_000
"""Characters; `shown` gives no more. Kafka allows names of 32,767 bytes, and errors of any length."""

LONGEST_CELL = 6 * 32_767 + 2
"""Characters of a cell of CSV that holds a name of Kafka, all of it escaped; Python's reader allows fewer by itself."""

# Letters to Unicode, so printable to Python, that nevertheless take no place or an empty one.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")
# Where a cell begins so, a spreadsheet reads a formula (OWASP, "CSV Injection"); the last four are the wide forms.
_FORMULA = re.compile("\\s*[=+@\uff1d\uff0b\uff0d\uff20-]")
_QUOTED = re.compile('[,;"]')
_REST = "… ({:,} more characters)"


def utc(seconds: float) -> str:
    """Return a time in seconds since 1970 as messages have it: `2026-11-23 04:00:00 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def shown(text: str, most: int = LONGEST) -> str:
    r"""Return text as it may be printed in the midst of one line: printable characters alone.

    A text that is printable is returned as it is, so what was shown may be shown again. In any other one, what is not
    printable is escaped as in a Python string (`\n`, `\x1b`, `\u202e`, `\ud800`), and so is the backslash: two texts
    with something to escape are not shown alike, as long as they are shown whole. Not printable is what Unicode calls
    control, format, surrogate, private or unassigned, each separator but the space, and letters that cannot be seen.

    Args:
        text: any, also with halves of surrogate pairs.
        most: characters of the result, at least 60; of a longer one the beginning is shown, and how much is left out.
    """
    plain = _is_plain(text)
    if plain and len(text) <= most:
        return text
    # None is shorter when it is escaped.
    pieces = list(text[:most]) if plain else ["\\\\" if char == "\\" else _escaped(char) for char in text[:most]]
    if len(text) <= most and sum(map(len, pieces)) <= most:
        return "".join(pieces)
    room, kept = most - len(_REST.format(len(text))), 0
    for piece in pieces:
        if len(piece) > room:
            break
        room, kept = room - len(piece), kept + 1
    return "".join(pieces[:kept]) + _REST.format(len(text) - kept)


def kept_in_lines(text: str) -> str:
    """Return text with the line breaks that it has, and all else that is not printable escaped as `shown` does.

    For what was put together already: the last thing before a terminal.
    """
    return _by_line(text, _escaped)


def json_text(value: object, indent: int | None = None) -> str:
    r"""Return a value as JSON text that may be printed: what is not printable in strings is escaped (`\u001b`).

    It is read as the same value. A half of a surrogate pair, which UTF-8 cannot have, is written as well.

    Args:
        value: of JSON types.
        indent: spaces for each level; None for one line.
    """
    return _by_line(json.dumps(value, indent=indent, ensure_ascii=False), _json_escaped)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str | int | None]]) -> str:
    """Return rows as CSV with a header, each in one line; None is an empty cell, and text is as `as_cell` has it.

    The first column is what rows are of: an empty name there is the JSON string `""`. What a spreadsheet might take
    for a separator stands in quotes as well.
    """
    lines = [",".join(columns)]
    for first, *others in rows:
        lines.append(",".join([_quoted('""') if first == "" else _cell(first), *map(_cell, others)]))
    return "".join(f"{line}\n" for line in lines)


def as_cell(text: str) -> str:
    r"""Return text as a cell of CSV that is one line, and that no spreadsheet takes for a formula.

    That is the text itself, or, where it begins as a formula does (`=`, `+`, `-`, `@`), or with a double quote, or is
    not printable, the text as a JSON string in its quotes: `"=cmd"`, `"a\u001bb"`. `from_cell` returns the text.
    """
    if _is_plain(text) and not text.startswith('"') and not _FORMULA.match(text):
        return text
    return json_text(text)


def from_cell(cell: str) -> str:
    """Return the text that `as_cell` has written; a cell that is no JSON string is the text itself."""
    if not cell.startswith('"'):
        return cell
    try:
        return str(json.loads(cell))
    except ValueError:
        return cell


def _cell(value: str | int | None) -> str:
    if value is None or isinstance(value, int):
        return "" if value is None else str(value)
    text = as_cell(value)
    return _quoted(text) if _QUOTED.search(text) else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _by_line(text: str, escape: Callable[[str], str]) -> str:
    lines = text.split("\n")
    return "\n".join(line if _is_plain(line) else "".join(map(escape, line)) for line in lines)


def _is_plain(text: str) -> bool:
    return text.isprintable() and _BLANK.search(text) is None


def _escaped(char: str) -> str:
    return char if _is_plain(char) else char.encode("unicode_escape").decode()


def _json_escaped(char: str) -> str:
    return char if _is_plain(char) else json.dumps(char)[1:-1]
