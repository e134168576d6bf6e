"""Shapes of values that others may have written: what is checked before anything of them is used.

Journals, members' metadata and committed offsets' metadata lie in topics that other principals may write to. Their JSON
is read by `parsed`, within bounds that no value of ours reaches, and taken apart by `fields` with a check for each
field. What does not fit raises `Misfit` and nothing else, whatever was written, so that a reader can pass over it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

DEEPEST = 64
"""So many lists and objects may stand in each other."""
LARGEST = 2**63 - 1
"""The largest number: Kafka's offsets and ids have 64 bits, with a sign."""
LATEST = 32_503_680_000
"""The latest time, in seconds since 1970: the year 3000, which every calendar of Python's can show."""
MOST_PARTITIONS = 1_000_000
"""More partitions than any topic has."""
MOST_REPLICAS = 32_767
"""More replicas of a partition than Kafka counts."""
MOST_TASKS = 1_000
"""The most tasks that the schema of topology files lets a flow have."""

Check = Callable[[Any], Any]
"""Returns a value as it is to be used; raises Misfit where it is none of these."""

Found = TypeVar("Found")

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_SHOWN = 40


class Misfit(ValueError):
    """A value has another shape than the one that is read; the message gives the place and what was found."""


def parsed(data: bytes | str, largest: int) -> Any:
    """Return JSON as Python's types: at most 64 levels, finite numbers of at most 64 bits, texts without NUL.

    Args:
        data: UTF-8, or text.
        largest: how many bytes, or characters, there may be.

    Raises:
        Misfit: it is something else.
    """
    if len(data) > largest:
        message = f"{len(data):,} bytes, expected {largest:,} at most"
        raise Misfit(message)
    try:
        text = data if isinstance(data, str) else data.decode()
        value = json.loads(text, parse_constant=_not_finite)
    except UnicodeDecodeError:
        message = "not UTF-8"
        raise Misfit(message) from None
    except RecursionError:
        message = f"JSON of more than {DEEPEST} levels"
        raise Misfit(message) from None
    except Misfit:
        raise
    except ValueError:
        # Also an integer of more digits than Python converts.
        message = "not JSON"
        raise Misfit(message) from None
    _check_within(value)
    # Only an escape can bring in what the decoder does not let through.
    if "\\u" in text or "\0" in text:
        _check_texts(value)
    return value


def fits(read: Callable[[Any], Found], value: Any) -> Found | None:
    """Return what a reader makes of a value; None where it does not fit."""
    try:
        return read(value)
    except Misfit:
        return None


