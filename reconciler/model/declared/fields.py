"""A field of a flow with its effective value, and the line that sets it: `declare` makes them, `explain` shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """One effective field.

    Attributes:
        key: as a file writes it, with dots: `topics.include`.
        value: in JSON types, as it is written; None where nothing is.
        place: `file:line:column (path)`; empty where it is built in.
    """

    key: str
    value: Any
    place: str
