r"""Writes an expression of Python's `re` as one of RE2, which matches in a time that grows with the name alone.

Python parses the expression, so that every character of it means what it means to `re`; what RE2 reads is made from
that: code points, classes as ranges, groups, bars and repetitions, and no syntax in which the two differ. Which
characters a class matches Python's `re` decides as well. What needs backtracking, or would be decided otherwise, is
refused.

Names of topics and settings are ASCII. Names of groups may be any text: for these an expression is written anew, as
its classes are larger then.
"""

from __future__ import annotations

import importlib
import re
import warnings
from functools import cache, lru_cache
from typing import Any

MOST_CHARACTERS = 10_000
"""How long an expression may be."""

MOST_STATES = 20_000
"""How many characters and classes an expression may have with its repetitions written out."""

MOST_REPEATED = 1000
"""RE2's limit for the numbers of a repetition, those inside of each other multiplied."""

_ALPHABETS = re.ASCII | re.UNICODE
_ASCII = "".join(map(chr, range(128)))
_NOTHING = r"[^\x{0}-\x{ff}]"
_NOTHING_WIDE = r"[^\x{0}-\x{10ffff}]"
_PREDEFINED = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_LOOKS = {
    ("ASSERT", 1): "a look-ahead, (?=…)",
    ("ASSERT_NOT", 1): "a negative look-ahead, (?!…)",
    ("ASSERT", -1): "a look-behind, (?<=…)",
    ("ASSERT_NOT", -1): "a negative look-behind, (?<!…)",
}
_BACKTRACKING = {
    "GROUPREF": (r"a back-reference, such as \1", "write out what may stand there"),
    "GROUPREF_EXISTS": ("a condition, (?(1)…)", "write both cases with a bar between them"),
    "ATOMIC_GROUP": ("an atomic group, (?>…)", "write (?:…)"),
    "POSSESSIVE_REPEAT": ("a possessive quantifier, such as .*+", "write it without the last +"),
}


class BadPattern(ValueError):
    """Text is no regular expression of Python's `re`; the message gives the reason."""


class NotLinear(ValueError):
    """A regular expression cannot be matched in linear time as `re` would match it; the message gives the reason.

    Attributes:
        remedy: what to do.
        looks_around: whether it has lookahead or lookbehind assertions.
    """

    def __init__(self, reason: str, remedy: str, looks_around: bool = False) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.looks_around = looks_around


def translated(pattern: str, wide: bool = False, any_text: bool = False) -> str:
    """Return what RE2 takes for an expression that is to match a whole name.

    Args:
        pattern: an expression of Python's `re`.
        wide: whether names may have any characters; else they are ASCII, and read as ISO 8859-1.
        any_text: whether names may have line ends in them, which a dot is to match as everything else.

    Raises:
        BadPattern: it is no such expression.
        NotLinear: it has what RE2 has not, or is too large.
    """
    tree = parsed(pattern)
    try:
        flags = tree.state.flags | (re.DOTALL if any_text else 0)
        return _Writer(wide).sequence(tree, flags, is_last=True)
    except RecursionError:
        found = "it has too many groups inside of each other"
        raise _too_large(found) from None


def group_numbers(pattern: str) -> tuple[int, dict[str, int]]:
    """Return how many groups an expression has, and the numbers of those with names.

    Raises:
        BadPattern: it is no expression of Python's `re`.
    """
    state = parsed(pattern).state
    return state.groups - 1, dict(state.groupdict)


def empty_rounds(pattern: str) -> bool:
    """Return whether an expression has a group in a repetition of what may be empty.

    There `re` and RE2 differ in what the group has matched in the end: `(a*)*` of `aa` is empty, or `aa`.

    Raises:
        BadPattern: it is no expression of Python's `re`.
    """
    return _has_empty_rounds(parsed(pattern))


