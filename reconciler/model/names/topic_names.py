"""Which names topics may have, and which topics have a meaning of their own.

The rules are Kafka's (`org.apache.kafka.common.internals.Topic`). Policies name topics, and `declare` and `plan` hold
the names against this.
"""

from __future__ import annotations

import re

from reconciler.model.names.own_names import CHECKPOINTS_SUFFIX, SYNCS_PREFIX

LONGEST_NAME = 249
"""Kafka's limit for topic names (`Topic.MAX_NAME_LENGTH`)."""

NAME_CHARACTERS = "letters, digits, ., _ and -"

HEARTBEATS = "heartbeats"
"""MirrorMaker 2's topic of heartbeats: every cluster has its own."""

_UNKNOWN_CHARACTER = re.compile(r"[^a-zA-Z0-9._-]")


def name_fault(name: str) -> str | None:
    """Return why Kafka takes no topic of this name, in words that follow "its name"; None where it does."""
    if not name:
        return "is empty"
    if name in (".", ".."):
        return f"is {name}, which Kafka refuses"
    if unknown := _UNKNOWN_CHARACTER.search(name):
        return f"has the character {unknown.group()!r} in it, Kafka allows {NAME_CHARACTERS}"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, Kafka allows {LONGEST_NAME}"
    return None


def is_heartbeats(topic: str, separator: str) -> bool:
    """Return whether a topic holds heartbeats, of its own cluster or of another one."""
    return topic == HEARTBEATS or topic.endswith(separator + HEARTBEATS)


def is_mirrors_own(topic: str, separator: str) -> bool:
    """Return whether a topic holds internal data in MirrorMaker 2's format: checkpoints, or offset syncs.

    Under most separators these names are internal to all tools; `_` makes them `a_checkpoints_internal`.
    """
    # With the prefix of its source even a topic of this bare name would become one of checkpoints.
    if f"{separator}{topic}".endswith(separator.join(("", *CHECKPOINTS_SUFFIX))):
        return True
    return topic.startswith(f"{SYNCS_PREFIX}{separator}") and topic.endswith(f"{separator}internal")


def metric_name(topic: str) -> str:
    """Return what brokers call a topic in their metrics, where `.` and `_` are one."""
    return topic.replace(".", "_")
