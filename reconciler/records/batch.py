"""Record batches (message format v2) as bytes: checks them and gives them a new header.

`split` and `one_record_batches` find batches in fetch responses, and `channel` gives each a new header. Keys,
values, headers, timestamps and compression are not decoded. Pure: no I/O, no client.

The layout is Kafka's `DefaultRecordBatch`: 61 bytes of header, the CRC-32C covers everything from the attributes on.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from reconciler.records.checksum import crc32c, replaced_prefix

HEADER = struct.Struct(">qiibIhiqqqhii")
# baseOffset, batchLength, partitionLeaderEpoch, magic, crc: what stands before the checksummed part.
_PREFIX = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")
# Bytes of base offset and length, which the length field does not count.
LOG_OVERHEAD = 12
CHECKED_FROM = _PREFIX.size
HEADER_SIZE = HEADER.size
MAGIC = 2
# Bytes that the length field counts beside the body.
_BEHIND_LENGTH = HEADER_SIZE - LOG_OVERHEAD

CODEC_BITS = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

SEQUENCE_MODULUS = 2**31
# The checksum field of a batch that was built here and is not sealed yet.
NO_CRC = -1
# From this size on (bytes) a body stays in the response's buffer instead of being copied, and its new checksum is
# computed from the old one instead of from the bytes.
LARGE = 32 * 1024

# The records of a batch; a view where they stay in the fetch response's buffer.
Body = bytes | memoryview


def next_sequence(sequence: int, count: int) -> int:
    """Return the sequence number after `count` records that begin at `sequence` (it wraps to 0 after 2^31 - 1)."""
    return (sequence + count) % SEQUENCE_MODULUS


class Batch(NamedTuple):
    """One whole record batch as a log holds it; a tuple, because one is made for each batch that is copied.

    Attributes:
        base_offset: offset of its first record.
        last_offset_delta: last offset minus first.
        record_count: how many records it holds.
        attributes: codec, timestamp type and the transactional, control and delete-horizon bits.
        base_timestamp: milliseconds; the base of the records' timestamp deltas.
        max_timestamp: milliseconds; the newest record's.
        producer_id: of the producer that wrote it, -1 for none.
        producer_epoch: likewise.
        base_sequence: likewise.
        crc: CRC-32C as the header has it, or `NO_CRC`.
        body: the records, as they are (compressed or not).
        leader_epoch: of the leader that appended it; -1 where it is unknown, as for batches built here.
        parts: set where offsets without records were taken out of its deltas: number of consecutive records, number of
            empty offsets behind them, and so on alternately; else empty.
    """

    base_offset: int
    last_offset_delta: int
    record_count: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    crc: int
    body: Body
    leader_epoch: int = -1
    parts: tuple[int, ...] = ()

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return HEADER_SIZE + len(self.body)

    @property
    def first_timestamp(self) -> int:
        """Timestamp of the first record (ms); of the newest where the log cleaner stored its delete horizon there."""
        return self.max_timestamp if self.attributes & _DELETE_HORIZON else self.base_timestamp

    @property
    def is_control(self) -> bool:
        """Whether it holds a transaction marker and no records."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether it was written in a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_log_append_time(self) -> bool:
        """Whether all its records have the broker's append time."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_intact(self) -> bool:
        """Whether the header's CRC fits the bytes."""
        return self.crc == self.checksum

    @property
    def checksum(self) -> int:
        """The CRC-32C that fits the bytes."""
        return crc32c(self.body, crc32c(self._checked_header()))

    def sealed(self) -> Batch:
        """Return the batch with the checksum that fits its bytes."""
        return self._replace(crc=self.checksum)

    def rewritten(self, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
        """Return the batch as a producer sends it: `header` with the body behind it."""
        return b"".join((self.header(producer_id, producer_epoch, base_sequence), self.body))

    def header(self, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool = False) -> bytes:
        """Return the header of a produce request: base offset 0, our producer and sequence, only the codec kept.

        The transactional bit is set as given; timestamp type, control and delete-horizon bits are cleared. Deltas stay
        relative to the base timestamp, so timestamps do not change. A batch that spans offsets without records does not
        have them in its deltas (`rewrite.dense`). The checksum of a large batch is derived from its present one: it is
        right for the bytes sent only if that one is right.

        Args:
            producer_id: the producer's id.
            producer_epoch: its epoch.
            base_sequence: sequence number of the first record.
            transactional: whether it is written in a transaction.
        """
        count, body = self.record_count, self.body
        checked = _CHECKED.pack(
            self.attributes & CODEC_BITS | (_TRANSACTIONAL if transactional else 0),
            count - 1,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        size = len(body)
        if size >= LARGE and self.crc != NO_CRC:
            crc = replaced_prefix(self.crc, self._checked_header(), checked, size)
        else:
            crc = crc32c(body, crc32c(checked))
        return _PREFIX.pack(0, size + _BEHIND_LENGTH, -1, MAGIC, crc) + checked

    def to_bytes(self) -> bytes:
        """Return the batch as the log holds it."""
        prefix = _PREFIX.pack(self.base_offset, self.size - LOG_OVERHEAD, self.leader_epoch, MAGIC, self.crc)
        return b"".join((prefix, self._checked_header(), self.body))

    def _checked_header(self) -> bytes:
        return _CHECKED.pack(
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )


class UnreadableBatch(ValueError):
    """The bytes are not a batch that can be read.

    Attributes:
        offset: base offset in its header.
        magic: message format in its header.
    """

    def __init__(self, offset: int, magic: int, why: str) -> None:
        super().__init__(f"batch at offset {offset} has message format v{magic}: {why}")
        self.offset = offset
        self.magic = magic
