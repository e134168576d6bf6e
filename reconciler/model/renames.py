r"""One rename rule: topics that match are called something else.

`from` reads as in include lists: a plain name, or a regular expression that matches the whole name. `to` is a name in
which `\1` and `\g<name>` stand for what the groups of `from` matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from reconciler.model.selection import is_literal

GROUP = re.compile(r"\\(?:[1-9][0-9]?|g<[A-Za-z_][A-Za-z0-9_]*>|g<[0-9]{1,2}>)")
"""How `to` refers to a group."""


@dataclass(frozen=True)
class RenameRule:
    """A rule; `declare` has made sure that it can be applied.

    Attributes:
        pattern: a plain name, or a regular expression (Python's `re`).
        replacement: the new name, with references to groups.
        place: where it is declared, for messages; two rules that differ in it alone are equal.
    """

    pattern: str
    replacement: str
    place: str = field(default="", compare=False)

    def renamed(self, topic: str) -> str | None:
        """Return what `topic` is called; None where this rule says nothing of it."""
        if is_literal(self.pattern):
            return self.replacement if topic == self.pattern else None
        found = _compiled(self.pattern).fullmatch(topic)
        return None if found is None else found.expand(self.replacement)

    def may_give(self, name: str) -> bool:
        """Tell whether some topic could be called `name` by this rule."""
        return _shape(self.replacement).fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=1024)
def _shape(replacement: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in GROUP.split(replacement)))