def fields(value: Any, required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> dict[str, Any]:
    """Return the fields of an object, checked; fields that are not declared are left out.

    Args:
        value: what was read.
        required: by name, the checks of the fields that it must have.
        optional: likewise, of those that it may have.

    Raises:
        Misfit: it is no object, a field is missing, or one does not fit.
    """
    if not isinstance(value, dict):
        _wrong("an object", value)
    found = {}
    for name, check in required.items():
        if name not in value:
            message = f"{name} is missing"
            raise Misfit(message)
        try:
            found[name] = check(value[name])
        except Misfit as error:
            message = f"{name}: {error}"
            raise Misfit(message) from None
    for name, check in (optional or {}).items():
        if name in value:
            try:
                found[name] = check(value[name])
            except Misfit as error:
                message = f"{name}: {error}"
                raise Misfit(message) from None
    return found


# --- checks -----------------------------------------------------------------------------------------------------------


def text(most: int = 65_536, least: int = 0) -> Check:
    """Return the check of a text of so many characters, without NUL and halves of characters."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            _wrong("a text", value)
        if not least <= len(value) <= most:
            message = f"a text of {len(value):,} characters, expected {least:,} to {most:,}"
            raise Misfit(message)
        if not value.isascii() or "\0" in value:
            _check_text(value)
        return value

    return check


def whole(low: int = -LARGEST - 1, high: int = LARGEST) -> Check:
    """Return the check of a whole number within bounds."""

    def check(value: Any) -> int:
        # True and False are numbers to Python.
        if type(value) is not int:
            _wrong("a whole number", value)
        if not low <= value <= high:
            message = f"a number out of {low:,} to {high:,}"
            raise Misfit(message)
        return int(value)

    return check


def real(low: float = -float(LARGEST), high: float = float(LARGEST)) -> Check:
    """Return the check of a number within bounds, whole or not."""

    def check(value: Any) -> float:
        # Not a number is within no bounds.
        if type(value) not in (int, float):
            _wrong("a number", value)
        if not low <= value <= high:
            message = f"a number out of {low:,g} to {high:,g}"
            raise Misfit(message)
        found: float = value
        return found

    return check


def flag(value: Any) -> bool:
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        _wrong("true or false", value)
    return value


def topic_name(value: Any) -> str:
    """Check that a value may be the name of a topic: Kafka's own rule (`Topic.validate`)."""
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        _wrong("a topic's name", value)
    return value


def one_of(*words: str) -> Check:
    """Return the check of a text that is one of some words."""
    known = frozenset(words)

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            _wrong(" or ".join(words), value)
        return value

    return check


def maybe(check: Check) -> Check:
    """Return the check of a value that may be null."""
    return lambda value: None if value is None else check(value)


def listed(check: Check, most: int = MOST_PARTITIONS) -> Check:
    """Return the check of a list; what it gives is a tuple."""

    def check_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            _wrong("a list", value)
        if len(value) > most:
            message = f"a list of {len(value):,}, expected {most:,} at most"
            raise Misfit(message)
        return tuple(map(check, value))

    return check_all


def row(*checks: Check) -> Check:
    """Return the check of a list with a check for each of its places; what it gives is a tuple."""

    def check_each(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(checks):
            _wrong(f"a list of {len(checks)}", value)
        return tuple(check(one) for check, one in zip(checks, value, strict=True))

    return check_each


def mapped(keys: Check, values: Check) -> Check:
    """Return the check of an object whose keys are no names of fields."""

    def check(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            _wrong("an object", value)
        return {keys(key): values(one) for key, one in value.items()}

    return check


def decimal(most: int = MOST_PARTITIONS) -> Check:
    """Return the check of a number from 0 on that is written as a text."""
    digits = len(str(most))

    def check(value: Any) -> int:
        if not isinstance(value, str) or not 0 < len(value) <= digits or not (value.isascii() and value.isdecimal()):
            _wrong("a number as a text", value)
        if int(value) > most:
            _wrong(f"a number up to {most:,}", value)
        return int(value)

    return check


TEXT = text()
WORD = text(500)
"""The name of a flow, a topology, a cluster, a run, a user."""
ID = text(200)
"""The id of a topic or a cluster, or a digest."""
TIME = real(0, LATEST)
"""Seconds since 1970."""
OFFSET = whole(-2)
"""An offset; negative ones mean that there is none."""
COUNT = whole(0)
PARTITION = whole(0, MOST_PARTITIONS)
MODE = one_of("identical", "translated")
"""The mode of a copy's offsets."""


# --- within -----------------------------------------------------------------------------------------------------------


def _not_finite(word: str) -> NoReturn:
    message = f"{word} is no number of JSON"
    raise Misfit(message)


def _check_within(value: Any) -> None:
    """Check levels and numbers of what was parsed; levels are gone through one by one, without recursion."""
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for one in level:
            for child in one.values() if type(one) is dict else one:
                kind = type(child)
                if kind is dict or kind is list:
                    below.append(child)
                elif (kind is int and not -LARGEST - 1 <= child <= LARGEST) or (
                    kind is float and not math.isfinite(child)
                ):
                    message = "a number of more than 64 bits"
                    raise Misfit(message)
        if not below:
            return
        level = below
    message = f"JSON of more than {DEEPEST} levels"
    raise Misfit(message)


def _check_texts(value: Any) -> None:
    level = [value]
    while level:
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str):
                _check_text(one)
        level = below


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        message = "a text with half a character"
        raise Misfit(message) from None
    if "\0" in value:
        message = "a text with NUL"
        raise Misfit(message)


def _wrong(expected: str, value: Any) -> NoReturn:
    shown = ascii(value[:_SHOWN]) if isinstance(value, str) else _kind(value)
    message = f"expected {expected}, found {shown}"
    raise Misfit(message)


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds.get(type(value), "something else")
