"""Finds a name that several selections by regular expressions have in common.

Each expression becomes an automaton; all are walked side by side over the characters that names may have, from the
shortest name on. Where that ends without one that all take, there is none: they are provably disjoint.
"""

from __future__ import annotations

import re
import string
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from reconciler.model.names.linear import class_said, flags_inside, parsed
from reconciler.model.names.patterns import BadPattern, NotLinear
from reconciler.model.names.selection import ALWAYS_EXCLUDED, Selection, is_literal
from reconciler.model.names.topic_names import LONGEST_NAME

_CHARACTERS = f"{string.ascii_letters}{string.digits}-_."
_MOST_STATES = 2000
_MOST_WALKED = 20_000
_Walked = tuple[tuple[frozenset[int], frozenset[int]], ...]


class TooManyStates(Exception):
    """An expression, or several together, are too large to be walked, or have what is not understood here."""


class _Automaton:
    """A number of expressions, of which one must match; states are numbers, the first one is of the beginning."""

    def __init__(self, expressions: Sequence[str]) -> None:
        self.steps: list[list[tuple[frozenset[str], int]]] = []
        self.jumps: list[list[int]] = []
        self._begin, self._end = self._state(), self._state()
        for expression in expressions:
            tree = parsed(expression)
            self._link(tree, tree.state.flags, self._begin, self._end)
        self.begin = self._closed({self._begin})

    def accepts(self, states: frozenset[int]) -> bool:
        return self._end in states

    def after(self, states: frozenset[int], character: str) -> frozenset[int]:
        return self._closed({to for one in states for characters, to in self.steps[one] if character in characters})

    def _closed(self, states: set[int]) -> frozenset[int]:
        waiting, found = list(states), set(states)
        while waiting:
            for to in self.jumps[waiting.pop()]:
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        return frozenset(found)

    def _state(self) -> int:
        if len(self.steps) >= _MOST_STATES:
            raise TooManyStates
        self.steps.append([])
        self.jumps.append([])
        return len(self.steps) - 1

    def _link(self, nodes: Any, flags: int, begin: int, end: int) -> None:
        """Lead from one state to another by what stands one behind the other."""
        at = begin
        for index, (kind, value) in enumerate(nodes):
            if str(kind) == "AT":
                # The whole name is matched: an anchor at its end has no effect, and elsewhere it is not supported.
                if not (index == 0 and str(value).startswith("AT_BEGINNING")) and index != len(nodes) - 1:
                    raise TooManyStates
                continue
            following = self._state()
            self._node(str(kind), value, flags, at, following)
            at = following
        self.jumps[at].append(end)

    def _node(self, kind: str, value: Any, flags: int, begin: int, end: int) -> None:
        match kind:
            case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY":
                self.steps[begin].append((_characters(kind, value, flags & (re.IGNORECASE | re.ASCII)), end))
            case "BRANCH":
                for nodes in value[1]:
                    self._link(nodes, flags, begin, end)
            case "SUBPATTERN":
                _, added, removed, nodes = value
                self._link(nodes, flags_inside(flags, added, removed), begin, end)
            case "MAX_REPEAT" | "MIN_REPEAT":
                self._repeat(value, flags, begin, end)
            case _:
                raise TooManyStates

    def _repeat(self, value: Any, flags: int, begin: int, end: int) -> None:
        least, most, nodes = value
        at = begin
        for _ in range(least):
            following = self._state()
            self._link(nodes, flags, at, following)
            at = following
        if str(most) == "MAXREPEAT":
            again = self._state()
            self.jumps[at].append(again)
            self._link(nodes, flags, again, again)
            at = again
        else:
            for _ in range(most - least):
                following = self._state()
                self.jumps[at].append(end)
                self._link(nodes, flags, at, following)
                at = following
        self.jumps[at].append(end)


def common_name(selections: Sequence[Selection]) -> str | None:
    """Return a name that all selections take by their expressions, a shortest one; None where there is none.

    Items that are plain names are left out: what these take is known without.

    Raises:
        TooManyStates: the automata are too large to decide.
    """
    return _common(tuple(dict.fromkeys(selections)))


@lru_cache(maxsize=4096)
def _common(selections: tuple[Selection, ...]) -> str | None:
    try:
        automata = [
            (
                _Automaton(one.expressions()),
                _Automaton([_as_expression(item) for item in (*one.exclude, *ALWAYS_EXCLUDED)]),
            )
            for one in selections
        ]
    except (BadPattern, NotLinear, RecursionError):
        raise TooManyStates from None
    alphabet = _representatives([automaton for pair in automata for automaton in pair])
    begin: _Walked = tuple((taken.begin, left.begin) for taken, left in automata)
    ways, seen = deque([("", begin)]), {begin}
    while ways:
        name, states = ways.popleft()
        for character in alphabet:
            after: _Walked = tuple(
                (taken.after(one, character), left.after(other, character))
                for (taken, left), (one, other) in zip(automata, states, strict=True)
            )
            if after in seen or not all(one for one, _ in after):
                continue
            seen.add(after)
            if len(seen) > _MOST_WALKED:
                raise TooManyStates
            longer = name + character
            if all(
                taken.accepts(one) and not left.accepts(other)
                for (taken, left), (one, other) in zip(automata, after, strict=True)
            ):
                return longer
            if len(longer) < LONGEST_NAME:
                ways.append((longer, after))
    return None


def _as_expression(item: str) -> str:
    return re.escape(item) if is_literal(item) else item


def _representatives(automata: Sequence[_Automaton]) -> str:
    """Return one character of each set that all expressions treat alike, letters first."""
    classes = {characters for one in automata for steps in one.steps for characters, _ in steps}
    found: dict[tuple[bool, ...], str] = {}
    ordered = list(classes)
    for character in _CHARACTERS:
        found.setdefault(tuple(character in characters for characters in ordered), character)
    return "".join(found.values())


@lru_cache(maxsize=1024)
def _found(said: str, flags: int) -> frozenset[str]:
    return frozenset(re.findall(said, _CHARACTERS, flags))


def _characters(kind: str, value: Any, flags: int) -> frozenset[str]:
    if kind == "ANY":
        return frozenset(_CHARACTERS)
    return _found(class_said(value if kind == "IN" else [(kind, value)]), flags)
