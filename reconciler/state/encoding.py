"""The values of journals as they are stored: JSON objects by keys that are text."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Message


def encoded(value: dict[str, Any] | None) -> bytes | None:
    """Return a value as it is stored; a tombstone for None."""
    return None if value is None else json.dumps(value, separators=(",", ":")).encode()


def decoded(message: Message) -> tuple[str, dict[str, Any] | None] | None:
    """Return key and value; None for what nobody of us writes, which must not end whoever reads our own values."""
    try:
        key, data = (message.key() or b"").decode(), message.value()
        value = None if data is None else json.loads(data)
    except ValueError:
        return None
    return (key, value) if value is None or isinstance(value, dict) else None
