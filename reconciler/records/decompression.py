"""Decompresses the body of a batch up to a limit: 16 KB of zstd can hold 512 MB.

`codecs` calls it. Each function takes a body and a limit in bytes and raises DecompressedTooLarge as soon as the output
exceeds it; memory use stays near the limit. A large result is a read-only view of one growing buffer, because joining
pieces would take twice the memory for a moment. Pure.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import lz4.block
import lz4.frame
import snappy
import zstandard

from reconciler.wire.protocol.compact import read_uvarint

XERIAL = b"\x82SNAPPY\x00"
XERIAL_VERSIONS = struct.pack(">ii", 1, 1)
LENGTH = struct.Struct(">i")
UNREADABLE = (
    *(IndexError, EOFError, OSError, RuntimeError, MemoryError, struct.error),
    *(zlib.error, snappy.UncompressError, zstandard.ZstdError),
)
"""What decoders raise, beside ValueError, for bytes that are not in their format."""

_CUT_OFF = "it is cut off"
# zlib's window bits for data behind a gzip header.
_GZIP = 31
# Bytes that are decompressed at once.
_PIECE = 2**20
_SEVERAL_PIECES = 8 * _PIECE
# Most bytes that one compressed byte can expand to: RFC 1951 (258 in two bits), and LZ4's block format.
_GZIP_RATIO, LZ4_RATIO = 1_032, 255
# An lz4 frame as producers write it: magic, independent blocks of up to 64 KB and no checksums, the header's checksum;
# behind it the block's size, whose first bit is set where it is stored as it is, the block, and an end mark.
LZ4_USUAL, LZ4_END = b"\x04\x22\x4d\x18\x60\x40\x82", bytes(4)
LZ4_SIZE = struct.Struct("<I")
_LZ4_BLOCK = len(LZ4_USUAL) + LZ4_SIZE.size
LZ4_STORED = 1 << 31
# Space for such a block that is decompressed, in sizes of it; the few that need more are decompressed by the frame.
_LZ4_USUAL_RATIO = 16
# Bytes fed to a decoder at once: it copies whatever of them it does not consume.
_FED = 64 * 1024

# The frames of zstd, RFC 8878, 3.1.
_MAGIC = struct.Struct("<I")
_FRAME, _SKIPPABLE, _SKIPPABLE_BITS = 0xFD2FB528, 0x184D2A50, 0xFFFFFFF0
_DICTIONARY_BYTES = (0, 1, 2, 4)
_CONTENT_BYTES = (0, 2, 4, 8)
_TWO_BYTES_FROM = 256
_BLOCK_HEADER, _LARGEST_BLOCK, _CHECKSUM = 3, 128 * 1024, 4
_RAW, _RLE, _RESERVED = 0, 1, 3
# No batch of records has more blocks than this; with more, the size is found by decoding.
_MANY_BLOCKS = 32 * 1024


class DecompressedTooLarge(ValueError):
    """A batch's body has more bytes decompressed than the limit.

    Attributes:
        size: of the compressed body, in bytes.
        most: the limit, in bytes.
    """

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"its {size:,} bytes are more than {most:,} decompressed")
        self.size, self.most = size, most


class _Growing:
    """The decompressed output so far."""

    def __init__(self, body: bytes, most: int) -> None:
        self._size, self._most = len(body), most
        self._count = 0
        self._pieces: list[bytes] = []
        self._data: bytearray | None = None

    def add(self, piece: bytes) -> None:
        """Append a piece.

        Raises:
            DecompressedTooLarge: the output exceeds the limit.
        """
        self._count += len(piece)
        if self._count > self._most:
            raise DecompressedTooLarge(self._size, self._most)
        if self._data is not None:
            self._data += piece
            return
        self._pieces.append(piece)
        if self._count > _PIECE:
            self._data = bytearray().join(self._pieces)
            self._pieces.clear()

    @property
    def left(self) -> int:
        """How many bytes may still be appended."""
        return self._most - self._count

    def whole(self) -> bytes | memoryview:
        """Return the whole output."""
        if self._data is None:
            return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        return memoryview(self._data).toreadonly()


def gzip(body: bytes, most: int) -> bytes | memoryview:
    """Decompress consecutive gzip members, as Java may write them; zero padding behind them is ignored."""
    if len(body) * _GZIP_RATIO <= most:
        member = zlib.decompressobj(_GZIP)
        plain = member.decompress(body)
        if member.eof and not member.unused_data:
            return plain
    found, view, at = _Growing(body, most), memoryview(body), 0
    while at < len(view):
        member = zlib.decompressobj(_GZIP)
        while not member.eof:
            fed = view[at : at + _FED]
            piece = member.decompress(fed, _PIECE)
            found.add(piece)
            at += len(fed) - len(member.unconsumed_tail) - len(member.unused_data)
            if not fed and not piece:
                raise EOFError(_CUT_OFF)
        while at < len(view) and not view[at]:
            at += 1
    return found.whole()


def xerial(body: bytes, most: int) -> bytes | memoryview:
    """Decompress snappy: xerial blocks, or one bare block as librdkafka writes it."""
    if not body.startswith(XERIAL):
        return _block(body, most, body, most)
    found, at = _Growing(body, most), len(XERIAL) + len(XERIAL_VERSIONS)
    while at < len(body):
        (size,) = LENGTH.unpack_from(body, at)
        at += LENGTH.size
        if not 0 <= size <= len(body) - at:
            message = f"a block of {size} bytes at {at} of {len(body)}"
            raise EOFError(message)
        found.add(_block(body[at : at + size], found.left, body, most))
        at += size
    return found.whole()


def _block(block: bytes, left: int, body: bytes, most: int) -> bytes:
    """Decompress one snappy block. It begins with its decompressed size, which the library allocates at once."""
    if block and read_uvarint(block, 0)[0] > left:
        raise DecompressedTooLarge(len(body), most)
    return bytes(snappy.uncompress(block))


def _one_lz4_block(body: bytes) -> bytes | None:
    """Return what the only block of a usual lz4 frame holds, without a decoder of frames, which costs twice as much.

    Returns None where it is another frame, holds more than most do, or is damaged.
    """
    if not (body.startswith(LZ4_USUAL) and body.endswith(LZ4_END)):
        return None
    (size,) = LZ4_SIZE.unpack_from(body, len(LZ4_USUAL))
    block = body[_LZ4_BLOCK : -len(LZ4_END)]
    if size == len(block) | LZ4_STORED:
        return block
    if size != len(block) or not size:
        return None
    try:
        return bytes(lz4.block.decompress(block, uncompressed_size=_LZ4_USUAL_RATIO * size))
    except lz4.block.LZ4BlockError:
        return None


def lz4_frames(body: bytes, most: int) -> bytes | memoryview:
    """Decompress consecutive lz4 frames."""
    if len(body) * LZ4_RATIO <= most:
        if (block := _one_lz4_block(body)) is not None:
            return block
        plain, end = lz4.frame.decompress(body, return_bytes_read=True)
        if end == len(body):
            return bytes(plain)
    found, view, at = _Growing(body, most), memoryview(body), 0
    while True:
        frame = lz4.frame.LZ4FrameDecompressor()
        while not frame.eof:
            fed = bytes(view[at : at + _FED] if frame.needs_input else b"")
            at += len(fed)
            piece = frame.decompress(fed, _PIECE)
            found.add(piece)
            if not fed and not piece and not frame.eof:
                raise EOFError(_CUT_OFF)
        at -= len(frame.unused_data or b"")
        if at >= len(view):
            return found.whole()


class _Frame(NamedTuple):
    """One zstd frame: begin and end in the body, most bytes that it can hold, number of blocks."""

    begin: int
    end: int
    most: int
    blocks: int


def zstd(body: bytes, most: int) -> bytes | memoryview:
    """Decompress consecutive zstd frames, with or without a content size in their headers."""
    frames: list[_Frame] = []
    left, blocks = most, _MANY_BLOCKS
    for frame in _frames(body):
        frames.append(frame)
        left, blocks = left - frame.most, blocks - frame.blocks
        if left < 0 or blocks < 0:
            _count(body, most)
            break
    if left < 0 or blocks < 0 or most - left < _SEVERAL_PIECES:
        return _one_after_another(body)
    decoder = zstandard.ZstdDecompressor()
    view = memoryview(body)
    pieces = [decoder.decompress(view[one.begin : one.end], max_output_size=one.most) for one in frames if one.most]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _frames(body: bytes) -> Iterator[_Frame]:
    """Yield the frames, whose ends follow from their block headers; with too many blocks the end is not determined.

    Raises:
        EOFError: the last one is cut off.
        ValueError: the bytes are not zstd frames.
        struct.error, IndexError: likewise.
    """
    at = 0
    while at < len(body) or not at:
        begin = at
        (magic,) = _MAGIC.unpack_from(body, at)
        at += _MAGIC.size
        if magic & _SKIPPABLE_BITS == _SKIPPABLE:
            (size,) = _MAGIC.unpack_from(body, at)
            at += _MAGIC.size + size
            found = _Frame(begin, at, 0, 1)
        elif magic == _FRAME:
            content_size, at, has_checksum = _frame_header(body, at)
            at, most, blocks = _blocks(body, at)
            at += _CHECKSUM if has_checksum else 0
            if content_size is not None and content_size > most and blocks <= _MANY_BLOCKS:
                message = f"a frame of at most {most} bytes has {content_size} in its header"
                raise ValueError(message)
            found = _Frame(begin, at, most if content_size is None else content_size, blocks)
        else:
            message = f"no frame at {begin}"
            raise ValueError(message)
        if at > len(body) and found.blocks <= _MANY_BLOCKS:
            raise EOFError(_CUT_OFF)
        yield found


def _frame_header(body: bytes, at: int) -> tuple[int | None, int, bool]:
    """Return a frame's content size (None if absent), where its blocks begin, and whether a checksum follows them."""
    descriptor = body[at]
    has_one_segment = bool(descriptor & 0x20)
    at += 1 if has_one_segment else 2
    at += _DICTIONARY_BYTES[descriptor & 3]
    size = _CONTENT_BYTES[descriptor >> 6] or int(has_one_segment)
    content = int.from_bytes(body[at : at + size], "little") + (_TWO_BYTES_FROM if size == _CONTENT_BYTES[1] else 0)
    return (content if size else None), at + size, bool(descriptor & 4)