@lru_cache(maxsize=256)
def parsed(pattern: str) -> Any:
    """Return an expression as the parser of `re` has read it: pairs of what stands there, and its value.

    Raises:
        BadPattern: it is no expression of Python's `re`.
        NotLinear: it is too long.
    """
    if len(pattern) > MOST_CHARACTERS:
        found = f"it has {len(pattern)} characters, at most {MOST_CHARACTERS}"
        raise _too_large(found)
    # The parser of `re`, which has no public name.
    parser = importlib.import_module("re._parser")
    try:
        with warnings.catch_warnings():
            # What Python would read differently one day is no stable declaration.
            warnings.simplefilter("error")
            return parser.parse(pattern)
    except re.error as error:
        raise BadPattern(error.msg if error.pos is None else f"{error.msg} at character {error.pos + 1}") from None
    except (Warning, ValueError, OverflowError, RecursionError) as error:
        raise BadPattern(str(error) or "too large") from None


class _Writer:
    """Writes one expression; each node is a pair of what it is, by the names of `re._constants`, and its value."""

    def __init__(self, wide: bool) -> None:
        self._wide = wide
        self._states = 0

    def sequence(self, nodes: Any, flags: int, is_last: bool) -> str:
        """Return what stands one behind the other.

        Args:
            nodes: parsed by `re`.
            flags: of `re`, in force there.
            is_last: whether nothing but anchors follows in the whole expression.
        """
        kinds = [str(kind) for kind, _ in nodes]
        taking = max((index for index, kind in enumerate(kinds) if kind != "AT"), default=-1)
        return "".join(
            self._node(kind, value, flags, is_last and index >= taking)
            for index, (kind, (_, value)) in enumerate(zip(kinds, nodes, strict=True))
        )

    def _node(self, kind: str, value: Any, flags: int, is_last: bool) -> str:
        match kind:
            case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY":
                return self._character(kind, value, flags)
            case "BRANCH":
                return f"(?:{'|'.join(self.sequence(nodes, flags, is_last) for nodes in value[1])})"
            case "SUBPATTERN":
                group, added, removed, nodes = value
                inside = self.sequence(nodes, flags_inside(flags, added, removed), is_last)
                return f"({inside})" if group else f"(?:{inside})"
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repetition(value, flags) + ("?" if kind == "MIN_REPEAT" else "")
            case "AT":
                return self._anchor(str(value), flags, is_last)
            case "ASSERT" | "ASSERT_NOT":
                remedy = "write it without, and leave names out in another way"
                raise _needs_backtracking(_LOOKS[kind, value[0]], remedy, looks_around=True)
        construct, remedy = _BACKTRACKING.get(kind, (f"{kind.lower()}, which is not known here", "write it otherwise"))
        raise _needs_backtracking(construct, remedy)

    def _character(self, kind: str, value: Any, flags: int) -> str:
        self._states += 1
        self._see_size()
        if kind == "ANY":
            return r"(?s:.)" if flags & re.DOTALL else r"[^\x{a}]"
        if kind == "LITERAL" and not flags & re.IGNORECASE:
            return f"\\x{{{value:x}}}" if self._wide or value < len(_ASCII) else _NOTHING
        nodes = value if kind == "IN" else [(kind, value)]
        return _ranges(class_said(nodes), flags & (re.IGNORECASE | re.ASCII), self._wide)

    def _repetition(self, value: Any, flags: int) -> str:
        least, most, nodes = value
        is_endless = str(most) == "MAXREPEAT"
        times = int(least if is_endless else most)
        if times > MOST_REPEATED:
            found = f"it repeats {times} times, at most {MOST_REPEATED}"
            raise _too_large(found)
        before = self._states
        inside = self.sequence(nodes, flags, is_last=False)
        self._states += (self._states - before) * (times + is_endless - 1)
        self._see_size()
        return f"(?:{inside}){{{least},{'' if is_endless else most}}}"

    def _anchor(self, kind: str, flags: int, is_last: bool) -> str:
        match kind:
            case "AT_BEGINNING" if flags & re.MULTILINE:
                return "(?m:^)"
            case "AT_BEGINNING" | "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END" if flags & re.MULTILINE:
                return "(?m:$)"
            case "AT_END" if not is_last:
                reason = "it has a $ that is not at the end"
                raise NotLinear(reason, "remove it: the whole name is matched anyway")
            case "AT_END" | "AT_END_STRING":
                return r"\z"
        if self._wide and not flags & re.ASCII:
            remedy = "write which characters stand there, or (?a) in front of the expression"
            reason = r"it has \b or \B among letters that need not be ASCII"
            raise NotLinear(reason, remedy)
        return r"\b" if kind == "AT_BOUNDARY" else r"\B"

    def _see_size(self) -> None:
        if self._states > MOST_STATES:
            found = f"with its repetitions written out it has more than {MOST_STATES} characters"
            raise _too_large(found)


