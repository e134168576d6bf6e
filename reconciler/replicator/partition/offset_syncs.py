"""Offset syncs: source and target offsets of the records of a copy with translated offsets, in MirrorMaker 2's format.

`transactional` writes them in the same transaction as the records, so both are visible or neither; `at_least_once`
writes them after the records, and positions after them. Pure.

The format is that of Kafka's `connect/mirror` (`OffsetSync`): the key is the topic's name and the partition, the value
the offset at the source and the offset at the target of one record; neither has a version. Two headers, which
MirrorMaker 2 ignores, hold more: in each sync exactly which records it covers (`Span`), so that consumers can be moved
without counting records that compaction may have removed since; and in the last sync of a partition in a transaction
the committed position, which `position_recovery` reads.
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
# The header with a position: its offset, followed by its metadata.
_HEADER = b"anabranch-position"
_OFFSET = struct.Struct(">q")
# The header with the records that a sync covers.
_SPAN = b"anabranch-span"
_LAST = 2**63 - 1
# Its first number: written once; may be repeated; may be repeated, and the source has other records there now.
_ONCE, _REPEATS, _ANEW = range(3)
# Numbers in one span, more only for a single batch: topics accept batches of 1 MiB by default.
_MOST_PARTS = 50_000
_MOST_BYTES = 400_000
_USUAL_BYTES, _PART_BYTES = 150, 3


@dataclass(frozen=True, slots=True)
class Span:
    """The records that a sync covers: the first is the sync's own, and at the target they are consecutive.

    Attributes:
        begin: source offset up to which was read before; no record between it and the sync's own offset was written.
        parts: from the sync's own offset on: number of consecutive records, number of offsets behind them without a
            written record, and so on alternately.
        repeats: whether they may have been written before, too.
        is_anew: whether the source lost its records from `begin` on (truncated, or its topic recreated), so that
            earlier syncs of them are void. Set only with `repeats`; otherwise the order of the syncs shows it.
    """

    begin: int
    parts: tuple[int, ...]
    repeats: bool = False
    is_anew: bool = False

    @property
    def records(self) -> int:
        """Number of records."""
        return sum(self.parts[::2])


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """One record's offsets on both sides; MirrorMaker 2 derives those of the following records by counting.

    Attributes:
        topic: the original topic.
        partition: its number on both sides.
        source: the record's offset there.
        target: the record's offset at the target.
        position: the partition's position committed in the same transaction; None if the sync holds none.
        span: the records that it covers; None if the sync holds none.
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
    """Yield a sync for the first of some records, and for each that does not follow the one before on both sides.

    Args:
        log: the original topic and the partition's number.
        written: batches written since the last call, in order, with their target offsets.
        begin: source offset up to which was read before that.
        next_offset: source offset up to which is read now.
        repeats: whether they may have been written before, too.
        anew_from: source offset from which on the source has other records than earlier syncs cover; None if none.
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
        # The position may have been moved back since.
        begin = min(begin, anew_from)
    for number, run in enumerate(runs):
        first = run[0]
        upto = runs[number + 1][0].base_offset if number + 1 < len(runs) else next_offset
        span = Span(begin, _parts_of(run, upto), repeats, is_anew=anew_from is not None and not number)
        yield OffsetSync(*log, first.base_offset, first.landing, span=span)
        begin = upto


def _is_next(before: InFlightBatch, sent: InFlightBatch) -> bool:
    """Return whether a batch follows the one before on both sides."""
    if (before.parts or (0,))[-1]:
        return False
    return (before.next_offset, before.landing + before.records) == (sent.base_offset, sent.landing)


def _parts_of(run: Sequence[InFlightBatch], upto: int) -> tuple[int, ...]:
    """Return the parts of consecutive batches; `upto` is where the next one begins."""
    parts = [0, 0]
    for sent in run:
        first, *more = sent.parts or (sent.records, 0)
        parts[-2:] = [parts[-2] + first, *more]
    # Offsets behind the last batch may hold no records.
    parts[-1] += max(0, upto - run[0].base_offset - sum(parts))
    return tuple(parts)


def with_position(found: Iterable[OffsetSync], position: CommittedPosition | None) -> list[OffsetSync]:
    """Return the syncs of one partition, the last one with the position that is committed with them."""
    listed = list(found)
    return listed and [*listed[:-1], replace(listed[-1], position=position)]


def portions(found: Sequence[OffsetSync], most: int) -> Iterator[Sequence[OffsetSync]]:
    """Yield syncs in portions that fit into one batch each.

    Args:
        found: in order.
        most: most syncs in one portion.
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
    """Yield the syncs in a batch of the topic; other records are skipped.

    Raises:
        ValueError: the records do not match the batch's header.
    """
    for record in raw_records(batch):
        try:
            yield _parsed(record.rest)
        except (IndexError, ValueError, struct.error):
            continue


def _parsed(rest: bytes) -> OffsetSync:
    """Parse a record.

    Raises:
        IndexError, ValueError, struct.error: it is not a sync.
    """
    key, at = _slice(rest, 0)
    value, at = _slice(rest, at)
    return sync_of(key, value, dict(_headers_in(rest, at)))


def sync_of(key: bytes, value: bytes, headers: Mapping[bytes, bytes] | None = None) -> OffsetSync:
    """Parse the key, value and headers of a record.

    Raises:
        ValueError, struct.error: it is not a sync.
    """
    (length,) = _LENGTH.unpack_from(key)
    name = key[_LENGTH.size : len(key) - _PARTITION.size]
    if length != len(name):
        message = f"a name of {len(name)} bytes with length {length}"
        raise ValueError(message)
    (partition,) = _PARTITION.unpack_from(key, _LENGTH.size + length)
    source, target = _OFFSETS.unpack(value)
    if min(partition, source, target) < 0:
        message = "a partition or an offset below 0"
        raise ValueError(message)
    known = headers or {}
    position, span = known.get(_HEADER), known.get(_SPAN)
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
    """Parse the span header of a sync with these two offsets; return None if it is invalid."""
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
    # Other programs may write here: offsets beyond 2^63 - 1 are invalid.
    if before > source or max(source, target) + sum(parts) > _LAST:
        return None
    return Span(source - before, parts, kind != _ONCE, kind == _ANEW)


def _slice(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a field behind its length, and the place behind it; empty for null."""
    length, at = read(data, at)
    end = at + max(0, length)
    if end > len(data):
        message = f"{length} bytes at {at} of {len(data)}"
        raise ValueError(message)
    return data[at:end], end
