"""Topology files in one style: indentation, blank lines, ends of lines. What they declare, comments and quotes stay."""

from __future__ import annotations

from pathlib import Path

from reconciler.declare.documents.reader import display_name, parse, read
from reconciler.declare.rewrite import in_style
from reconciler.model.base.errors import DeclaredInputError, Problem

_MOST_PASSES = 4


def formatted(path: Path) -> tuple[str, str]:
    """Return the text of a topology file, or of standard input for `-`, as it is and in our style.

    What it declares is not checked, only that it is YAML of the kind that topology files are made of.

    Raises:
        DeclaredInputError: the file is none of that kind; or AB132, the style would change its meaning.
    """
    found = read(path)
    if found.document is None or found.problems:
        raise DeclaredInputError([located.problem for located in found.problems])
    text, styled = found.document.content, found.document.content
    # A comment may move only in the second pass, to where it then stays.
    for _ in range(_MOST_PASSES):
        before, styled = styled, in_style(styled)
        if styled == before:
            break
    after = parse(display_name(path), styled).document
    if after is None or after.value != found.document.value:
        message = "it cannot be written in another style without another meaning"
        raise DeclaredInputError([Problem("AB132", display_name(path), message, "keep it as it is, and report it")])
    return text, styled
