"""Offset syncs: where the records of a copy with offsets of its own stand, in MirrorMaker 2's format.

`transactional` writes them in the same transaction as the records, so they are never ahead or behind; `at_least_once`
writes them behind the records, and positions behind them. Pure.

The format is that of Kafka's `connect/mirror` (`OffsetSync`): the key is the topic's name and the partition, the value
the offset at the source and the offset at the target of one record; neither has a version. Two headers, where
MirrorMaker 2 does not look, say more: each sync which records it speaks of, exactly (`Span`), so that whoever moves
consumers need not count records that compaction may have taken meanwhile; and the last sync of a partition in a
transaction the position, which `position_recovery` reads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.records.batch import Batch
from reconciler.records.codecs import NONE
from reconciler.records.rewrite import RawRecord, packed, raw_records
from reconciler.records.varint import read, signed
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.wire.requests.commits import CommittedPosition

_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_OFFSETS = struct.Struct(">qq")
# The header that says a position: its offset, and the note behind it.
_HEADER = b"anabranch-position"
_OFFSET = struct.Struct(">q")
# The header that says which records a sync speaks of.
_SPAN = b"anabranch-span"
_LAST = 2**63 - 1
# What its first number says: nothing of the kind, that they may be repeated, and that the source has others there now.
_ONCE, _REPEATS, _ANEW = range(3)
# Numbers in one span, but for those of a single batch: topics take batches of 1 MiB unless somebody says otherwise.
_MOST_PARTS = 50_000
_MOST_BYTES = 400_000
_USUAL_BYTES, _PART_BYTES = 150, 3


@dataclass(frozen=True, slots=True)
class Span:
    """The records that a sync speaks of: the first is the sync's own, and at the target nothing is between them.

    Attributes:
        begin: source offset up to which was read before: from there to the sync's own no record was written.
        parts: from the sync's own offset on: how many records follow each other, how many offsets behind them have
            none that was written, and so on in turns.
        repeats: whether they may have been written before, too.
        is_anew: whether the source has lost what it had from `begin` on (it was truncated, or its topic made anew), so
            that nothing counts that was told of it. Said of what may be repeated: elsewhere their order tells.
    """

    begin: int
    parts: tuple[int, ...]
    repeats: bool = False
    is_anew: bool = False

    @property
    def records(self) -> int:
        """How many they are."""
        return sum(self.parts[::2])


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """One record's place on both sides; MirrorMaker 2 lets those behind it stand where counting leads.

    Attributes:
        topic: the original topic.
        partition: its number on both sides.
        source: the record's offset there.
        target: the record's offset at the target.
        position: what is committed as the partition's position in the same transaction; None where that is not said.
        span: which records it speaks of; None where that is not said.
    """

    topic: str
    partition: int
    source: int
    target: int
    position: CommittedPosition | None = None
    span: Span | None = None


def syncs(
    log: tuple[str, int],
    written: Iterable[InFlightBatch],
    begin: int,
    next_offset: int,
    repeats: bool = False,
    anew_from: int | None = None,
) -> Iterator[OffsetSync]:
    """Yield a sync for the first of some records, and wherever one does not follow the one before on both sides.

    Args:
        log: the original topic and the partition's number.
        written: what was written since the last time, in order, with the offsets at which it landed.
        begin: source offset up to which was read before that.
        next_offset: source offset up to which is read now.
        repeats: whether it may have been written before, too.
        anew_from: source offset from which on the source has other records than were told of; None where it has not.
    """
    sent_batches = list(written)
    runs: list[list[InFlightBatch]] = []
    parts = 0
    for number, sent in enumerate(sent_batches):
        before = sent_batches[number - 1] if number else None
        parts += len(sent.parts)
        if before is None or not _is_next(before, sent) or parts > _MOST_PARTS:
            runs.append([])
            parts = len(sent.parts)
        runs[-1].append(sent)
    if anew_from is not None:
        # Somebody may have moved the position back meanwhile.
        begin = min(begin, anew_from)
    for number, run in enumerate(runs):
        first = run[0]
        upto = runs[number + 1][0].base_offset if number + 1 < len(runs) else next_offset
        span = Span(begin, _parts_of(run, upto), repeats, is_anew=anew_from is not None and not number)
        yield OffsetSync(*log, first.base_offset, first.landing, span=span)
        begin = upto


def _is_next(before: InFlightBatch, sent: InFlightBatch) -> bool:
    """Tell whether counting leads to a parcel, from the last record of the one before."""
    if (before.parts or (0,))[-1]:
        return False
    return (before.next_offset, before.landing + before.records) == (sent.base_offset, sent.landing)


def _parts_of(run: Sequence[InFlightBatch], upto: int) -> tuple[int, ...]:
    """Return the parts of parcels that follow each other; `upto` is where the next one begins."""
    parts = [0, 0]
    for sent in run:
        first, *more = sent.parts or (sent.records, 0)
        parts[-2:] = [parts[-2] + first, *more]
    # Behind the last one nothing more may have been there to read.
    parts[-1] += max(0, upto - run[0].base_offset - sum(parts))
    return tuple(parts)


def with_position(found: Iterable[OffsetSync], position: CommittedPosition | None) -> list[OffsetSync]:
    """Return the syncs of one partition; the last of them says what is committed with them."""
    told = list(found)
    return told and [*told[:-1], replace(told[-1], position=position)]


def portions(found: Sequence[OffsetSync], most: int) -> Iterator[Sequence[OffsetSync]]:
    """Yield syncs in portions that a topic takes as one batch each.

    Args:
        found: in order.
        most: how many there may be in one portion.
    """
    begin = size = 0
    for number, sync in enumerate(found):
        note = len(sync.position.note) if sync.position is not None else 0
        parts = len(sync.span.parts) if sync.span is not None else 0
        weight = _USUAL_BYTES + len(sync.topic) + note + _PART_BYTES * parts
        if number > begin and (number - begin == most or size + weight > _MOST_BYTES):
            yield found[begin:number]
            begin, size = number, 0
        size += weight
    if begin < len(found):
        yield found[begin:]


def batch_of(found: Iterable[OffsetSync], now: int) -> Batch:
    """Return syncs as one batch.

    Args:
        found: at least one.
        now: milliseconds since 1970.
    """
    return packed([RawRecord(number, now, _rest(sync)) for number, sync in enumerate(found)], NONE)


def _rest(sync: OffsetSync) -> bytes:
    name = sync.topic.encode()
    key = _LENGTH.pack(len(name)) + name + _PARTITION.pack(sync.partition)
    value = _OFFSETS.pack(sync.source, sync.target)
    return b"".join((_with_length(key), _with_length(value), _headers(sync)))


def _headers(sync: OffsetSync) -> bytes:
    headers = []
    if sync.span is not None:
        span = sync.span
        kind = _ANEW if span.is_anew else _REPEATS if span.repeats else _ONCE
        numbers = (kind, sync.source - span.begin, *span.parts)
        headers += [_with_length(_SPAN) + _with_length(b"".join(map(signed, numbers)))]
    if sync.position is not None:
        value = _OFFSET.pack(sync.position.offset) + sync.position.note.encode()
        headers += [_with_length(_HEADER) + _with_length(value)]
    return signed(len(headers)) + b"".join(headers)


def _with_length(data: bytes) -> bytes:
    return signed(len(data)) + data


def read_batch(batch: Batch) -> Iterator[OffsetSync]:
    """Yield the syncs in a batch of the topic; what others have written there and is none is left out.

    Raises:
        ValueError: the batch is not laid out as its header says.
    """
    for record in raw_records(batch):
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
    return sync_of(key, value, dict(_headers_in(rest, at)))


def sync_of(key: bytes, value: bytes, headers: Mapping[bytes, bytes] | None = None) -> OffsetSync:
    """Return what the key, the value and the headers of a record say.

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
    if min(partition, source, target) < 0:
        message = "a partition or an offset below 0"
        raise ValueError(message)
    told = headers or {}
    position, span = told.get(_HEADER), told.get(_SPAN)
    return OffsetSync(
        name.decode(),
        partition,
        source,
        target,
        None
        if position is None
        else CommittedPosition(_OFFSET.unpack_from(position)[0], position[_OFFSET.size :].decode()),
        None if span is None else _span(source, target, span),
    )


