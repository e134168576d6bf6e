"""Whether a topic can be distinguished from another one of its name.

Pure.
"""

from __future__ import annotations

_NO_ID = frozenset("A")
# Kafka's own spelling, in which failback recorded ids of originals that it had made anew, and that of clients.
_PLAIN = str.maketrans("-_", "+/")


def has_id(topic_id: str) -> bool:
    """Return whether an id is one: brokers before 2.8 have none, and return all zero, which is `A` alone in base64."""
    return not _NO_ID.issuperset(topic_id)


def is_same(one: str, other: str) -> bool:
    """Return whether two ids are one, in whichever of both alphabets of base64."""
    return one.translate(_PLAIN) == other.translate(_PLAIN)
