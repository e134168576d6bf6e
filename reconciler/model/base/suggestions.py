"""Which of the names that there are was probably meant by one that is not among them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.75
_LENGTHS_APART = 3
_MOST_COMPARED = 2000


def near(name: str, there: Iterable[str], separator: str = ".") -> str | None:
    """Return the name that `name` was probably meant to be; None where none is alike.

    Args:
        name: that is not there.
        there: names that are.
        separator: what stands between the alias of a source and the name of a remote topic.
    """
    names = list(there)
    folded = name.casefold()
    # Other capitals, or the prefix of a remote topic that was left out.
    for is_meant in (lambda one: one.casefold() == folded, lambda one: one.endswith(f"{separator}{name}")):
        if found := min(filter(is_meant, names), default=None):
            return found
    alike = [one for one in names if abs(len(one) - len(name)) <= _LENGTHS_APART][:_MOST_COMPARED]
    return next(iter(get_close_matches(name, alike, n=1, cutoff=_ALIKE)), None)


def did_you_mean(name: str, there: Iterable[str], separator: str = ".") -> str:
    """Return `; did you mean …?` for a name that is not there, or nothing; takes what `near` does."""
    found = near(name, there, separator)
    return f"; did you mean {found}?" if found else ""