def _blocks(body: bytes, at: int) -> tuple[int, int, int]:
    """Return where a frame's blocks end, their most bytes, and their number (up to `_MANY_BLOCKS` + 1)."""
    most = count = is_last = 0
    while not is_last:
        if at + _BLOCK_HEADER > len(body):
            raise EOFError(_CUT_OFF)
        header = int.from_bytes(body[at : at + _BLOCK_HEADER], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED or size > _LARGEST_BLOCK:
            message = f"no block at {at}"
            raise ValueError(message)
        at += _BLOCK_HEADER + (1 if kind == _RLE else size)
        most += size if kind in (_RAW, _RLE) else _LARGEST_BLOCK
        count += 1
        if count > _MANY_BLOCKS:
            break
    return at, most, count


def _count(body: bytes, most: int) -> None:
    """Decode frames and discard the output.

    Raises:
        DecompressedTooLarge: the output exceeds the limit.
    """
    count = 0
    reader = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True)
    while piece := reader.read(_PIECE):
        count += len(piece)
        if count > most:
            raise DecompressedTooLarge(len(body), most)


def _one_after_another(body: bytes) -> bytes:
    """Decompress frames whose total size is known to be within the limit."""
    pieces, rest = [], body
    while True:
        frame = zstandard.ZstdDecompressor().decompressobj()
        pieces.append(frame.decompress(rest))
        if not frame.eof:
            raise EOFError(_CUT_OFF)
        rest = frame.unused_data
        if not rest:
            return b"".join(pieces)
