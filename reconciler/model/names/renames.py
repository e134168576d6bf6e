r"""One rename rule: topics that match are called something else.

`from` reads as in include lists: a plain name, or a regular expression that matches the whole name. `to` is a name in
which `\1` and `\g<name>` stand for what the groups of `from` matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from reconciler.model.names.linear import group_numbers
from reconciler.model.names.patterns import compiled, matched_groups
from reconciler.model.names.selection import is_literal

GROUP = re.compile(r"\\(?:[1-9][0-9]?|g<[A-Za-z_][A-Za-z0-9_]*>|g<[0-9]{1,2}>)")
"""How `to` refers to a group."""


@dataclass(frozen=True)
class RenameRule:
    """A rule; `declare` has made sure that it can be applied.

    Attributes:
        pattern: a plain name, or a regular expression (see `patterns`).
        replacement: the new name, with references to groups.
        place: where it is declared, for messages; two rules that differ in it alone are equal.
    """

    pattern: str
    replacement: str
    place: str = field(default="", compare=False)

    def matches(self, topic: str) -> bool:
        """Return whether the rule decides about `topic`."""
        return topic == self.pattern if is_literal(self.pattern) else compiled(self.pattern).fullmatch(topic)

    def renamed(self, topic: str) -> str | None:
        """Return the new name of `topic`; None where this rule does not match."""
        if not self.matches(topic):
            return None
        parts = references(self.pattern, self.replacement)
        if len(parts) == 1:
            return self.replacement
        groups = (topic,) if is_literal(self.pattern) else matched_groups(self.pattern, topic) or ()
        return "".join(groups[part] if isinstance(part, int) else part for part in parts)

    def may_give(self, name: str) -> bool:
        """Return whether some topic could be called `name` by this rule."""
        begin, *inner = GROUP.split(self.replacement)
        if not inner:
            return name == begin
        end = inner.pop()
        at, last = len(begin), len(name) - len(end)
        if at > last or not (name.startswith(begin) and name.endswith(end)):
            return False
        # Whatever groups stand for: the earliest place of a part leaves the most for the others.
        for part in inner:
            found = name.find(part, at, last)
            if found < 0:
                return False
            at = found + len(part)
        return True


@lru_cache(maxsize=1024)
def references(pattern: str, replacement: str) -> tuple[str | int, ...]:
    r"""Return a replacement's texts, and between each two of them the number of a group; 0 is the whole name.

    Args:
        pattern: a plain name, or a regular expression.
        replacement: with groups as `GROUP` reads them.

    Raises:
        LookupError: it refers to a group that the pattern does not have.
        BadPattern: the pattern is no regular expression.
    """
    count, numbers = (0, {}) if is_literal(pattern) else group_numbers(pattern)
    parts: list[str | int] = []
    at = 0
    for found in GROUP.finditer(replacement):
        said = found.group().removeprefix("\\").removeprefix("g<").removesuffix(">")
        number = int(said) if said.isdigit() else numbers.get(said, -1)
        if not 0 <= number <= count:
            message = f"invalid group {said}"
            raise LookupError(message)
        parts += [replacement[at : found.start()], number]
        at = found.end()
    return (*parts, replacement[at:])
