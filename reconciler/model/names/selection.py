"""Which topics a flow takes: include and exclude, as full matches against names on the source cluster.

The rules are MirrorMaker 2's (`DefaultTopicFilter`): exclude wins, internal topics are not taken. Two are ours: an item
without regular-expression characters is a literal name, so that the dot in `payments.eu` means a dot; and a topic of an
application that is called like an internal one is taken where the list names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from reconciler.model.names.patterns import compiled

EVERYTHING = ".*"
"""The item that every name matches."""

LITERAL_NAME = re.compile(r"[A-Za-z0-9._-]+")

ALWAYS_EXCLUDED = (
    r"__.*",
    r"(.*\.)?mm2[-.].*\.internal",
    r"(.*\.)?checkpoints\.internal",
    r"(.*\.)?anabranch[-.].*\.internal",
)
"""Kafka's own topics, MirrorMaker 2's and ours, and copies of them: no flow ever takes one."""

USUALLY_EXCLUDED = (r".*[.-]internal", r".*\.replica")
"""Topics that are taken where the file names them: MirrorMaker 2 leaves out all of them, or some, by default."""

# The same under `re`, searched from where it begins, so that no two wildcards are tried against each other.
_RESERVED = re.compile(r"^__|(?:^|\.)(?:(?:mm2|anabranch)[-.].*\.internal|checkpoints\.internal)\Z", re.DOTALL)
_INTERNAL = re.compile("|".join(USUALLY_EXCLUDED))
# An expression that ends in such a word, perhaps in parentheses, means these topics.
_SAYS_SO = re.compile(r"(internal|replica)[)?$]*\Z")


def is_literal(item: str) -> bool:
    """Return whether a list item is a plain name and not a regular expression."""
    return LITERAL_NAME.fullmatch(item) is not None


def is_reserved(name: str) -> bool:
    """Return whether a topic is one that no flow ever takes, for its name."""
    return _RESERVED.search(name) is not None


def is_internal(name: str) -> bool:
    """Return whether a topic is one that no flow takes unless its file names it."""
    return is_reserved(name) or _INTERNAL.fullmatch(name) is not None


def means_internal(item: str) -> bool:
    """Return whether an item of an include list names topics that are usually left behind: all its alternatives do.

    A plain name means itself. An expression does where it ends in `internal` or `replica`: `.*` means none of them.
    """
    if is_literal(item):
        return is_internal(item)
    return all(_SAYS_SO.search(one) for one in alternatives(item))


def alternatives(expression: str) -> Iterator[str]:
    """Yield what stands between the bars of an expression outside of groups and sets."""
    begin = depth = at = 0
    in_set = False
    while at < len(expression):
        character = expression[at]
        if character == "\\":
            at += 1
        elif in_set:
            in_set = character != "]"
        elif character == "[":
            in_set = True
            # A bracket that comes first is one of the set.
            at += expression.startswith("^", at + 1)
            at += expression.startswith("]", at + 1)
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and not depth:
            yield expression[begin:at]
            begin = at + 1
        at += 1
    yield expression[begin:]


class NameSelection:
    """Names and regular expressions, of which one must match a whole name; plain ones are looked up.

    Args:
        items: names and regular expressions.
        any_text: whether they are for names that may be any text, as those of groups. Then each item is taken as it
            stands first, so that `team+app` is the group of this name, and a dot in an expression matches line ends.
    """

    def __init__(self, items: tuple[str, ...], any_text: bool = False) -> None:
        """Sort out which items are plain names; an expression is compiled when it is first needed."""
        self._items = items
        self._any_text = any_text
        self._literals = frozenset(filter(is_literal, items))
        self._as_they_stand = frozenset(items) if any_text else self._literals
        self._expressions = tuple(item for item in items if item not in self._literals)

    def __contains__(self, name: str) -> bool:
        return name in self._as_they_stand or any(self._matches(item, name) for item in self._expressions)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the items alone."""
        return names, (self._items, self._any_text)

    def first(self, name: str) -> str | None:
        """Return the first item that matches `name`."""
        return next((item for item in self._items if self._is_of(item, name)), None)

    def idle(self, there: Iterable[str]) -> list[str]:
        """Return the items that match none of the names that there are, in their order, each once."""
        known = frozenset(there)
        unseen = [item for item in dict.fromkeys(self._items) if item not in known]
        return [
            item for item in unseen if item in self._literals or not any(self._matches(item, name) for name in known)
        ]

    def _is_of(self, item: str, name: str) -> bool:
        if item in self._literals:
            return item == name
        return (self._any_text and item == name) or self._matches(item, name)

    def _matches(self, item: str, name: str) -> bool:
        return compiled(item, self._any_text).fullmatch(name)

    @property
    def literals(self) -> tuple[str, ...]:
        """The items that are plain names, in their order."""
        return tuple(item for item in self._items if item in self._literals)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The others."""
        return self._expressions


@lru_cache(maxsize=1024)
def names(items: tuple[str, ...], any_text: bool = False) -> NameSelection:
    """Return names and regular expressions, compiled; flows of one pattern share them."""
    return NameSelection(items, any_text)


def any_matches(items: tuple[str, ...], name: str) -> bool:
    """Return whether one of some names and regular expressions matches the whole name of a topic or setting."""
    return name in names(items)


@dataclass(frozen=True)
class Selection:
    """Names chosen by include and exclude lists.

    Attributes:
        include: names and regular expressions (see `patterns`); one must match fully.
        exclude: names and regular expressions; none may match.
        required: whether a literal name in `include` that does not exist is an error.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    required: bool = False

    @cached_property
    def _included(self) -> NameSelection:
        return names(self.include)

    @cached_property
    def _excluded(self) -> NameSelection:
        return names(self.exclude)

    @cached_property
    def _meaning_internal(self) -> NameSelection:
        return names(tuple(filter(means_internal, self.include)))

    def matches(self, name: str) -> bool:
        """Return whether the topic `name` is chosen."""
        if name not in self._included or name in self._excluded:
            return False
        return not is_internal(name) or (not is_reserved(name) and name in self._meaning_internal)

    def leaves_behind(self, name: str) -> bool:
        """Return whether the topic `name` would be chosen, and is not as its name resembles an internal one."""
        if not is_internal(name) or is_reserved(name) or name in self._meaning_internal:
            return False
        return name in self._included and name not in self._excluded

    def against(self, name: str) -> str | None:
        """Return the item that excludes the topic `name`; None where it is chosen."""
        for kind, items in (("never taken", names(ALWAYS_EXCLUDED)), ("excluded", self._excluded)):
            item = items.first(name)
            if item is not None:
                return f"{kind}: {item}"
        if self.leaves_behind(name):
            return f"left behind: {names(USUALLY_EXCLUDED).first(name)}; name it in include to take it"
        return None if self.matches(name) else f"matches none of {', '.join(self.include)}"

    def literals(self) -> tuple[str, ...]:
        """Return the included items that are plain names."""
        return self._included.literals

    def expressions(self) -> tuple[str, ...]:
        """Return the included items that are regular expressions."""
        return self._included.expressions