def _headers_in(rest: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the names and values of a record's headers."""
    count, at = read(rest, at)
    for _ in range(count):
        name, at = _slice(rest, at)
        value, at = _slice(rest, at)
        yield name, value


def _span(source: int, target: int, value: bytes) -> Span | None:
    """Return what a header says of the records of a sync at two offsets; None for what says nothing."""
    numbers: list[int] = []
    at = 0
    try:
        while at < len(value):
            number, at = read(value, at)
            numbers.append(number)
        kind, before, first, *rest = numbers
    except (IndexError, ValueError):
        return None
    parts = (first, *rest)
    if kind not in (_ONCE, _REPEATS, _ANEW) or before < 0 or first < 1 or min(parts) < 0 or len(parts) % 2:
        return None
    # Others may write what they like: no log is so long.
    if before > source or max(source, target) + sum(parts) > _LAST:
        return None
    return Span(source - before, parts, kind != _ONCE, kind == _ANEW)


def _slice(data: bytes, at: int) -> tuple[bytes, int]:
    """Return what stands behind its length, and the place behind; nothing for what is null."""
    length, at = read(data, at)
    end = at + max(0, length)
    if end > len(data):
        message = f"{length} bytes at {at} of {len(data)}"
        raise ValueError(message)
    return data[at:end], end
