"""Makes values of the model of fields that take a reference or a value; nothing is looked up here."""

from __future__ import annotations

from reconciler.declare.documents.located import SourcePlace
from reconciler.model.connection.references import Reference, Text


def lookup(place: SourcePlace, text: str | None = None) -> Text:
    """Return the reference that stands at a place, which it keeps for its errors; any other text as it is.

    Args:
        place: of the value; it has passed the schema.
        text: a part of the value; None for all of it.
    """
    said = str(place.value) if text is None else text
    try:
        return Reference.parse(said, place.where)
    except ValueError:
        return said
