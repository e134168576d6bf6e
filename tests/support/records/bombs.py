"""Batches of a few kilobytes that hold hundreds of megabytes: one record, whose value is zeros."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

import lz4.frame
import snappy
import zstandard

from reconciler.records.checksum import crc32c
from reconciler.records.decompression import LENGTH, XERIAL, XERIAL_VERSIONS
from reconciler.records.varint import signed
from tests.support.records.batches import GZIP, LZ4, NONE, SNAPPY, ZSTD

_PIECE = 2**20
_GZIP = 31
TIME = 1_700_000_000_000


def bomb(
    size: int,
    codec: int,
    base: int = 0,
    *,
    attributes: int = 0,
    span: int = 1,
    records: int = 1,
    packed: Callable[[Iterator[bytes]], bytes] | None = None,
) -> bytes:
    """Return a batch whose only record has a value of so many zeros.

    Args:
        size: of the value.
        codec: of the batch.
        base: its first offset.
        attributes: more bits of them.
        span: how many offsets it says that it spans.
        records: how many it says that it has.
        packed: compresses pieces in another way.
    """
    body = (packed or PACKED[codec])(record(size))
    after = struct.pack(">hiqqqhii", attributes | codec, span - 1, TIME, TIME, -1, -1, -1, records) + body
    return struct.pack(">qiibI", base, 9 + len(after), -1, 2, crc32c(after)) + after


def old_bomb(size: int, codec: int, magic: int, offset: int = 0) -> bytes:
    """Return a message of format v0 or v1 that holds another, whose value is so many zeros."""
    layout, times = (">qiIbb", ()) if magic == 0 else (">qiIbbq", (TIME,))
    front = struct.calcsize(layout) - 12
    inside = struct.pack(layout, 0, front + 8 + size, 0, magic, 0, *times) + struct.pack(">ii", -1, size)
    value = PACKED[codec](_pieces(inside, size, b""))
    behind = struct.pack(layout, offset, 0, 0, magic, codec, *times)[16:] + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(behind), zlib.crc32(behind)) + behind


def record(size: int) -> Iterator[bytes]:
    """Yield a record without key or headers, whose value is so many zeros."""
    head = b"\0\0\0" + signed(-1) + signed(size)
    return _pieces(signed(len(head) + size + 1) + head, size, signed(0))


def _pieces(head: bytes, size: int, tail: bytes) -> Iterator[bytes]:
    yield head
    for _ in range(size // _PIECE):
        yield bytes(_PIECE)
    yield bytes(size % _PIECE) + tail


def _gzip(pieces: Iterator[bytes]) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    return b"".join(packer.compress(one) for one in pieces) + packer.flush()


def members(pieces: Iterator[bytes]) -> bytes:
    """Compress each piece as a member of gzip of its own, as one that appends to a file does."""
    return b"".join(_gzip(iter((one,))) for one in pieces)


def _snappy(pieces: Iterator[bytes]) -> bytes:
    blocks = [XERIAL, XERIAL_VERSIONS]
    for one in pieces:
        block = snappy.compress(one)
        blocks += (LENGTH.pack(len(block)), block)
    return b"".join(blocks)


def one_block(pieces: Iterator[bytes]) -> bytes:
    """Compress with snappy as librdkafka does, without a frame."""
    return bytes(snappy.compress(b"".join(pieces)))


def _lz4(pieces: Iterator[bytes]) -> bytes:
    packer = lz4.frame.LZ4FrameCompressor(block_linked=False)
    return b"".join((packer.begin(), *(packer.compress(one) for one in pieces), packer.flush()))


def _zstd(pieces: Iterator[bytes]) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join(packer.compress(one) for one in pieces) + packer.flush()


def frames(pieces: Iterator[bytes]) -> bytes:
    """Compress each piece as a frame of zstd of its own, with one between them that is to be skipped."""
    skipped = struct.pack("<II", 0x184D2A53, 3) + b"abc"
    return skipped.join(zstandard.ZstdCompressor().compress(one) for one in pieces)


def flushed(pieces: Iterator[bytes]) -> bytes:
    """Compress with zstd in so many blocks that these say nothing of how much there is."""
    packer = zstandard.ZstdCompressor().compressobj()
    made: list[bytes] = []
    for one in pieces:
        for at in range(0, len(one), 512):
            made += (packer.compress(one[at : at + 512]), packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    return b"".join((*made, packer.flush()))


PACKED: dict[int, Callable[[Iterator[bytes]], bytes]] = {
    NONE: b"".join,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
OTHERWISE: dict[str, tuple[int, Callable[[Iterator[bytes]], bytes]]] = {
    "gzip members": (GZIP, members),
    "one block of snappy": (SNAPPY, one_block),
    "zstd frames": (ZSTD, frames),
    "zstd of many blocks": (ZSTD, flushed),
}
