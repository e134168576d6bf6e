"""Java's properties files: all entries with their lines, or one value.

As `java.util.Properties.load` reads them, which is how Kafka's tools read theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_COMMENT = ("#", "!")
# The key ends at the first blank, `=` or `:` that is not escaped.
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Entry(NamedTuple):
    """An entry of a properties file.

    Attributes:
        key: unescaped, as the value is.
        value: may be empty.
        line: at which it begins, from 1.
    """

    key: str
    value: str
    line: int


def value(text: str, key: str) -> str | None:
    """Return the value of a key; the last one where it has several, None where it has none.

    Args:
        text: of the file.
        key: whose.
    """
    found = None
    for entry in entries(text):
        if entry.key == key:
            found = entry.value
    return found


def entries(text: str) -> Iterator[Entry]:
    """Yield every entry, in the order of the file; where a key has several, the last one counts."""
    for number, line in _lines(text):
        begin = _KEY.match(line)
        name = begin[0] if begin else ""
        rest = line[len(name) :]
        separator = _SEPARATOR.match(rest)
        yield Entry(_unescaped(name), _unescaped(rest[separator.end() if separator else 0 :]), number)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield what Java calls logical lines: without comments, and with what a backslash at the end goes on with."""
    held, began = "", 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(_BLANKS)
        if not held and (not line or line.startswith(_COMMENT)):
            continue
        began = began or number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held += line[:-1]
            continue
        yield began, held + line
        held, began = "", 0
    if held:
        yield began, held


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    said = escape[1]
    return chr(int(said[1:], 16)) if len(said) > 1 else _ESCAPED.get(said, said)
