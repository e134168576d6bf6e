"""Checks the items of include and exclude lists, and the settings that flows name, one by one.

The loader calls `check` for each document that has been held against the schema. Whether two selections overlap is a
question about flows: see `crossings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.declare import codes, words
from reconciler.declare.located import Located, Place
from reconciler.declare.merge import Source
from reconciler.declare.violations import Finding
from reconciler.model import patterns
from reconciler.model.config_rules import FIXED
from reconciler.model.patterns import BadPattern, NotLinear
from reconciler.model.selection import ALWAYS_EXCLUDED, is_internal, is_literal

# Groups may have any name.
_WITHOUT_COMMAS = frozenset({"topics", "configs"})
# In these a comma is a part of the expression: `{2,3}` and `[,;]`.
_QUANTIFIED = re.compile(r"\{[^}]*\}|\[[^]]*\]")
# Settings of topics whose values are no whole numbers.
_WITH_DOT = ("min.cleanable.dirty.ratio",)
# "All but" is written in two lists here, and often in one expression in Java.
_INSTEAD_OF_LOOKING = {
    "include": "leave it out here, and write what it keeps away as an item of exclude: exclude wins",
    "exclude": "write which names are left out, without it; what include does not take need not be excluded",
}
_SAID = ", ".join(ALWAYS_EXCLUDED)


def check(source: Source) -> list[Finding]:
    """Return what is wrong with the names and regular expressions of one document."""
    places = [source.document.at("defaults"), *source.items("replication"), *source.items("flows")]
    found = [
        finding
        for place in places
        for field in ("topics", "configs", "groups")
        for key in ("include", "exclude")
        for item in _items(place / field / key)
        if source.usable(item)
        for finding in _check_item(item, field, key)
    ]
    return found + [finding for place in places for finding in _of_set(source, place / "configs" / "set")]


def _items(place: Place) -> Iterator[Place]:
    items = place.value
    if isinstance(items, list):
        yield from (place / index for index in range(len(items)))


def _of_set(source: Source, place: Place) -> Iterator[Finding]:
    named = place.value if isinstance(place.value, dict) and source.usable(place) else {}
    for key, value in named.items():
        if isinstance(value, float) and not value.is_integer() and key not in _WITH_DOT:
            message = f"expected a whole number; found {words.found(value)}"
            yield Finding(
                (place / key).problem(codes.WRONG_VALUE, message, f"only {words.either(_WITH_DOT)} takes another one"),
                None,
            )
    for key in FIXED.intersection(named):
        message = f"{key} decides whether batches pass unchanged and stay: no flow can set it"
        yield Finding((place / key).problem(codes.FIXED_CONFIG, message, "remove it", at_key=True), None)


def _check_item(place: Place, field: str, key: str) -> Iterator[Finding]:
    item = str(place.value)
    if field in _WITHOUT_COMMAS and "," in _QUANTIFIED.sub("", item):
        message = f"expected one name or regular expression; found {words.found(item)}: no name of these has a comma"
        yield Finding(place.problem(codes.BAD_REGEX, message, "make each an item of its own"), place.path)
    elif not is_literal(item):
        problem = unusable(place, item, _INSTEAD_OF_LOOKING[key], any_text=field not in _WITHOUT_COMMAS)
        if problem:
            yield Finding(problem, place.path)
    elif (field, key) == ("configs", "include") and item in FIXED:
        message = f"{item} decides whether batches pass unchanged and stay: no copy gets its original's"
        yield Finding(place.problem(codes.FIXED_CONFIG, message, "remove it"), None)
    elif (field, key) == ("topics", "include") and is_internal(item):
        message = f"internal topics are never replicated; found {item}, excluded always are {_SAID}"
        yield Finding(place.problem(codes.NEVER_REPLICATED, message, "remove it"), None)


def unusable(place: Place, pattern: str, instead: str, any_text: bool = False) -> Located | None:
    """Return the problem of a regular expression that cannot be used; None where it can.

    Args:
        place: where it is written.
        pattern: the expression.
        instead: what to write instead of a look-ahead or look-behind.
        any_text: whether it is for names that may be any text, as those of consumer groups.
    """
    try:
        patterns.check(pattern, any_text)
    except BadPattern as reason:
        message = f"expected a regular expression of Python's re; found {words.found(pattern)}: {reason}"
        return place.problem(codes.BAD_REGEX, message, "correct the expression, or write a plain name")
    except NotLinear as reason:
        message = f"expected an expression that is matched in linear time; found {words.found(pattern)}: {reason}"
        return place.problem(codes.NOT_LINEAR, message, instead if reason.looks_around else reason.remedy)
    return None
