"""The values of journals as they are stored: JSON objects by keys that are text."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import methodcaller
from typing import Any, Protocol

from confluent_kafka import Message

from reconciler.model.base.shape import Misfit, parsed
from reconciler.model.declared.cluster import Cluster
from reconciler.state.journals import strangers

Value = dict[str, Any]
"""A value of a journal, as JSON has it."""

Fits = Callable[[str, dict[str, Any]], None]
"""Raises Misfit where a value under a key does not fit."""

# For a header name that is no UTF-8 the library sets an error and returns a list with a gap. Python notices that
# only where the method is called from C: called often enough from Python, it crashes the process.
_headers_of = methodcaller("headers")
# The longest keys hold the name of a group, of up to 32,767 bytes.
_LONGEST_KEY = 40_000


class Stored(dict[str, Any]):
    """A value that its reader checks, with its place in the log.

    Attributes:
        where: names the cluster, the topic and the partition.
        offset: of the record.
    """

    def __init__(self, value: dict[str, Any], where: str, offset: int) -> None:
        super().__init__(value)
        self.where = where
        self.offset = offset

    def pass_over(self, why: str) -> None:
        """Report the record as one that does not fit."""
        strangers.note(self.where, self.offset, why)


def encoded(value: dict[str, Any] | None) -> bytes | None:
    """Return a value as it is stored; a tombstone for None."""
    return None if value is None else json.dumps(value, separators=(",", ":")).encode()


def decoded(message: Message, largest: int) -> tuple[str, dict[str, Any] | None]:
    """Return key and value; None is the value of a tombstone.

    Args:
        message: a record of a journal.
        largest: how many bytes a value may have.

    Raises:
        Misfit: the key is no text, or the value no object of JSON within bounds.
    """
    key, data = message.key() or b"", message.value()
    if len(key) > _LONGEST_KEY:
        why = f"a key of {len(key):,} bytes, expected {_LONGEST_KEY:,} at most"
        raise Misfit(why)
    try:
        name = key.decode()
    except UnicodeDecodeError:
        why = "a key that is not UTF-8"
        raise Misfit(why) from None
    if "\0" in name:
        why = "a key with NUL"
        raise Misfit(why)
    value = None if data is None else parsed(data, largest)
    if value is not None and not isinstance(value, dict):
        why = "JSON that is no object"
        raise Misfit(why)
    return name, value


class JournalBounds(Protocol):
    """The attributes of `topics.JournalTopic` that `read` needs."""

    @property
    def name(self) -> str:
        """The topic."""

    @property
    def largest(self) -> int:
        """How many bytes a value may have."""

    @property
    def fits(self) -> Fits | None:
        """Raises Misfit for a value that does not fit; None where the reader of the values checks them."""


def read(message: Message, cluster: Cluster, topic: JournalBounds) -> tuple[str, dict[str, Any] | None] | None:
    """Return key and value of a record of a journal; None for a record that does not fit, which is reported once.

    Args:
        message: the record.
        cluster: where the journal is.
        topic: which values count there.
    """
    try:
        return fitting(message, cluster, topic)
    except Misfit as error:
        strangers.note(place(cluster, topic.name), message.offset() or 0, str(error))
        return None


def fitting(message: Message, cluster: Cluster, topic: JournalBounds) -> tuple[str, dict[str, Any] | None]:
    """Return what `read` returns, of a record that fits.

    Raises:
        Misfit: it does not.
    """
    key, value = decoded(message, topic.largest)
    if value is not None and topic.fits is not None:
        topic.fits(key, value)
    elif value is not None:
        value = Stored(value, place(cluster, topic.name), message.offset() or 0)
    return key, value


def place(cluster: Cluster, topic: str) -> str:
    """Return how messages name the one partition of a journal."""
    return f"{cluster.where}, topic {topic}, partition 0"


def header_pairs(message: Message) -> list[tuple[str, bytes | None]]:
    """Return a record's headers in their order; to be called once for each record.

    Raises:
        Misfit: the name of one is not UTF-8, which the library cannot give.
    """
    try:
        return list(_headers_of(message) or ())
    except (SystemError, UnicodeDecodeError):
        why = "a header whose name is not UTF-8"
        raise Misfit(why) from None


def headers(message: Message) -> dict[str, bytes]:
    """Return a record's headers by name, the last of each, empty where it has no value; as `header_pairs` does."""
    return {name: value or b"" for name, value in header_pairs(message)}
