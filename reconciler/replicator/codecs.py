"""Compresses and decompresses what a batch holds, in Kafka's five codecs, where a batch must be rewritten.

`rewrite` asks. The framings are Kafka's: gzip, snappy in blocks of the xerial library, lz4 and zstd frames. Pure.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable

import lz4.frame
import snappy
import zstandard

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
_GZIP_LEVEL = 6
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS = struct.pack(">ii", 1, 1)
_XERIAL_FRONT = len(_XERIAL) + len(_XERIAL_VERSIONS)
_XERIAL_BLOCK = 32 * 1024
_LENGTH = struct.Struct(">i")


_UNREADABLE = (
    *(IndexError, EOFError, OSError, RuntimeError, MemoryError, struct.error),
    *(zlib.error, snappy.UncompressError, zstandard.ZstdError),
)


def unpack(codec: int, body: bytes | memoryview) -> bytes:
    """Return the records in a batch's body, decompressed.

    Args:
        codec: as a batch's attributes have it.
        body: of the batch.

    Raises:
        ValueError: the codec is not known, or the bytes are not in it.
    """
    try:
        return _UNPACKERS[codec](bytes(body))
    except _UNREADABLE as error:
        known = NAMES[codec] if codec < len(NAMES) else f"codec {codec}"
        message = f"not readable as {known}: {error}"
        raise ValueError(message) from error


def pack(codec: int, records: bytes) -> bytes:
    """Return a body with `records`, compressed.

    Args:
        codec: one of the five.
        records: as `unpack` returns them.
    """
    return _PACKERS[codec](records)


def _same(data: bytes) -> bytes:
    return data


def _unzip_gzip(body: bytes) -> bytes:
    return gzip.decompress(body)


def _zip_gzip(records: bytes) -> bytes:
    return gzip.compress(records, _GZIP_LEVEL, mtime=0)


def _unzip_snappy(body: bytes) -> bytes:
    if not body.startswith(_XERIAL):
        # librdkafka writes one block without the frame.
        return bytes(snappy.uncompress(body))
    pieces, at = [], _XERIAL_FRONT
    while at < len(body):
        (size,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        if not 0 <= size <= len(body) - at:
            message = f"a block of {size} bytes at {at} of {len(body)}"
            raise EOFError(message)
        pieces.append(snappy.uncompress(body[at : at + size]))
        at += size
    return b"".join(pieces)


def _zip_snappy(records: bytes) -> bytes:
    pieces = [_XERIAL, _XERIAL_VERSIONS]
    for at in range(0, len(records), _XERIAL_BLOCK):
        block = snappy.compress(records[at : at + _XERIAL_BLOCK])
        pieces += (_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _unzip_lz4(body: bytes) -> bytes:
    return bytes(lz4.frame.decompress(body))


def _zip_lz4(records: bytes) -> bytes:
    # Kafka reads no blocks that depend on each other.
    return bytes(lz4.frame.compress(records, block_linked=False))


def _unzip_zstd(body: bytes) -> bytes:
    pieces, rest = [], body
    while True:
        frame = zstandard.ZstdDecompressor().decompressobj()
        pieces.append(frame.decompress(rest))
        if not frame.eof:
            message = "its last frame is cut off"
            raise EOFError(message)
        rest = frame.unused_data
        if not rest:
            return b"".join(pieces)


def _zip_zstd(records: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(records)


_UNPACKERS: tuple[Callable[[bytes], bytes], ...] = (_same, _unzip_gzip, _unzip_snappy, _unzip_lz4, _unzip_zstd)
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (_same, _zip_gzip, _zip_snappy, _zip_lz4, _zip_zstd)
