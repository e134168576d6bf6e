"""Reads runs of one-record batches as one batch each, because handling every batch by itself costs too much.

`channel` reads fetch responses with `batches` where small batches are merged. This does in one pass, for batches
without any attribute but a codec, what `split`, `read_committed`, `reasons` and `merge` do otherwise; all other batches
are left to them. Compressed records are decompressed for that, and compressed again together. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from reconciler.records.batch import (
    CHECKED_FROM,
    CODEC_BITS,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    Batch,
)
from reconciler.records.checksum import crc32c
from reconciler.records.codecs import LZ4, unpack
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.records.lz4_runs import NO_DELTAS, SHORTEST, TIMES, lz4_run, whole_run
from reconciler.records.merge import PLAIN_BYTES
from reconciler.records.split import read_at
from reconciler.records.varint import SIGNED, signed

# The header fields that are read: base offset, length, magic, crc, attributes, last offset delta, both times, count.
_FRONT = struct.Struct(">qi4xbIhiqq14xi")
_ONE = 1
_LEAST = HEADER_SIZE + 7
_MORE = 0x80
_BITS = 0x7F
_TABLE = len(SIGNED)
# A longer record has more than two bytes of length, which a run has not; so has nearly every longer compressed one.
_LONGEST = HEADER_SIZE - LOG_OVERHEAD + 2 + 0x1FFF


def batches(records: memoryview | bytes, limit: int) -> Iterator[Batch]:
    """Yield what `split.split` does, but with consecutive one-record batches merged up to `limit` bytes.

    Checksums of the merged batches are verified; the result has no producer id, epoch or sequence. Large bodies are
    views of `records` where that is read-only.

    Args:
        records: of a fetch response; a writable view belongs to a buffer that is reused soon.
        limit: how many bytes may become one batch.

    Raises:
        UnreadableBatch: a batch is of an unknown format, or an older one that cannot be decoded.
    """
    view = memoryview(records)
    data: bytes | None = None
    at = 0
    while True:
        if _is_run(view, at):
            if data is None:
                data = bytes(view)
            run = _run(data, at, limit)
            if run is not None:
                one, at = run
                yield one.sealed()
                continue
        found = read_at(view, at, in_place=view.readonly)
        if found is None:
            return
        others, at = found
        yield from others


def one_plain(data: bytes, start: int, end: int, limit: int) -> Batch | None:
    """Return the only batch of a fetch response, or the merge of one run of one-record batches that fills it.

    Returns None unless every batch can be copied as it is: whole, intact, without holes, and with no attribute but a
    codec. A merged batch has no checksum, because `Batch.header` computes it.

    Args:
        data: holds the records of a fetch response.
        start: where these begin.
        end: where they end.
        limit: how many bytes may become one batch.
    """
    if end - start < _LEAST:
        return None
    (base, length, epoch, magic, crc, attributes, delta, time, max_time, pid, pid_epoch, sequence, count) = (
        HEADER.unpack_from(data, start)
    )
    if magic != MAGIC or attributes & ~CODEC_BITS or count != delta + 1 or count < _ONE:
        return None
    if start + LOG_OVERHEAD + length == end:
        if crc != crc32c(data[start + CHECKED_FROM : end]):
            return None
        body = data[start + HEADER_SIZE : end]
        return Batch(base, delta, count, attributes, time, max_time, pid, pid_epoch, sequence, crc, body, epoch)
    run = _run(data[start:end], 0, limit) if count == _ONE else None
    return run[0] if run is not None and run[1] == end - start else None


def _is_run(view: memoryview, at: int) -> bool:
    """Return whether the headers of the next two batches have one short record each, in the same codec."""
    codec = None
    for _ in range(2):
        if at < 0 or at + HEADER_SIZE > len(view):
            return False
        _base, length, magic, _crc, attributes, _delta, _time, _max_time, count = _FRONT.unpack_from(view, at)
        if count != _ONE or attributes & ~CODEC_BITS or magic != MAGIC or not 0 < length <= _LONGEST:
            return False
        if codec not in (None, attributes):
            return False
        codec = attributes
        at += LOG_OVERHEAD + length
    return True


def _run(data: bytes, at: int, limit: int) -> tuple[Batch, int] | None:
    """Return the one-record batches from `at` on as one, and the place behind; None when there are not two.

    The batch is not sealed, as most callers give it another header.
    """
    if _FRONT.unpack_from(data, at)[4] == LZ4 and (joined := lz4_run(data, at, limit)) is not None:
        return joined
    return _one_by_one(data, at, limit)


def _one_by_one(data: bytes, at: int, limit: int) -> tuple[Batch, int] | None:
    """Return what `_run` does, of any codec. The loop runs once a record, so it avoids calls."""
    header, total = _FRONT.unpack_from, len(data)
    first, _, _, _, codec, _, first_time, newest, _ = header(data, at)
    expected, most, left = first, min(at + limit, total), PLAIN_BYTES
    pieces: list[bytes] = []
    while at + _LEAST <= most:
        base, length, magic, crc, attributes, delta, time, max_time, count = header(data, at)
        end = at + LOG_OVERHEAD + length
        if base != expected or count != _ONE or attributes != codec or magic != MAGIC:
            break
        if length > _LONGEST or end > most:
            break
        if delta or time != max_time or crc != crc32c(data[at + CHECKED_FROM : end]):
            break
        plain, start, stop = data, at + HEADER_SIZE, end
        if codec:
            plain = _decompressed(codec, data[start:end])
            start, stop = 0, len(plain)
            left -= stop
            if stop < _LEAST - HEADER_SIZE or left < 0:
                break
        size = plain[start]
        if size < _MORE:
            start += 1
        else:
            # A length of more than two bytes fails the next condition.
            size = size & _BITS | plain[start + 1] << 7
            start += 2
        behind = start + len(NO_DELTAS)
        if size < SHORTEST or size != (stop - start) << 1 or plain[start:behind] != NO_DELTAS:
            break
        place, moved = base - first, time - first_time
        stamp = TIMES[moved] if 0 <= moved < _TABLE else b"\x00" + signed(moved)
        spot = SIGNED[place] if place < _TABLE else signed(place)
        size = len(stamp) + len(spot) + stop - behind
        pieces += (SIGNED[size] if size < _TABLE else signed(size), stamp, spot, plain[behind:stop])
        if time > newest:  # noqa: PLR1730 - max() takes a tenth of the whole pass
            newest = time
        expected, at = base + 1, end
    one = whole_run(codec, (first, expected), (first_time, newest), pieces, limit)
    return None if one is None else (one, at)


def _decompressed(codec: int, body: bytes) -> bytes:
    """Return the records of a small batch; nothing where they are left to `split`, which names the fault."""
    try:
        return bytes(unpack(codec, body))
    except (ValueError, DecompressedTooLarge):
        return b""
