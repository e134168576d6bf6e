"""Which topics a flow takes: include and exclude, as full matches against names on the source cluster.

The rules are MirrorMaker 2's (`DefaultTopicFilter`): exclude wins, internal topics are never taken. One is ours: an
item without regular-expression characters is a literal name, so that the dot in `payments.eu` means a dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from reconciler.model.patterns import compiled

EVERYTHING = ".*"
"""The item that every name matches."""

LITERAL_NAME = re.compile(r"[A-Za-z0-9._-]+")

ALWAYS_EXCLUDED = (r"__.*", r".*[.-]internal", r".*\.replica", r"anabranch-.*\.internal")

# Ours, and linear under `re` as well: none has two wildcards.
_INTERNAL = re.compile("|".join(ALWAYS_EXCLUDED))


def is_literal(item: str) -> bool:
    """Tell whether a list item is a plain name and not a regular expression."""
    return LITERAL_NAME.fullmatch(item) is not None


def is_internal(name: str) -> bool:
    """Tell whether a topic is one that no flow ever takes, for its name."""
    return _INTERNAL.fullmatch(name) is not None


class Names:
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
def names(items: tuple[str, ...], any_text: bool = False) -> Names:
    """Return names and regular expressions, ready to be asked; flows of one pattern share them."""
    return Names(items, any_text)


def any_matches(items: tuple[str, ...], name: str) -> bool:
    """Tell whether one of some names and regular expressions matches the whole name of a topic or setting."""
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
    def _included(self) -> Names:
        return names(self.include)

    @cached_property
    def _excluded(self) -> Names:
        return names(self.exclude)

    def matches(self, name: str) -> bool:
        """Tell whether the topic `name` is chosen."""
        return name in self._included and name not in self._excluded and not is_internal(name)

    def against(self, name: str) -> str | None:
        """Say which item stands against the topic `name`; None where it is chosen."""
        for kind, items in (("never taken", names(ALWAYS_EXCLUDED)), ("excluded", self._excluded)):
            item = items.first(name)
            if item is not None:
                return f"{kind}: {item}"
        return None if self.matches(name) else f"matches none of {', '.join(self.include)}"

    def literals(self) -> tuple[str, ...]:
        """Return the included items that are plain names."""
        return self._included.literals

    def expressions(self) -> tuple[str, ...]:
        """Return the included items that are regular expressions."""
        return self._included.expressions
