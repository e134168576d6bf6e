"""A topology that is being put together: values, and where each comes from, which stands in its text as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.convert.settings import Setting
from reconciler.model.base.text import shown

TreePath = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
# What YAML takes for something else than text.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"})


@dataclass
class Tree:
    """Values of a topology file.

    Attributes:
        values: mappings, lists and scalars, as JSON has them.
        origins: by path, the setting from which a value was made.
        remarks: by path, what stands behind a value instead.
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[TreePath, Setting] = field(default_factory=dict)
    remarks: dict[TreePath, str] = field(default_factory=dict)

    def put(self, path: TreePath, value: Any, origin: Setting | None = None, remark: str = "") -> None:
        """Set a value; mappings on the way are made."""
        inner: Any = self.values
        for step in path[:-1]:
            inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
        inner[path[-1]] = value
        if origin is not None:
            self.origins[path] = origin
        if remark:
            self.remarks[path] = remark

    def drop(self, path: TreePath) -> None:
        """Take a value out, and the mappings that hold nothing without it."""
        inner: Any = self.values
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]
        self.origins.pop(path, None)
        if len(path) > 1 and not inner and isinstance(inner, dict):
            self.drop(path[:-1])

    def text(self) -> str:
        """Return it as YAML; behind each value stands where it comes from."""
        return "".join(f"{line}\n" for line in self._mapping(self.values, (), ""))

    def _mapping(self, value: Mapping[str, Any], path: TreePath, indent: str) -> Iterator[str]:
        for key, inner in value.items():
            here, name = (*path, key), scalar(key)
            if isinstance(inner, dict) and inner:
                yield f"{indent}{name}:{self._comment(here)}"
                yield from self._mapping(inner, here, indent + "  ")
            elif isinstance(inner, list) and any(isinstance(one, dict) for one in inner):
                yield f"{indent}{name}:"
                yield from self._items(inner, here, indent + "  ")
            else:
                yield f"{indent}{name}: {scalar(inner)}{self._comment(here)}"

    def _items(self, items: list[dict[str, Any]], path: TreePath, indent: str) -> Iterator[str]:
        for number, item in enumerate(items):
            for position, line in enumerate(self._mapping(item, (*path, number), indent + "  ")):
                yield f"{indent}- {line[len(indent) + 2 :]}" if position == 0 else line

    def _comment(self, path: TreePath) -> str:
        if remark := self.remarks.get(path):
            return f"  # {remark}"
        origin = self.origins.get(path)
        return "" if origin is None else f"  # {shown(origin.title)}, {shown(origin.where)}"


def scalar(value: Any) -> str:
    """Return a value in one line of YAML: what JSON writes is YAML, and plain words need no quotes."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(scalar, value))}]"
    return json.dumps(value)
