r"""Forms of regular expressions that Java has and Python's `re` has not, and what is written here.

`selections` calls it for an expression that cannot be used: users bring those of MirrorMaker 2 along.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from reconciler.model.names import patterns
from reconciler.model.names.patterns import BadPattern, NotLinear

# By name in `\p{…}`, as far as names of topics can have them.
_CLASSES = {
    **dict.fromkeys(("Alpha", "IsAlphabetic", "L", "IsL", "javaLetter"), "A-Za-z"),
    **dict.fromkeys(("Lower", "Ll", "IsLowercase", "javaLowerCase"), "a-z"),
    **dict.fromkeys(("Upper", "Lu", "IsUppercase", "javaUpperCase"), "A-Z"),
    **dict.fromkeys(("Digit", "Nd", "N", "IsDigit", "javaDigit"), "0-9"),
    **dict.fromkeys(("Alnum", "javaLetterOrDigit"), "A-Za-z0-9"),
    **dict.fromkeys(("Punct", "P", "IsPunctuation"), "._-"),
    **dict.fromkeys(("ASCII", "Graph", "Print"), "A-Za-z0-9._-"),
    "XDigit": "0-9A-Fa-f",
}
_CLASS = re.compile(r"\\(?P<kind>[pP])(?:\{(?P<name>\^?\w+)\}|(?P<letter>[A-Z]))")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_NAMED = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERRED = re.compile(r"\\k<([A-Za-z]\w*)>")
_ESCAPED_CODE = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}")
_POSSESSIVE = re.compile(r"((?<!\\)[*+?}])\+")


def explained(pattern: str) -> str | None:
    r"""Return what an expression has that is Java's, and how the whole is written here; None where it has nothing such.

    Args:
        pattern: an expression that cannot be used.
    """
    found, written = list[str](), pattern
    forms: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
        (r"\Q…\E", _QUOTED, lambda match: re.escape(match[1])),
        ("(?<name>…)", _NAMED, lambda _: "(?P<"),
        (r"\k<name>", _REFERRED, lambda match: f"(?P={match[1]})"),
        (r"\p{…}", _CLASS, _as_class),
        (r"\x{…}", _ESCAPED_CODE, lambda match: f"\\x{int(match[1], 16):02x}" if len(match[1]) <= len("ff") else ""),
        (r"\z", re.compile(r"\\[zZ]$"), lambda _: ""),
        ("a possessive quantifier", _POSSESSIVE, lambda match: match[1]),
    )
    for form, expression, said in forms:
        changed = expression.sub(said, written)
        if changed != written:
            found.append(form)
            written = changed
    if "&&" in pattern:
        return "&& in a class is Java's: write the characters that are left"
    if not found:
        return None
    what = f"{' and '.join(found)} {'are' if len(found) > 1 else 'is'} Java's"
    return f"{what}; write {written}" if _is_usable(written) else f"{what}; write it in the syntax of Python's re"


def _is_usable(pattern: str) -> bool:
    try:
        patterns.check(pattern, any_text=True)
    except (BadPattern, NotLinear):
        return False
    return True


def _as_class(match: re.Match[str]) -> str:
    name = match["name"] or match["letter"]
    inside = _CLASSES.get(name.removeprefix("^"))
    if inside is None:
        return match[0]
    is_negated = (match["kind"] == "P") != name.startswith("^")
    if _is_in_class(match.string, match.start()):
        return inside if not is_negated else match[0]
    return f"[{'^' if is_negated else ''}{inside}]"


def _is_in_class(text: str, at: int) -> bool:
    """Return whether a place of an expression is between brackets."""
    before = re.sub(r"\\.", "", text[:at])
    return before.rfind("[") > before.rfind("]")
