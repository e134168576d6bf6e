"""Whether an expression can match any name that Kafka allows, and which part prevents that.

Names of topics and of their settings have ASCII letters, digits, `.`, `_` and `-` alone, so an expression that requires
anything else matches nothing, on any cluster. An alternative between bars that requires it is dead as well.
"""

from __future__ import annotations

import re
import string
from typing import Any, NamedTuple

from reconciler.model.names.linear import class_said, flags_inside, parsed
from reconciler.model.names.topic_names import LONGEST_NAME

_ALPHABET = f"{string.ascii_letters}{string.digits}._-"


class DeadEnd(NamedTuple):
    """Why an expression, or a part of it, matches no name.

    Attributes:
        character: that no name has, where one is required.
        reason: in words that follow "it", where it is no character.
    """

    character: str = ""
    reason: str = ""


def dead_end(pattern: str) -> DeadEnd | None:
    """Return what keeps an expression, or a part of it between bars, from matching any name; None where nothing does.

    Args:
        pattern: an expression of Python's `re`, or a plain name.

    Raises:
        BadPattern: it is no such expression.
        NotLinear: it is too long.
    """
    tree = parsed(pattern)
    try:
        character = _of(tree, tree.state.flags)
        least, most = tree.getwidth()
    except RecursionError:
        # Too large to be matched, which its translation to RE2 reports.
        return None
    if character:
        return DeadEnd(character)
    if not most:
        return DeadEnd(reason="matches empty text alone")
    if least > LONGEST_NAME:
        return DeadEnd(reason=f"needs at least {least} characters, Kafka allows {LONGEST_NAME}")
    return None


def _of(nodes: Any, flags: int) -> str:
    """Return a character that stands one behind the other with the rest, and that no name has; empty without one."""
    return next(filter(None, (_of_node(str(kind), value, flags) for kind, value in nodes)), "")


def _of_node(kind: str, value: Any, flags: int) -> str:
    match kind:
        case "LITERAL" | "IN":
            return _of_class([(kind, value)] if kind == "LITERAL" else value, flags)
        case "BRANCH":
            return next(filter(None, (_of(nodes, flags) for nodes in value[1])), "")
        case "SUBPATTERN":
            _, added, removed, nodes = value
            return _of(nodes, flags_inside(flags, added, removed))
        case "MAX_REPEAT" | "MIN_REPEAT" if value[0]:
            return _of(value[2], flags)
    return ""


def _of_class(nodes: Any, flags: int) -> str:
    kept = flags & (re.IGNORECASE | re.ASCII)
    if re.compile(class_said(nodes), kept).search(_ALPHABET):
        return ""
    kind, first = nodes[0]
    match str(kind):
        case "LITERAL":
            return chr(first)
        case "RANGE":
            return chr(first[0])
    # Such as `\s`: the first character that it has.
    found = re.compile(class_said(nodes), kept).search("".join(map(chr, range(0x300))))
    return found.group() if found else ""
