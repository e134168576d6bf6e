"""Which topics a flow takes: include and exclude, as full matches against names on the source cluster.

The rules are MirrorMaker 2's (`DefaultTopicFilter`): exclude wins, internal topics are never taken. One is ours: an
item without regular-expression characters is a literal name, so that the dot in `payments.eu` means a dot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

LITERAL_NAME = re.compile(r"[A-Za-z0-9._-]+")

ALWAYS_EXCLUDED = (r"__.*", r".*[.-]internal", r".*\.replica", r"anabranch-.*\.internal")


def is_literal(item: str) -> bool:
    """Tell whether a list item is a plain name and not a regular expression."""
    return LITERAL_NAME.fullmatch(item) is not None


def is_internal(name: str) -> bool:
    """Tell whether a topic is one that no flow ever takes, for its name."""
    return any_matches(ALWAYS_EXCLUDED, name)


@lru_cache(maxsize=4096)
def _pattern(item: str) -> re.Pattern[str]:
    return re.compile(re.escape(item) if is_literal(item) else item)


def any_matches(items: tuple[str, ...], name: str) -> bool:
    """Tell whether one of some names and regular expressions matches the whole name."""
    return any(_pattern(item).fullmatch(name) for item in items)


@dataclass(frozen=True)
class Selection:
    """Names chosen by include and exclude lists.

    Attributes:
        include: names and regular expressions (Python's `re`); one must match fully.
        exclude: names and regular expressions; none may match.
        required: whether a literal name in `include` that does not exist is an error.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    required: bool = False

    def matches(self, name: str) -> bool:
        """Tell whether the topic `name` is chosen."""
        if not any_matches(self.include, name):
            return False
        return not any_matches(self.exclude, name) and not any_matches(ALWAYS_EXCLUDED, name)

    def against(self, name: str) -> str | None:
        """Say which item stands against the topic `name`; None where it is chosen."""
        for kind, items in (("never taken", ALWAYS_EXCLUDED), ("excluded", self.exclude)):
            item = next((item for item in items if any_matches((item,), name)), None)
            if item is not None:
                return f"{kind}: {item}"
        return None if self.matches(name) else f"matches none of {', '.join(self.include)}"

    def literals(self) -> tuple[str, ...]:
        """Return the included items that are plain names."""
        return tuple(item for item in self.include if is_literal(item))
