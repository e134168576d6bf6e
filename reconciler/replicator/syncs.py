"""Offset syncs: where the records of a copy with offsets of its own stand, in MirrorMaker 2's format.

`committer` writes them in the same transaction as the records, so they are never ahead or behind; `receipts` writes
them behind the records, and positions behind them. Pure.

The format is that of Kafka's `connect/mirror` (`OffsetSync`): the key is the topic's name and the partition, the value
the offset at the source and the offset at the target of one record; neither has a header or a version.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.replicator.batch import Batch
from reconciler.replicator.codecs import NONE
from reconciler.replicator.parcel import Parcel
from reconciler.replicator.rewrite import Kept, packed
from reconciler.replicator.varint import signed

_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_OFFSETS = struct.Struct(">qq")
_NO_HEADERS = signed(0)


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """One record's place on both sides; the records behind it stand where counting leads, up to the next sync.

    Attributes:
        topic: the original topic.
        partition: its number on both sides.
        source: the record's offset there.
        target: the record's offset at the target.
    """

    topic: str
    partition: int
    source: int
    target: int


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
    return b"".join((signed(len(key)), key, signed(len(value)), value, _NO_HEADERS))
