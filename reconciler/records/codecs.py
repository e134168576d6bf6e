"""Compresses and decompresses the body of a batch in Kafka's five codecs.

`rewrite` and `legacy` call it. The framings are Kafka's: gzip, snappy in xerial blocks, lz4 and zstd frames.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from contextvars import ContextVar

import lz4.frame
import snappy
import zstandard

from reconciler.model.declared.flow import DEFAULT_LARGEST_BATCH
from reconciler.records import decompression
from reconciler.records.decompression import LENGTH, DecompressedTooLarge

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
# Where a batch keeps its own codec, whose level is unknown.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
_XERIAL_BLOCK = 32 * 1024
_most: ContextVar[int] = ContextVar("most", default=DEFAULT_LARGEST_BATCH)


class Codec(int):
    """A codec with a level: as a number it is Kafka's number of the codec, so batches in it stay as they are.

    Args:
        number: of the codec.
        level: of its library; None for the library's default.

    Attributes:
        level: that one.
    """

    level: int | None

    def __new__(cls, number: int, level: int | None = None) -> Codec:
        """Make a number that has a level."""
        made = super().__new__(cls, number)
        made.level = level
        return made


COMPRESSIONS: Mapping[str, Codec | None] = {
    "source": None,
    "none": Codec(NONE),
    "gzip": Codec(GZIP),
    "snappy": Codec(SNAPPY),
    "lz4": Codec(LZ4),
    "zstd": Codec(ZSTD),
}
"""The values of a flow's `compression`; None leaves batches as they are. The schema has the same names."""


def limit_decompressed(most: int) -> None:
    """Limit every batch to `most` decompressed bytes, in this thread from now on.

    A process copies for one flow at a time; it calls this with the flow's `largest-batch`.
    """
    _most.set(most)


def unpack(codec: int, body: bytes | memoryview) -> bytes | memoryview:
    """Return the records in a batch's body, decompressed; a large result is a read-only view.

    Args:
        codec: number of the codec, from the batch's attributes.
        body: of the batch.

    Raises:
        ValueError: the codec is unknown, or the bytes are not in it.
        DecompressedTooLarge: the result exceeds the limit set with `limit_decompressed`; decompression stopped there.
    """
    try:
        return _UNPACKERS[codec](bytes(body), _most.get())
    except DecompressedTooLarge:
        raise
    except (*decompression.UNREADABLE, ValueError) as error:
        known = NAMES[codec] if codec < len(NAMES) else f"codec {codec}"
        message = f"not readable as {known}: {error}"
        raise ValueError(message) from error


def pack(codec: int, records: bytes | memoryview) -> bytes | memoryview:
    """Return a body with `records`, compressed.

    Args:
        codec: number of the codec, 0 to 4; a `Codec` has a level as well.
        records: as `unpack` returns them.
    """
    return _PACKERS[codec](records, codec.level if isinstance(codec, Codec) else None)


def _as_it_is(body: bytes, _most: int) -> bytes:
    return body


def _same(records: bytes | memoryview, _level: int | None) -> bytes | memoryview:
    return records


def _zip_gzip(records: bytes | memoryview, level: int | None) -> bytes:
    return gzip.compress(records, _GZIP_LEVEL if level is None else level, mtime=0)


def _zip_snappy(records: bytes | memoryview, _level: int | None) -> bytes:
    pieces = [decompression.XERIAL, decompression.XERIAL_VERSIONS]
    for at in range(0, len(records), _XERIAL_BLOCK):
        block = snappy.compress(bytes(records[at : at + _XERIAL_BLOCK]))
        pieces += (LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _zip_lz4(records: bytes | memoryview, level: int | None) -> bytes:
    # Kafka cannot read lz4 blocks that depend on each other.
    return bytes(lz4.frame.compress(records, compression_level=level or 0, block_linked=False, store_size=False))


def _zip_zstd(records: bytes | memoryview, level: int | None) -> bytes:
    return zstandard.ZstdCompressor(_ZSTD_LEVEL if level is None else level).compress(records)


_UNPACKERS: tuple[Callable[[bytes, int], bytes | memoryview], ...] = (
    *(_as_it_is, decompression.gzip, decompression.xerial, decompression.lz4_frames, decompression.zstd),
)
_PACKERS: tuple[Callable[[bytes | memoryview, int | None], bytes | memoryview], ...] = (
    *(_same, _zip_gzip, _zip_snappy, _zip_lz4, _zip_zstd),
)
