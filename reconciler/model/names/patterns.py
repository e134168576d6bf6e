r"""Regular expressions of topology files and command lines: Python's syntax, matched by RE2 in linear time.

Python's `re` backtracks: `(a+)+b` takes seconds for a name of 26 letters, and twice as long for each letter more, while
no other thread of the process runs, and no signal is handled. Names come from clusters, where others choose them.

The only module of `model` with a third party's package; see ARCHITECTURE.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from reconciler.model.names import linear
from reconciler.model.names.linear import BadPattern, NotLinear

# What RE2 may use for one expression; it shares this between the program and its cache of names.
_MOST_MEMORY = 8 * 1024 * 1024


class Pattern:
    """A regular expression that is matched against whole names."""

    def __init__(self, pattern: str, any_text: bool = False) -> None:
        """Compile an expression of Python's `re` for names in ASCII; for others when the first of them comes.

        Args:
            pattern: the expression.
            any_text: whether a dot matches line ends as well, which names of groups may have.

        Raises:
            BadPattern: it is no such expression.
            NotLinear: it cannot be matched in linear time.
        """
        self.pattern = pattern
        self._any_text = any_text
        self._narrow = _compiled(pattern, wide=False, groups=False, any_text=any_text)

    def fullmatch(self, name: str) -> bool:
        """Return whether the expression matches a whole name."""
        if name.isascii():
            return self._narrow.fullmatch(_bytes(name)) is not None
        try:
            wide = _compiled(self.pattern, wide=True, groups=False, any_text=self._any_text)
        except NotLinear:
            # `check` refuses it for groups, and no topic has such a name.
            return False
        return wide.fullmatch(_bytes(name)) is not None


@lru_cache(maxsize=4096)
def compiled(pattern: str, any_text: bool = False) -> Pattern:
    """Return an expression, ready to be matched; takes and raises what `Pattern` does."""
    return Pattern(pattern, any_text)


def matched_groups(pattern: str, name: str) -> tuple[str, ...] | None:
    """Return what an expression and its groups have matched, if it matches a whole name; None where it does not.

    Args:
        pattern: the expression.
        name: of a topic.

    Returns:
        The name itself, then the text of each group; nothing for a group that took no part.

    Raises:
        BadPattern, NotLinear: the expression is not usable.
    """
    found = _compiled(pattern, wide=not name.isascii(), groups=True).fullmatch(_bytes(name))
    if found is None:
        return None
    return (name, *(group.decode("utf-8", "surrogatepass") for group in found.groups(b"")))


def check(pattern: str, any_text: bool = False) -> None:
    """Make sure that an expression can be matched.

    Args:
        pattern: the expression.
        any_text: whether names may have any characters, as those of groups; topics and settings have ASCII.

    Raises:
        BadPattern: it is no expression of Python's `re`.
        NotLinear: it cannot be matched in linear time.
    """
    compiled(pattern, any_text)
    if any_text:
        _compiled(pattern, wide=True, groups=False, any_text=True)


@lru_cache(maxsize=1024)
def _compiled(pattern: str, wide: bool, groups: bool, any_text: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    options.never_capture = not groups
    options.encoding = re2.Options.Encoding.UTF8 if wide else re2.Options.Encoding.LATIN1
    try:
        return re2.compile(linear.translated(pattern, wide, any_text).encode("ascii"), options)
    except re2.error as error:
        reason = error.args[0].decode("ascii", "replace") if isinstance(error.args[0], bytes) else str(error)
        message = f"RE2, which matches it, does not take it: {reason}"
        raise NotLinear(message, "make several items of it, or repeat less") from None


def _bytes(name: str) -> bytes:
    """Return a name as RE2 reads it; names from a command line may have single surrogates."""
    return name.encode("utf-8", "surrogatepass")


__all__ = ["BadPattern", "NotLinear", "Pattern", "check", "compiled", "matched_groups"]
