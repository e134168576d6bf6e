"""Whether values that were read from a file are of the types that they are declared with. Pure.

Python's dataclasses take any values; a file that was changed by hand must not get further than its reader.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Mapping
from collections.abc import Set as AnySet
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_LARGEST = 2**63 - 1


def check(value: object, hint: Any = None) -> None:
    """Make sure that a value is of its type, and everything in it.

    Args:
        value: a dataclass or a named tuple, or something that `hint` is for.
        hint: its type; by default its class. Whole numbers are those of 64 bits.

    Raises:
        TypeError: it is not.
    """
    if not _fits(value, type(value) if hint is None else hint):
        message = f"{value!r:.60} is no {hint}"
        raise TypeError(message)


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple | list) and _fit_all(list(value), arguments)
    if origin in (list, frozenset, AnySet):
        return isinstance(value, origin) and all(_fits(one, arguments[0]) for one in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            _fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items()
        )
    if hint is float and isinstance(value, float):
        return math.isfinite(value)
    if hint in (int, float):
        return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST
    if hint in (str, bool, type(None)):
        return isinstance(value, hint)
    return isinstance(value, hint) and all(_fits(getattr(value, name), one) for name, one in _hints(hint).items())


def _fit_all(values: list[Any], hints: tuple[Any, ...]) -> bool:
    if hints[-1:] == (Ellipsis,):
        return all(_fits(one, hints[0]) for one in values)
    return len(values) == len(hints) and all(map(_fits, values, hints))


@functools.cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    """Return the fields of a dataclass or a named tuple, with their types."""
    is_shaped = is_dataclass(kind) or hasattr(kind, "_fields")
    return get_type_hints(kind) if is_shaped else {}
