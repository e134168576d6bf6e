"""Reads runs of batches that hold one record each as one batch: each costs the way of a whole batch otherwise.

`channel` reads fetch answers with `batches` where small batches are merged. What `split`, `read_committed`, `reasons`
and `merge` would do for each of them happens here in one pass, for the plain case only; whatever is not plain is left
to them. Pure.
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
    NO_CRC,
    Batch,
)
from reconciler.records.checksum import crc32c
from reconciler.records.split import read_at
from reconciler.records.varint import SIGNED, signed

# What is looked at of a header: base offset, length, magic, crc, attributes, last offset delta, both times, count.
_FRONT = struct.Struct(">qi4xbIhiqq14xi")
_ONE = 1
# A record without key, value and headers has six bytes behind its length, which counts them zigzag.
_SIX = 12
_LEAST = HEADER_SIZE + 7
_MORE = 0x80
_BITS = 0x7F
# The attributes of a record, which are never used, and no deltas: how producers write a batch's first record.
_NO_DELTAS = b"\x00\x00\x00"
_TABLE = len(SIGNED)
_TIMES = tuple(b"\x00" + one for one in SIGNED)


def batches(records: memoryview | bytes, limit: int) -> Iterator[Batch]:
    """Yield what `split.split` does, but neighbours of one record each as one batch of up to `limit` bytes.

    Batches that were put together passed their checksums; they have none of their producers' numbers. Large bodies are
    left in place where they may stay.

    Args:
        records: of a fetch response; a view that can be written to is of a buffer that is used again soon.
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
    """Return the batch that is all of a fetch response's records, or what becomes of a run of one-record batches.

    Only batches that pass as they are: whole, intact, without holes, and with no attribute but a codec. One that was
    put together has no checksum, as it is to get another header.

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
    """Tell whether the next two batches say that they hold one record each, uncompressed."""
    for _ in range(2):
        if at < 0 or at + HEADER_SIZE > len(view):
            return False
        _base, length, magic, _crc, attributes, _delta, _time, _max_time, count = _FRONT.unpack_from(view, at)
        if count != _ONE or attributes or magic != MAGIC or length <= 0:
            return False
        at += LOG_OVERHEAD + length
    return True


def _run(data: bytes, at: int, limit: int) -> tuple[Batch, int] | None:
    """Return the plain one-record batches from `at` on as one, and the place behind; None when there are not two.

    It is not sealed: whoever gives it another header has no use for that.

    This runs once for each record, so nothing is called that can be avoided.
    """
    unpack, total = _FRONT.unpack_from, len(data)
    first, _, _, _, _, _, first_time, newest, _ = unpack(data, at)
    expected, most = first, min(at + limit, total)
    pieces: list[bytes] = []
    while at + _LEAST <= most:
        base, length, magic, crc, attributes, delta, time, max_time, count = unpack(data, at)
        end = at + LOG_OVERHEAD + length
        if base != expected or count != _ONE or attributes or delta or magic != MAGIC or time != max_time or end > most:
            break
        start = at + HEADER_SIZE
        size = data[start]
        if size < _MORE:
            start += 1
        else:
            # More than two bytes of length are too many for here: the next condition sees to that.
            size = size & _BITS | data[start + 1] << 7
            start += 2
        behind = start + len(_NO_DELTAS)
        if size < _SIX or size != (end - start) << 1 or data[start:behind] != _NO_DELTAS:
            break
        if crc != crc32c(data[at + CHECKED_FROM : end]):
            break
        place, moved = base - first, time - first_time
        stamp = _TIMES[moved] if 0 <= moved < _TABLE else b"\x00" + signed(moved)
        spot = SIGNED[place] if place < _TABLE else signed(place)
        size = len(stamp) + len(spot) + end - behind
        pieces += (SIGNED[size] if size < _TABLE else signed(size), stamp, spot, data[behind:end])
        if time > newest:  # noqa: PLR1730 - max() takes a tenth of the whole pass
            newest = time
        expected, at = base + 1, end
    count = expected - first
    if count <= _ONE:
        return None
    one = Batch(first, count - 1, count, 0, first_time, newest, -1, -1, -1, NO_CRC, b"".join(pieces))
    return one, at
