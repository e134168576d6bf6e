"""What to do about a value that YAML reads as another type than the expected one.

`violations` calls it. Without quotes `007` is a number and `true` a truth value; in YAML 1.2 `yes` and `on` are text.
"""

from __future__ import annotations

import re
from typing import Any

from reconciler.declare.documents import words
from reconciler.declare.documents.located import SourcePlace

_TRUE, _FALSE = ("yes", "on", "y", "true", "1"), ("no", "off", "n", "false", "0")
_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")


def retyped(place: SourcePlace, schema: dict[str, Any], secret: bool) -> str | None:
    """Return how a value is written so that it has the expected type; None where that is ambiguous.

    Args:
        place: where it stands.
        schema: what it violates by its type.
        secret: whether it must not be shown.
    """
    types = schema.get("type", ())
    wanted = (types,) if isinstance(types, str) else types
    if "string" in wanted:
        return _quoted(place, schema, secret)
    if secret or not isinstance(place.value, str | int) or isinstance(place.value, bool):
        return None
    said = str(place.value).strip().lower()
    if "boolean" in wanted and said in (*_TRUE, *_FALSE):
        return f"write {words.example(place.path, 'true' if said in _TRUE else 'false')}"
    if "integer" in wanted and isinstance(place.value, str) and _NUMBER.fullmatch(said):
        return f"write {words.example(place.path, int(said))}, without quotes"
    return None


def _quoted(place: SourcePlace, schema: dict[str, Any], secret: bool) -> str | None:
    """Return the text in quotes that stands there without; None where it would be wrong as text, too."""
    text = place.text
    if not text or not re.search(schema.get("pattern", ""), text):
        return None
    return "put it in quotes" if secret else f"put it in quotes: '{text}'"
