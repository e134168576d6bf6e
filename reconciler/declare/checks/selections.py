"""Checks the items of include and exclude lists, and the settings that flows name, one by one.

The loader calls `check` for each document that has been checked by the schema. Whether two selections overlap is a
question about flows: see `crossings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.declare.checks import java, meant
from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.declare.documents.merge import Source
from reconciler.declare.documents.violations import Finding
from reconciler.model.declared.config_rules import FIXED
from reconciler.model.names import patterns
from reconciler.model.names.patterns import BadPattern, NotLinear
from reconciler.model.names.reachable import dead_end
from reconciler.model.names.selection import ALWAYS_EXCLUDED, is_literal, is_reserved
from reconciler.model.names.topic_names import name_fault

# What lists are of, as messages call it. Groups may have any name.
_NAMED = {"topics": "topic", "configs": "setting", "groups": "group"}
_ANY_TEXT = "group"
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
    found = [
        finding
        for field in _NAMED
        for key in ("include", "exclude")
        for item in _items(source, field, key)
        if source.usable(item)
        for finding in _check_item(item, field, key)
    ]
    return found + [finding for place in _flows(source) for finding in _of_set(source, place / "configs" / "set")]


def suspect(source: Source) -> Iterator[Located]:
    """Yield what is accepted in the lists of one document, and probably means something else."""
    for field, what in _NAMED.items():
        for item in (one for key in ("include", "exclude") for one in _items(source, field, key)):
            yield from suspicious(item, what)


def suspicious(place: SourcePlace, what: str) -> Iterator[Located]:
    """Yield what is probably wrong with one name or regular expression.

    Args:
        place: where it is written.
        what: the kind of name: `topic`, `setting` or `group`.
    """
    item = str(place.value)
    if not is_literal(item) and (likely := meant.meant_by_glob(item)):
        message = f"{words.found(item)} is a regular expression, in which * repeats the character before it"
        yield place.problem(codes.GLOB, message, f"did you mean {likely}? Any text is .* in a regular expression")
    if what == _ANY_TEXT and (character := meant.mistaken_group(item)):
        likely = meant.in_ascii(item)
        message = f"{words.found(item)} has the character {meant.named(character)}: a group may be called so, few are"
        remedy = f"did you mean {likely}, in ASCII?" if likely else "correct it where the group is called otherwise"
        yield place.problem(codes.UNLIKELY_GROUP, message, remedy)


def _flows(source: Source) -> list[SourcePlace]:
    return [source.document.at("defaults"), *source.items("replication"), *source.items("flows")]


def _items(source: Source, field: str, key: str) -> Iterator[SourcePlace]:
    for place in (flow / field / key for flow in _flows(source)):
        items = place.value
        if isinstance(items, list):
            yield from (place / index for index in range(len(items)))


def _of_set(source: Source, place: SourcePlace) -> Iterator[Finding]:
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


def _check_item(place: SourcePlace, field: str, key: str) -> Iterator[Finding]:
    item, what = str(place.value), _NAMED[field]
    if "," in _QUANTIFIED.sub("", item):
        message = f"expected one name or regular expression; found {words.found(item)}, with a comma"
        remedy = "make each an item of its own"
        if what == _ANY_TEXT:
            remedy += "; the comma of a group's own name is written [,]"
        yield Finding(place.problem(codes.BAD_REGEX, message, remedy), place.path)
    elif problem := unusable(place, item, _INSTEAD_OF_LOOKING[key], what):
        yield Finding(problem, place.path)
    elif (field, key) == ("configs", "include") and item in FIXED:
        message = f"{item} decides whether batches pass unchanged and stay: no copy gets its original's"
        yield Finding(place.problem(codes.FIXED_CONFIG, message, "remove it"), None)
    elif (field, key) == ("topics", "include") and is_literal(item) and is_reserved(item):
        message = f"internal topics are never replicated; found {item}, excluded always are {_SAID}"
        yield Finding(place.problem(codes.NEVER_REPLICATED, message, "remove it"), None)


def unusable(place: SourcePlace, pattern: str, instead: str, what: str = "topic") -> Located | None:
    """Return the problem of a name or regular expression that cannot be used; None where it can.

    Args:
        place: where it is written.
        pattern: what is written there.
        instead: what to write instead of a look-ahead or look-behind.
        what: the kind of name that it is for: `topic`, `setting`, or `group`, which may be any text.
    """
    try:
        if problem := None if what == _ANY_TEXT else _matching_nothing(place, pattern, what):
            return problem
        if not is_literal(pattern):
            patterns.check(pattern, any_text=what == _ANY_TEXT)
    except BadPattern as reason:
        message = f"expected a regular expression of Python's re; found {words.found(pattern)}: {reason}"
        likely = meant.meant_by_glob(pattern)
        remedy = f"did you mean {likely}?" if likely else "correct the expression, or write a plain name"
        remedy = java.explained(pattern) or remedy
        return place.problem(codes.BAD_REGEX, message, f"{remedy}{_as_it_stands(pattern, what)}")
    except NotLinear as reason:
        message = f"expected an expression that is matched in linear time; found {words.found(pattern)}: {reason}"
        remedy = instead if reason.looks_around else java.explained(pattern) or reason.remedy
        return place.problem(codes.NOT_LINEAR, message, f"{remedy}{_as_it_stands(pattern, what)}")
    return None


def _as_it_stands(pattern: str, what: str) -> str:
    """Return how a group is written whose name is an expression that cannot be used."""
    return f"; a group of just this name is written {re.escape(pattern)}" if what == _ANY_TEXT else ""


def _matching_nothing(place: SourcePlace, pattern: str, what: str) -> Located | None:
    """Return the problem of a name, or of a part of an expression, that no topic or setting can have."""
    expected = f"expected a name that a {what} can have; found {words.found(pattern)}"
    if is_literal(pattern):
        fault = name_fault(pattern)
        remedy = f"correct it: no {what} is called so, and any text is .* in a regular expression"
        return place.problem(codes.NO_NAME, f"{expected}: it {fault}", remedy) if fault else None
    end = dead_end(pattern)
    if end is None:
        return None
    reason, remedy = meant.no_name(pattern, end, what)
    return place.problem(codes.NO_NAME, f"{expected}: {reason}", remedy)
