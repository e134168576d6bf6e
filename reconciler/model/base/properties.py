"""Java's properties files, as far as one value is looked up in them.

As `java.util.Properties.load` reads them, which is how Kafka's tools read theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANKS = " \t\f"
_COMMENT = ("#", "!")
# The key ends at the first blank, `=` or `:` that is not escaped.
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def value(text: str, key: str) -> str | None:
    """Return the value of a key; the last one where it has several, None where it has none.

    Args:
        text: of the file.
        key: whose.
    """
    found = None
    for line in _lines(text):
        begin = _KEY.match(line)
        name = begin[0] if begin else ""
        if _unescaped(name) == key:
            rest = line[len(name) :]
            separator = _SEPARATOR.match(rest)
            found = _unescaped(rest[separator.end() if separator else 0 :])
    return found


def _lines(text: str) -> Iterator[str]:
    """Yield what Java calls logical lines: without comments, and with what a backslash at the end goes on with."""
    held = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANKS)
        if not held and (not line or line.startswith(_COMMENT)):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held += line[:-1]
            continue
        yield held + line
        held = ""
    if held:
        yield held


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    said = escape[1]
    return chr(int(said[1:], 16)) if len(said) > 1 else _ESCAPED.get(said, said)
