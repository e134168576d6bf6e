"""Offset syncs: where the records of a copy with offsets of its own stand, in MirrorMaker 2's format.

`committer` writes them in the same transaction as the records, so they are never ahead or behind; `receipts` writes
them behind the records, and positions behind them. Pure.

The format is that of Kafka's `connect/mirror` (`OffsetSync`): the key is the topic's name and the partition, the value
the offset at the source and the offset at the target of one record; neither has a version. The last sync of a partition
in a transaction says the position, too, in a header of the record, where MirrorMaker 2 does not look: `recall` does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.replicator.batch import Batch
from reconciler.replicator.codecs import NONE
from reconciler.replicator.parcel import Parcel
from reconciler.replicator.rewrite import Kept, kept, packed
from reconciler.replicator.varint import read, signed
from reconciler.replicator.wire.commits import Position

_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_OFFSETS = struct.Struct(">qq")
# The header that says a position: its offset, and the note behind it.
_HEADER = b"anabranch-position"
_OFFSET = struct.Struct(">q")
_NO_HEADERS = signed(0)


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """One record's place on both sides; the records behind it stand where counting leads, up to the next sync.

    Attributes:
        topic: the original topic.
        partition: its number on both sides.
        source: the record's offset there.
        target: the record's offset at the target.
        position: what is committed as the partition's position in the same transaction; None where that is not said.
    """

    topic: str
    partition: int
    source: int
    target: int
    position: Position | None = None


def syncs(topic: str, partition: int, written: Iterable[Parcel], shift: int | None) -> Iterator[OffsetSync]:
    """Yield a sync wherever the distance between both sides' offsets changes.

    Args:
        topic: the original topic.
        partition: its number.
        written: in order, with the offsets at which they landed.
        shift: target offset minus source offset behind what was written before; None when that is not known.
    """
    for parcel in written:
        if parcel.landing - parcel.base_offset != shift:
            yield OffsetSync(topic, partition, parcel.base_offset, parcel.landing)
        shift = parcel.landing + parcel.records - parcel.next_offset


def with_position(found: Iterable[OffsetSync], position: Position | None) -> list[OffsetSync]:
    """Return the syncs of one partition; the last of them says what is committed with them.

    The source offsets alone do not tell it: records may be missing inside a batch (compaction, what was put aside), so
    that counting from the sync ends before the place up to which the source was read.
    """
    told = list(found)
    return told and [*told[:-1], replace(told[-1], position=position)]


def batch_of(found: Iterable[OffsetSync], now: int) -> Batch:
    """Return syncs as one batch.

    Args:
        found: at least one.
        now: milliseconds since 1970.
    """
    return packed([Kept(number, now, _rest(sync)) for number, sync in enumerate(found)], NONE)


def _rest(sync: OffsetSync) -> bytes:
    name = sync.topic.encode()
    key = _LENGTH.pack(len(name)) + name + _PARTITION.pack(sync.partition)
    value = _OFFSETS.pack(sync.source, sync.target)
    return b"".join((_with_length(key), _with_length(value), _headers(sync.position)))


def _headers(position: Position | None) -> bytes:
    if position is None:
        return _NO_HEADERS
    value = _OFFSET.pack(position.offset) + position.note.encode()
    return signed(1) + _with_length(_HEADER) + _with_length(value)


def _with_length(data: bytes) -> bytes:
    return signed(len(data)) + data


def read_batch(batch: Batch) -> Iterator[OffsetSync]:
    """Yield the syncs in a batch of the topic; what others have written there and is none is left out.

    Raises:
        ValueError: the batch is not laid out as its header says.
    """
    for record in kept(batch):
        try:
            yield _parsed(record.rest)
        except (IndexError, ValueError, struct.error):
            continue


def _parsed(rest: bytes) -> OffsetSync:
    """Return what a record says.

    Raises:
        IndexError, ValueError, struct.error: it is no sync.
    """
    key, at = _slice(rest, 0)
    value, at = _slice(rest, at)
    return replace(sync_of(key, value), position=_position(rest, at))


def sync_of(key: bytes, value: bytes) -> OffsetSync:
    """Return what the key and the value of a record say.

    Raises:
        ValueError, struct.error: it is no sync.
    """
    (length,) = _LENGTH.unpack_from(key)
    name = key[_LENGTH.size : len(key) - _PARTITION.size]
    if length != len(name):
        message = f"a name of {len(name)} bytes that says {length}"
        raise ValueError(message)
    (partition,) = _PARTITION.unpack_from(key, _LENGTH.size + length)
    source, target = _OFFSETS.unpack(value)
    return OffsetSync(name.decode(), partition, source, target)


def _position(rest: bytes, at: int) -> Position | None:
    count, at = read(rest, at)
    for _ in range(count):
        name, at = _slice(rest, at)
        value, at = _slice(rest, at)
        if name == _HEADER:
            (offset,) = _OFFSET.unpack_from(value)
            return Position(offset, value[_OFFSET.size :].decode())
    return None


def _slice(data: bytes, at: int) -> tuple[bytes, int]:
    """Return what stands behind its length, and the place behind; nothing for what is null."""
    length, at = read(data, at)
    end = at + max(0, length)
    if end > len(data):
        message = f"{length} bytes at {at} of {len(data)}"
        raise ValueError(message)
    return data[at:end], end
