"""What is meant by characters that no name has: similar ASCII characters, globs, variables.

`selections` and `renames` call it for items of lists. Nothing here accepts or refuses; it words messages.
"""

from __future__ import annotations

import re
import unicodedata

from reconciler.model.names.patterns import BadPattern, NotLinear
from reconciler.model.names.reachable import DeadEnd, dead_end
from reconciler.model.names.selection import is_literal
from reconciler.model.names.topic_names import NAME_CHARACTERS, name_fault

_TWINS = {
    # Cyrillic, small and capital, and similar letters in ASCII.
    **dict(
        zip(
            "\u0430\u0441\u0435\u043e\u0440\u0456\u0458\u0455\u0445\u0443\u04bb\u0501\u051b\u051d\u044c",
            "aceopijsxyhdqwb",
            strict=True,
        )
    ),
    **dict(
        zip(
            "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0406\u0408\u0405",
            "ABEKMHOPCTXYIJS",
            strict=True,
        )
    ),
    # Greek.
    **dict(zip("αορνιυκγχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aopviukyxABEZHIKMNOPTYX", strict=True)),
    # Dashes, and what stands for a dot or an underscore.
    **dict.fromkeys("\u2010\u2011\u2012\u2013—―\u2212﹣\uff0d", "-"),
    **dict.fromkeys("\u2024·•。", "."),
    **dict.fromkeys("‿\uff3f", "_"),
    # Quotes and blanks are put around names, and are no part of them.
    **dict.fromkeys(
        "“”„‟\u2018\u2019\u201a\u201b«»\u2039\u203a\"'`\u00b4″\u2032\u00a0\u2007\u200b\u200c\u200d\u202f\u2060\ufeff",
        "",
    ),
}
_VARIABLE = re.compile(r"\$\{|\{\{|\$\(|<[A-Za-z_]+>|%[A-Za-z_]+%")
_BRACES = re.compile(r"\{([A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)+)\}")
# A star behind a letter repeats it; what is escaped, in a class, or a quantified class, is no glob.
_STARRED = re.compile(r"\\.|\[[^]]*\]|([A-Za-z0-9_-])\*")
_OTHER_LETTERS = re.compile(r"[^\W\d_]")


def named(character: str) -> str:
    """Return a character with its number and its name in Unicode: `ü (U+00FC, LATIN SMALL LETTER U WITH DIAERESIS)`."""
    shown = f"{character} " if character.isprintable() and not character.isspace() else ""
    name = unicodedata.name(character, "")
    return f"{shown}(U+{ord(character):04X}{f', {name}' if name else ''})"


def in_ascii(text: str) -> str | None:
    """Return text with similar ASCII characters in place of the others; None where one has no similar character."""
    found = "".join(_twin(character) for character in text)
    return found if found.isascii() else None


def _twin(character: str) -> str:
    if character.isascii() and character not in _TWINS:
        return character
    if character in _TWINS:
        return _TWINS[character]
    # Letters with accents, full width, ligatures.
    parts = unicodedata.normalize("NFKD", character)
    plain = "".join(part for part in parts if not unicodedata.combining(part))
    return plain if plain.isascii() else character


def no_name(item: str, end: DeadEnd, what: str) -> tuple[str, str]:
    """Return why an item of a list matches no name, and what to do.

    Args:
        item: as it is written.
        end: what is the matter with it.
        what: the kind of name, `topic` or `setting`.
    """
    if not end.character:
        return f"it {end.reason}", f"correct it, or remove it: it matches no {what}"
    at = item.find(end.character)
    place = f"character {at + 1} is" if at >= 0 else "it needs a character such as"
    reason = f"{place} {named(end.character)}, which no {what}'s name has"
    return reason, _remedy(item, what)


def _remedy(item: str, what: str) -> str:
    if _VARIABLE.search(item):
        return "it resembles a variable that was not replaced by its value: write the name itself"
    if braces := _BRACES.search(item):
        either = f"({braces[1].replace(',', '|')})"
        return f"did you mean {item.replace(braces.group(), either)}? A regular expression has bars"
    if "%" in item:
        return f"did you mean {item.replace('%', '.*')}? Any text is .* in a regular expression"
    near = in_ascii(item)
    # What is left may be an expression as well as a name.
    if near and near != item and _can_be(near):
        return f"did you mean {near}, in ASCII?"
    return f"correct it: names of {what}s have {NAME_CHARACTERS}"


def _can_be(item: str) -> bool:
    try:
        return (name_fault(item) if is_literal(item) else dead_end(item)) is None
    except (BadPattern, NotLinear):
        return False


def meant_by_glob(item: str) -> str | None:
    """Return the regular expression that an item means that seems to be a glob; None where it does not."""
    if item.startswith("*"):
        return f".*{meant_by_glob(item[1:]) or item[1:]}"
    if not any(found[1] for found in _STARRED.finditer(item)):
        return None
    return _STARRED.sub(lambda found: f"{found[1]}.*" if found[1] else found.group(), item)


def mistaken_group(name: str) -> str | None:
    """Return a character that a group's name probably has by mistake; None where nothing indicates that.

    Groups may have any name. Quotes around one, and letters that only resemble those beside them, are suspicious.
    """
    quotes = next((one for one in name if not one.isascii() and _TWINS.get(one) == ""), None)
    if quotes:
        return quotes
    letters = _OTHER_LETTERS.findall(name)
    twin = next((one for one in letters if not one.isascii() and one in _TWINS), None)
    return twin if any(one.isascii() for one in letters) else None
