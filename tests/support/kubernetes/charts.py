"""Charts filled with values: what of Helm's templates our charts use, and nothing more; a long test has Helm itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_EXPRESSION = re.compile(r"\{\{ (.*?) \}\}")
_CORES = re.compile(r'printf "%dm" \(int \.Values\.(\w+)\)')
_REST = re.compile(r'printf "%dm" \(sub \(int \.Values\.(\w+)\) (\d+)\)')
_MOUNT = re.compile(r"index \.Values\.mounts (\".*\")")


def filled(files: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the templates of a chart with values in place of expressions.

    Raises:
        ValueError: an expression is none of those that are known.
    """
    return {
        name: _EXPRESSION.sub(lambda found: _value(found[1], values), text)
        for name, text in files.items()
        if name.startswith("templates/")
    }


def _value(expression: str, values: Mapping[str, Any]) -> str:
    if expression == '"{{"':
        return "{{"
    if not expression.endswith(" | quote"):
        raise ValueError(expression)
    inner = expression.removesuffix(" | quote")
    if found := _CORES.fullmatch(inner):
        return json.dumps(f"{values[found[1]]}m")
    if found := _REST.fullmatch(inner):
        return json.dumps(f"{values[found[1]] - int(found[2])}m")
    if found := _MOUNT.fullmatch(inner):
        return json.dumps(values["mounts"][json.loads(found[1])])
    if inner.startswith(".Values."):
        return json.dumps(values[inner.removeprefix(".Values.")])
    raise ValueError(expression)
