"""Whether a topic can be told from another one of its name.

Pure.
"""

from __future__ import annotations

_NO_ID = frozenset("A")


def has_id(topic_id: str) -> bool:
    """Tell whether an id is one: brokers before 2.8 have none, and say all zero, which is `A` alone in base64."""
    return not _NO_ID.issuperset(topic_id)