def flags_inside(flags: int, added: int, removed: int) -> int:
    """Return the flags inside of a group; ASCII and Unicode stand for each other's opposite."""
    return (flags & ~(_ALPHABETS if added & _ALPHABETS else 0) | added) & ~removed


def class_said(nodes: Any) -> str:
    """Return a class as `re` reads it, of what its parser has found between the brackets."""
    parts: list[str] = []
    for kind, value in nodes:
        match str(kind):
            case "NEGATE" | "NOT_LITERAL" as said:
                parts.append("^" if said == "NEGATE" else f"^{_escaped(value)}")
            case "LITERAL":
                parts.append(_escaped(value))
            case "RANGE":
                parts.append(f"{_escaped(value[0])}-{_escaped(value[1])}")
            case _:
                parts.append(_PREDEFINED[str(value)])
    return f"[{''.join(parts)}]"


def _escaped(character: int) -> str:
    return f"\\U{character:08x}"


@lru_cache(maxsize=1024)
def _ranges(said: str, flags: int, wide: bool) -> str:
    """Return the characters that a class of `re` matches, as a class of RE2."""
    alphabet = _everything() if wide else _ASCII
    found = [match.span() for match in re.compile(f"{said}+", flags).finditer(alphabet)]
    if not found:
        return _NOTHING_WIDE if wide else _NOTHING
    inside = "".join(f"\\x{{{begin:x}}}-\\x{{{end - 1:x}}}" for begin, end in found)
    # Of `[Ss]|b` RE2 makes a class with U+017F in it, another s, and likewise of k; not behind a repetition.
    return f"(?:[{inside}]){{1}}" if wide and len(found) == len("Ss") else f"[{inside}]"


@cache
def _everything() -> str:
    """Return every character, each at the place of its number."""
    return "".join(map(chr, range(0x110000)))


def _has_empty_rounds(nodes: Any) -> bool:
    for kind, value in nodes:
        inside: list[Any] = []
        match str(kind):
            case "BRANCH":
                inside = value[1]
            case "SUBPATTERN":
                inside = [value[-1]]
            case "MAX_REPEAT" | "MIN_REPEAT":
                inside = [value[2]]
                if value[1] > 1 and value[2].getwidth()[0] == 0 and _has_groups(value[2]):
                    return True
        if any(map(_has_empty_rounds, inside)):
            return True
    return False


def _has_groups(nodes: Any) -> bool:
    for kind, value in nodes:
        match str(kind):
            case "SUBPATTERN" if value[0] or _has_groups(value[-1]):
                return True
            case "BRANCH" if any(map(_has_groups, value[1])):
                return True
            case "MAX_REPEAT" | "MIN_REPEAT" if _has_groups(value[2]):
                return True
    return False


def _needs_backtracking(construct: str, remedy: str, looks_around: bool = False) -> NotLinear:
    return NotLinear(f"it has {construct}, and needs backtracking", remedy, looks_around)


def _too_large(found: str) -> NotLinear:
    return NotLinear(f"{found}: it is too large", "make several items of it, or repeat less")
