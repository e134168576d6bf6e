"""Values files: what `env:NAME` stands for in one environment, as a mapping of names to values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reconciler.declare.documents import codes
from reconciler.declare.documents.located import Document, Located
from reconciler.declare.documents.reader import read
from reconciler.model.base.errors import DeclaredInputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_values(path: Path) -> dict[str, str]:
    """Return the values by name, as they are written.

    Raises:
        DeclaredInputError: AB100 to AB102, the file cannot be read; AB133, it holds more than names and values.
    """
    document, problems = read(path)
    if document is not None:
        problems = [*problems, *_misfits(document)]
    if problems or document is None:
        raise DeclaredInputError([one.problem for one in problems])
    return {name: _text(document, name) for name in document.value}


def _text(document: Document, name: str) -> str:
    # `007` was read as a number.
    return document.texts.get((name,)) or str(document.value[name])


def _misfits(document: Document) -> Iterator[Located]:
    """Yield what is wrong; no value is repeated, as it may be a secret."""
    for name, value in document.value.items():
        place = document.at(name)
        if not _NAME.fullmatch(name):
            message = "expected the name of a variable: letters, digits and _"
            yield place.problem(codes.NO_VALUES, message, "write NAME: value, for each env:NAME", at_key=True)
        elif value is None or isinstance(value, list | dict):
            found = "nothing" if value is None else "a list" if isinstance(value, list) else "a mapping"
            yield place.problem(codes.NO_VALUES, f"expected one value; found {found}", "write NAME: value")
