"""Reads runs of one-record batches in lz4 as one batch each: their frames are joined, and decompressed together.

`one_record_batches` calls it. A decoder for each frame costs more than all the rest. Pure.

A frame (LZ4 Frame Format 1.6) is a header, blocks behind their sizes, and an end mark. Producers declare the blocks
independent, so the blocks of several frames are the blocks of one frame with the same header.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import lz4.frame

from reconciler.records.batch import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC, NO_CRC, Batch
from reconciler.records.checksum import crc32c
from reconciler.records.codecs import LZ4, pack
from reconciler.records.decompression import LZ4_END, LZ4_RATIO, LZ4_SIZE, LZ4_STORED, LZ4_USUAL
from reconciler.records.merge import PLAIN_BYTES
from reconciler.records.varint import SIGNED, signed

# The header fields that are read: base offset, length, magic, crc, attributes, last offset delta, both times, count;
# behind them the header of the frame.
_FRONT = struct.Struct(f">qi4xbIhiqq14xi{len(LZ4_USUAL)}s")
_ONE = 1
_SIZE_AT = HEADER_SIZE + len(LZ4_USUAL)
_BLOCK_AT = _SIZE_AT + LZ4_SIZE.size
_LEAST = _BLOCK_AT + 1 + len(LZ4_END)
# So many bytes of batches are decompressed at once that they never exceed what may be merged.
_PIECE = PLAIN_BYTES // LZ4_RATIO
_MORE = 0x80
_BITS = 0x7F
_TABLE = len(SIGNED)
# The length field, zigzag, of a record without key, value and headers: six bytes.
SHORTEST = 12
# Record attributes (unused by Kafka) and both deltas as producers write them in a batch's first record.
NO_DELTAS = b"\x00\x00\x00"
TIMES = tuple(b"\x00" + one for one in SIGNED)
"""Attributes and timestamp delta of a record, by that delta."""


def lz4_run(data: bytes, at: int, limit: int) -> tuple[Batch, int] | None:
    """Return the one-record batches from `at` on as one, and the place behind; None when there are not two.

    The batch is not sealed. Frames of another kind, records of other attributes and damaged batches end the run.

    Args:
        data: holds the batches.
        at: where the first of them begins.
        limit: how many bytes may become one batch.
    """
    first, _, _, _, _, _, first_time, newest, _, _ = _FRONT.unpack_from(data, at)
    most, expected, left = min(at + limit, len(data)), first, PLAIN_BYTES
    pieces: list[bytes] = []
    while True:
        blocks, times, end = _blocks(data, at, min(at + _PIECE, most), expected)
        plain = _decompressed(blocks) if times else b""
        left -= len(plain)
        if left < 0 or not plain or not _append(pieces, plain, [one - first_time for one in times], expected - first):
            break
        newest = max(newest, *times)
        expected, at = expected + len(times), end
    one = whole_run(LZ4, (first, expected), (first_time, newest), pieces, limit)
    return None if one is None else (one, at)


def whole_run(
    codec: int, offsets: tuple[int, int], times: tuple[int, int], pieces: Sequence[bytes], limit: int
) -> Batch | None:
    """Return the records of a run as one batch that is not sealed; None where it is one, or takes more than `limit`.

    Args:
        codec: Kafka's number of it.
        offsets: of the first record, and behind the last.
        times: of the first record, and of the newest.
        pieces: the records, uncompressed, with their new deltas.
        limit: bytes of the batch.
    """
    first, behind = offsets
    count = behind - first
    if count <= _ONE:
        return None
    body = pack(codec, b"".join(pieces))
    if HEADER_SIZE + len(body) > limit:
        return None
    return Batch(first, count - 1, count, codec, *times, -1, -1, -1, NO_CRC, body)


def _blocks(data: bytes, at: int, most: int, expected: int) -> tuple[list[bytes], list[int], int]:
    """Return the blocks of the batches before `most`, with their sizes, the batches' timestamps, and where they end.

    The loop runs once a record, so it avoids calls.
    """
    header, size_at = _FRONT.unpack_from, LZ4_SIZE.unpack_from
    blocks: list[bytes] = []
    times: list[int] = []
    while at + _LEAST <= most:
        base, length, magic, crc, attributes, delta, time, max_time, count, frame = header(data, at)
        end = at + LOG_OVERHEAD + length
        if base != expected or count != _ONE or attributes != LZ4 or magic != MAGIC or frame != LZ4_USUAL:
            break
        if delta or time != max_time or end > most or end < at + _LEAST:
            break
        behind = end - len(LZ4_END)
        if crc != crc32c(data[at + CHECKED_FROM : end]) or data[behind:end] != LZ4_END:
            break
        if size_at(data, at + _SIZE_AT)[0] & ~LZ4_STORED != behind - at - _BLOCK_AT:
            break
        blocks.append(data[at + _SIZE_AT : behind])
        times.append(time)
        expected += 1
        at = end
    return blocks, times, at


def _decompressed(blocks: Sequence[bytes]) -> bytes:
    """Return what blocks hold, one behind the other; nothing where one is damaged: `split` names the fault."""
    frame = b"".join((LZ4_USUAL, *blocks, LZ4_END))
    try:
        plain, end = lz4.frame.decompress(frame, return_bytes_read=True)
    except RuntimeError:
        return b""
    return bytes(plain) if end == len(frame) else b""


def _append(pieces: list[bytes], plain: bytes, times: Sequence[int], offset: int) -> bool:
    """Append records with other deltas, and return True; or nothing, where they are not one for each of `times`.

    Args:
        pieces: of the merged batch.
        plain: the records, each the first of its batch.
        times: their timestamp deltas.
        offset: the offset delta of the first.
    """
    found: list[bytes] = []
    start, total = 0, len(plain)
    try:
        for place, moved in enumerate(times, offset):
            size = plain[start]
            if size < _MORE:
                start += 1
            else:
                # A length of more than two bytes fails the next condition.
                size = size & _BITS | plain[start + 1] << 7
                start += 2
            stop, behind = start + (size >> 1), start + len(NO_DELTAS)
            if size < SHORTEST or size & 1 or stop > total or plain[start:behind] != NO_DELTAS:
                return False
            stamp = TIMES[moved] if 0 <= moved < _TABLE else b"\x00" + signed(moved)
            spot = SIGNED[place] if place < _TABLE else signed(place)
            size = len(stamp) + len(spot) + stop - behind
            found += (SIGNED[size] if size < _TABLE else signed(size), stamp, spot, plain[behind:stop])
            start = stop
    except IndexError:
        return False
    if start != total:
        return False
    pieces += found
    return True
