"""Values with the place where they were written.

The reader makes a `Document`; everything later in this room refers to a `SourcePlace` in one, so that every message can
name file, line, column and JSON path. Nothing here depends on what the values mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from reconciler.model.base.errors import Problem

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"
JsonPath: TypeAlias = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Mark(NamedTuple):
    """A position in a file; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Document:
    """One file's content; every document is equal to itself alone.

    Attributes:
        name: the file as the user named it.
        value: the mapping at its root.
        values: where each value starts.
        keys: where the key of each value of a mapping starts.
        texts: what stands there of each value that was read as something else than text: `007` of 7.
        content: the whole file.
    """

    name: str
    value: dict[str, Value]
    values: Mapping[JsonPath, Mark]
    keys: Mapping[JsonPath, Mark]
    texts: Mapping[JsonPath, str]
    content: str = ""

    def at(self, *path: str | int) -> SourcePlace:
        """Return the place of the value at `path`."""
        return SourcePlace(self, path)


@dataclass(frozen=True)
class SourcePlace:
    """One value in one document."""

    document: Document
    path: JsonPath

    def __truediv__(self, step: str | int) -> SourcePlace:
        return SourcePlace(self.document, (*self.path, step))

    @property
    def value(self) -> Value:
        """The value itself; None where it is missing."""
        value: Value = self.document.value
        for step in self.path:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int):
                value = value[step]
            else:
                return None
        return value

    @property
    def text(self) -> str | None:
        """What stands in the file, of a value that was read as something else than text; None of every other."""
        return self.document.texts.get(self.path)

    @property
    def mark(self) -> Mark:
        """Where the value starts; where it is missing, its nearest container."""
        path = self.path
        while path not in self.document.values:
            path = path[:-1]
        return self.document.values[path]

    @property
    def key_mark(self) -> Mark:
        """Where the value's key starts; the value itself where it has none."""
        return self.document.keys.get(self.path, self.mark)

    @property
    def line(self) -> str:
        """`file:line`, for messages that point at a second place."""
        return f"{self.document.name}:{self.key_mark.line}"

    @property
    def where(self) -> str:
        """`file:line:column (json path)`, as problems show it."""
        return self.problem("", "", "").problem.where

    def problem(self, code: str, message: str, remedy: str, *, at_key: bool = False, hide_key: bool = False) -> Located:
        """Return a problem with this value, or with its key.

        Args:
            code: the problem's code.
            message: what was expected and what was found.
            remedy: what to do.
            at_key: point at the key and not at the value.
            hide_key: leave the last step of the path out.
        """
        position = TextPosition(self.document.name, self.key_mark if at_key else self.mark)
        return position.problem(code, message, remedy, self.path[:-1] if hide_key else self.path)


class Located(NamedTuple):
    """A problem and its position, to sort by."""

    problem: Problem
    position: TextPosition


class TextPosition(NamedTuple):
    """A point in a file, whether or not a value stands there."""

    file: str
    mark: Mark

    def problem(self, code: str, message: str, remedy: str, path: JsonPath = ()) -> Located:
        """Return a problem at this point, which it shows as `file:line:column (json path)`."""
        place = f"{self.file}:{self.mark.line}:{self.mark.column}"
        where = f"{place} ({render(path)})" if path else place
        return Located(Problem(code, where, message, remedy), self)


def render(path: JsonPath) -> str:
    """Return a JSON path as users write it: `flows[0].topics.include[1]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text
