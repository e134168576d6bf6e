"""Files become documents: bytes, text, YAML.

The loader calls `read`. Only a plain part of YAML is accepted: one document of mappings, lists and plain values,
without anchors, merge keys and tags, so that what a reviewer reads is what is meant. A message never repeats text of
the file between quotes or behind a sign, because it may be a secret.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from reconciler.declare.documents.codes import NOT_A_MAPPING, SYNTAX, UNREADABLE
from reconciler.declare.documents.located import Document, Located, Mark, TextPosition
from reconciler.declare.documents.tree import TreeBuilder
from reconciler.model.base.errors import Problem

STDIN = Path("-")
MAX_BYTES = 8 * 1024 * 1024
_START = Mark(1, 1)

# What the parser quotes: tokens and single characters are helpful, anything longer may be a secret.
_QUOTED = re.compile(r"'(?P<text>\\?.|<[a-z ]+>)'|'[^']*'|\"[^\"]*\"")

# What YAML takes for the end of a line, and so of a comment, and few editors show as one; and what turns the order
# of the text around it on a screen: with either a reviewer would read something else than is meant.
_MISLEADING = re.compile(r"\r(?!\n)|[\u0085\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class ReadFiles(NamedTuple):
    """What came of one file: no document where the problems make its content unsure."""

    document: Document | None
    problems: list[Located]


def display_name(path: Path) -> str:
    """Return what messages call a file."""
    return "<stdin>" if path == STDIN else str(path)


def read(path: Path) -> ReadFiles:
    """Read one topology file, or standard input for `-`."""
    name = display_name(path)
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == STDIN else _read_bytes(path)
    except (OSError, ValueError) as error:
        # ValueError: a NUL in the path.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _unreadable(name, f"cannot read the file: {reason}", "name an existing, readable topology file")
    if len(data) > MAX_BYTES:
        return _unreadable(name, f"larger than {MAX_BYTES} bytes", "name a topology file")
    if b"\0" in data:
        return _unreadable(name, "expected YAML; found binary data", "name a topology file in UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(name, f"expected UTF-8; byte {error.start} is not", "save the file in UTF-8")
    return parse(name, text)


def parse(name: str, text: str) -> ReadFiles:
    """Parse the text of one topology file.

    Args:
        name: what messages call the file.
        text: its content.
    """
    if misleading := _MISLEADING.search(text):
        return ReadFiles(None, [_control_character(name, text, misleading.start())])
    builder = TreeBuilder(name)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
            if builder.stopped:
                break
    except MarkedYAMLError as error:
        return ReadFiles(None, [*builder.problems, _syntax(name, error)])
    except ReaderError as error:
        return ReadFiles(None, [_control_character(name, text, error.position)])
    if not builder.sound:
        return ReadFiles(None, builder.problems)
    if not isinstance(builder.root, dict):
        found = "nothing" if builder.root is None else "a list" if isinstance(builder.root, list) else "a single value"
        mark = builder.values.get((), _START)
        message = f"expected a mapping with version, name and clusters; found {found}"
        problem = TextPosition(name, mark).problem(NOT_A_MAPPING, message, "start the file with version: 1")
        return ReadFiles(None, [*builder.problems, problem])
    return ReadFiles(Document(name, builder.root, builder.values, builder.keys, builder.texts, text), builder.problems)


def _read_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _unreadable(name: str, message: str, remedy: str) -> ReadFiles:
    return ReadFiles(None, [Located(Problem(UNREADABLE, name, message, remedy), TextPosition(name, _START))])


def _syntax(name: str, error: MarkedYAMLError) -> Located:
    at = error.problem_mark or error.context_mark
    mark = Mark(at.line + 1, at.column + 1) if at else _START
    found = str(error.problem or error.context or "not YAML")
    if "'\\t'" in found:
        message, remedy = "expected spaces; found a tab character", "indent with spaces: YAML allows no tabs there"
    else:
        message = f"not valid YAML: {_QUOTED.sub(lambda quoted: quoted[0] if quoted['text'] else '…', found)}"
        remedy = _advice(error)
    return TextPosition(name, mark).problem(SYNTAX, message, remedy)


def _advice(error: MarkedYAMLError) -> str:
    """Return what to do, with the line where the broken part began if that is another one."""
    start, end = error.context_mark, error.problem_mark
    if start is not None and end is not None and start.line != end.line:
        return f"look at what begins in line {start.line + 1}: a quote, bracket, colon or indentation is wrong"
    return "look for a missing quote, bracket or space after a colon, or wrong indentation"


def _control_character(name: str, text: str, position: int) -> Located:
    before = text[:position]
    mark = Mark(before.count("\n") + 1, position - before.rfind("\n"))
    message = f"expected printable text; found character U+{ord(text[position]):04X}"
    return TextPosition(name, mark).problem(SYNTAX, message, "remove the character")
