"""Checkpoints and heartbeats as bytes, in MirrorMaker 2's formats. Pure.

The layouts are those of Kafka's `connect/mirror-client` (`Checkpoint`, `Heartbeat`), all big-endian; a text is its
length in bytes (i16) and UTF-8. A value begins with its version, which has been 0 since there are any:

    checkpoint   key    group, topic, partition i32
                 value  version i16, upstream offset i64, downstream offset i64, metadata
    heartbeat    key    source alias, target alias
                 value  version i16, timestamp i64

Offset syncs, the third of these formats, are read and written by `replicator/partition/offset_syncs`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

VERSION = 0
"""The one version of checkpoints and heartbeats."""

TOPOLOGY_HEADER, FLOW_HEADER, GROUPS_HEADER = "anabranch-topology", "anabranch-flow", "anabranch-groups"
"""Headers of our heartbeats, which others ignore: of which topology and flow it is, and how many groups were looked at,
in decimal. Former releases did not write the topology."""

BLANK = b""
"""The value that withdraws a checkpoint.

It is no tombstone, as Java's clients and MirrorMaker 2 end with a NullPointerException where they meet one
(`Checkpoint.deserializeRecord`, up to Kafka 4.3.1 at least), whatever group they were asked for. A value that is too
short for a checkpoint they leave out.
"""

_LONGEST_TEXT = 2**15 - 1
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class CheckpointKey(NamedTuple):
    """What a checkpoint is of: a group's position in one partition.

    Attributes:
        group: the consumer group.
        topic: the topic's name at the target.
        partition: its number, on both sides.
    """

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a consumer group stands in one partition, at the source and at the target.

    Attributes:
        group: the consumer group.
        topic: the topic's name at the target.
        partition: its number, on both sides.
        upstream: the offset that the group has committed at the source.
        downstream: the offset of the same record at the target.
        metadata: what the group has committed with its offset.
    """

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    @property
    def key(self) -> CheckpointKey:
        """What it is of."""
        return CheckpointKey(self.group, self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat of one flow.

    Attributes:
        source: alias of its source cluster.
        target: alias of its target cluster.
        timestamp: when it was written, in milliseconds since 1970.
    """

    source: str
    target: str
    timestamp: int


def checkpoint_key(key: CheckpointKey) -> bytes:
    """Return the key of a checkpoint's record.

    Raises:
        ValueError: a name has more than 32,767 bytes.
    """
    return _text(key.group) + _text(key.topic) + _INT.pack(key.partition)


def checkpoint_value(checkpoint: Checkpoint) -> bytes:
    """Return the value of a checkpoint's record; metadata of more than 32,767 bytes is left out."""
    said = checkpoint.metadata.encode()
    metadata = said if len(said) <= _LONGEST_TEXT else b""
    offsets = _LONG.pack(checkpoint.upstream) + _LONG.pack(checkpoint.downstream)
    return b"".join((_SHORT.pack(VERSION), offsets, _SHORT.pack(len(metadata)), metadata))


def read_checkpoint_key(data: bytes) -> CheckpointKey:
    """Read the key of a checkpoint's record.

    Raises:
        ValueError: it is none.
    """
    read = _Reading(data)
    return CheckpointKey(read.text(), read.text(), read.natural(_INT))


def read_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Read a checkpoint's record.

    Raises:
        ValueError: it is none, or one of another version.
    """
    read = _Reading(value)
    read.version()
    return Checkpoint(*read_checkpoint_key(key), read.natural(_LONG), read.natural(_LONG), read.text())


def newest(records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[CheckpointKey, Checkpoint]:
    """Return the checkpoints that hold after some records: the last one of each key, without those taken back.

    Records that are no checkpoints are left out, as in MirrorMaker's client.

    Args:
        records: keys and values of the topic, in order.
    """
    found: dict[CheckpointKey, Checkpoint] = {}
    for key, value in records:
        try:
            if not value:
                found.pop(read_checkpoint_key(key or b""), None)
            else:
                read = read_checkpoint(key or b"", value)
                found[read.key] = read
        except ValueError:
            continue
    return found


def group_prefix(group: str) -> bytes:
    """Return what the keys of all checkpoints of a group begin with, and those of no other.

    Raises:
        ValueError: its name has more than 32,767 bytes.
    """
    return _text(group)


def heartbeat_key(source: str, target: str) -> bytes:
    """Return the key of a heartbeat's record: aliases of its flow's clusters.

    Raises:
        ValueError: an alias has more than 32,767 bytes.
    """
    return _text(source) + _text(target)


def heartbeat_value(timestamp: int) -> bytes:
    """Return the value of a heartbeat's record, written at `timestamp` in milliseconds since 1970."""
    return _SHORT.pack(VERSION) + _LONG.pack(timestamp)


def read_heartbeat(key: bytes, value: bytes) -> Heartbeat:
    """Read a heartbeat's record.

    Raises:
        ValueError: it is none, or one of another version.
    """
    read = _Reading(value)
    read.version()
    timestamp = read.number(_LONG)
    of = _Reading(key)
    return Heartbeat(of.text(), of.text(), timestamp)


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > _LONGEST_TEXT:
        message = f"a text of {len(data)} bytes, the format has room for {_LONGEST_TEXT}"
        raise ValueError(message)
    return _SHORT.pack(len(data)) + data


class _Reading:
    """Reads values one behind the other; bytes behind the last are ignored, as in Kafka's own schemas.

    Args:
        data: a record's key or value.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: struct.Struct) -> int:
        """Return the next number.

        Raises:
            ValueError: there is none.
        """
        (found,) = form.unpack(self._next(form.size))
        return int(found)

    def natural(self, form: struct.Struct) -> int:
        """Return the next number, which is one of a partition or an offset.

        Raises:
            ValueError: there is none, or it is below 0.
        """
        if (found := self.number(form)) < 0:
            message = f"expected a number from 0 on, found {found}"
            raise ValueError(message)
        return found

    def text(self) -> str:
        """Return the next text.

        Raises:
            ValueError: there is none.
        """
        return self._next(self.number(_SHORT)).decode()

    def version(self) -> None:
        """Read a version.

        Raises:
            ValueError: there is none, or it is not ours.
        """
        if (found := self.number(_SHORT)) != VERSION:
            message = f"expected version {VERSION}, found {found}"
            raise ValueError(message)

    def _next(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            message = f"{length} bytes at {self._at} of {len(self._data)}"
            raise ValueError(message)
        found = self._data[self._at : end]
        self._at = end
        return found
