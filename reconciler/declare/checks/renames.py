r"""Checks rename rules, one by one.

The loader calls `check` for each document that has been checked by the schema. What names rules give to topics is a
question about flows: see `policies`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.declare.checks.selections import suspicious, unusable
from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.declare.documents.merge import Source
from reconciler.declare.documents.violations import Finding
from reconciler.model.names.linear import empty_rounds, group_numbers
from reconciler.model.names.renames import GROUP, references
from reconciler.model.names.selection import is_literal
from reconciler.model.names.topic_names import NAME_CHARACTERS, name_fault

_LITERAL = re.compile(r"[A-Za-z0-9._-]*")
_OCTAL = re.compile(r"\\[0-7]{3}")
_INSTEAD_OF_LOOKING = (
    "leave it out, and put a rule for the names that it keeps away before this one: the first that matches counts"
)
_EMPTY_ROUNDS = "a group is repeated that may be empty, and what it matches last is not the same everywhere"
_FOREIGN_GROUP = re.compile(r"\$(\d|\{)")


def check(source: Source) -> list[Finding]:
    """Return what is wrong with the rename rules of one document."""
    return [finding for place in _policies(source) for finding in _of_policy(source, place)]


def suspect(source: Source) -> Iterator[Located]:
    """Yield what is accepted in the rename rules of one document, and probably means something else."""
    return (
        found for place in _policies(source) for rule in _rules(place) for found in suspicious(rule / "from", "topic")
    )


def _policies(source: Source) -> Iterator[SourcePlace]:
    yield source.document.at("policy")
    for place in (source.document.at("defaults"), *source.items("replication"), *source.items("flows")):
        yield place / "policy"


def _rules(policy: SourcePlace) -> Iterator[SourcePlace]:
    rules = (policy / "rules").value
    yield from (policy / "rules" / index for index in range(len(rules) if isinstance(rules, list) else 0))


def _of_policy(source: Source, place: SourcePlace) -> Iterator[Finding]:
    first: dict[object, SourcePlace] = {}
    for rule in _rules(place):
        if not source.usable(rule):
            continue
        pattern = rule / "from"
        other = first.setdefault(pattern.value, pattern)
        if other is not pattern:
            message = f"expected each from once; found {words.found(pattern.value)} again, first in {other.line}"
            yield _broken(pattern, codes.DUPLICATE, message, "keep one of the two: the first rule that matches counts")
        yield from _of_rule(pattern, rule / "to")


def _of_rule(pattern: SourcePlace, replacement: SourcePlace) -> Iterator[Finding]:
    written, name = str(pattern.value), str(replacement.value)
    if problem := unusable(pattern, written, _INSTEAD_OF_LOOKING):
        yield Finding(problem, pattern.path)
        return
    if _FOREIGN_GROUP.search(name):
        remedy = r"write groups as \1 or \g<name>, in single quotes or without"
        yield _broken(replacement, codes.BAD_RENAME, rf"expected groups as \1; found {words.found(name)}", remedy)
        return
    if any(_LITERAL.fullmatch(part) is None for part in GROUP.split(name)):
        message = rf"expected {NAME_CHARACTERS}, and groups as \1; found {words.found(name)}"
        yield _broken(replacement, codes.BAD_RENAME, message, "Kafka allows no other characters in a topic's name")
        return
    if _OCTAL.search(name):
        message = rf"expected groups as \1; found {words.found(name)}: three digits are a character to Python's re"
        yield _broken(replacement, codes.BAD_RENAME, message, r"write a group before a digit as \g<1>")
        return
    try:
        parts = references(written, name)
    except LookupError as error:
        message = f"expected a group that from has, {_said(written)}; found {words.found(name)}: {error}"
        yield _broken(replacement, codes.BAD_RENAME, message, f"correct it, or put parentheses into {written}")
        return
    if any(isinstance(part, int) and part for part in parts) and empty_rounds(written):
        message = f"expected groups whose match is certain; found {words.found(written)}: {_EMPTY_ROUNDS}"
        remedy = "repeat what has at least one character, or put the repetition inside of the group"
        yield _broken(pattern, codes.NOT_LINEAR, message, remedy)
        return
    if GROUP.search(name) is None and (fault := name_fault(name)):
        message = f"expected a topic's name; found {words.found(name)}: its name {fault}"
        yield _broken(replacement, codes.BAD_RENAME, message, "choose another name")


def _broken(place: SourcePlace, code: str, message: str, remedy: str) -> Finding:
    return Finding(place.problem(code, message, remedy), place.path)


def _said(pattern: str) -> str:
    count, numbers = (0, dict[str, int]()) if is_literal(pattern) else group_numbers(pattern)
    names = [rf"\g<{name}>" for name in numbers]
    return ", ".join([*(rf"\{number}" for number in range(1, count + 1)), *names]) or "it has none"
