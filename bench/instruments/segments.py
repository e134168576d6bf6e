"""Reads a topic out of an embedded broker's log segments: how many records and bytes are there by now.

`watch` follows a target with it, `race` counts a source. Reading headers from the page cache costs the broker nothing,
asks no client, and counts records exactly where log end offsets would count transaction markers as well. It must not
be pointed at logs that a cleaner rewrites.
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from reconciler.records.batch import HEADER_SIZE

_LENGTH_FOLLOWS = 12
# Of a batch's header: its length, attributes, producer id and number of records.
_LOOK = struct.Struct(">8xi9xh20xq6xi")
_SMALL = 4096
_WINDOW = 256 * 1024
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
# A marker's record: five one-byte varints and flags, the key's version, then its type. 1 is a commit.
_MARKER_TYPE = slice(HEADER_SIZE + 7, HEADER_SIZE + 9)
_COMMIT = 1
_WARM_PIECE = 8 << 20


@dataclass(frozen=True)
class LogFacts:
    """What a topic holds.

    Attributes:
        batches: record batches, without transaction markers.
        records: records that a consumer under `read_committed` would see.
        bytes: bytes of those batches, headers included.
    """

    batches: int
    records: int
    bytes: int

    @property
    def batch_bytes(self) -> float:
        """Average size of a batch."""
        return self.bytes / self.batches if self.batches else 0.0

    @property
    def batch_records(self) -> float:
        """Average number of records in a batch."""
        return self.records / self.batches if self.batches else 0.0


class _PartitionLog:
    """Follows the segments of one partition; each batch is seen once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment: Path | None = None
        self._file: int | None = None
        self._position = 0
        self._open_transactions: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.batches = self.records = self.bytes = 0

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def advance(self) -> None:
        while self._file is not None or self._open_next():
            self._read_on()
            if not self._open_next():
                return

    def _open_next(self) -> bool:
        """Open the segment after the current one, if there is any; only then is the current one complete."""
        later = sorted(path for path in self._folder.glob("*.log") if self._segment is None or path > self._segment)
        if not later:
            return False
        if self._segment is not None:
            # It may have grown between the last look and the roll.
            self._read_on()
        self.close()
        self._segment, self._position = later[0], 0
        self._file = os.open(later[0], os.O_RDONLY)
        return True

    def _read_on(self) -> None:
        assert self._file is not None, "a segment is open"
        size = os.fstat(self._file).st_size
        window, begins, small = b"", self._position, False
        while self._position + HEADER_SIZE <= size:
            at = self._position - begins
            if at + _MARKER_TYPE.stop > len(window):
                # Many small batches are read together; of large ones only the headers.
                window = os.pread(self._file, _WINDOW if small else _MARKER_TYPE.stop, self._position)
                begins, at = self._position, 0
            rest, attributes, producer, records = _LOOK.unpack_from(window, at)
            length = rest + _LENGTH_FOLLOWS
            if self._position + length > size:
                return
            self._position += length
            small = length < _SMALL
            if attributes & _CONTROL:
                kind = window[at + _MARKER_TYPE.start : at + _MARKER_TYPE.stop]
                self._end_transaction(producer, int.from_bytes(kind, "big") == _COMMIT)
            elif attributes & _TRANSACTIONAL:
                pending = self._open_transactions[producer]
                pending[:] = pending[0] + 1, pending[1] + records, pending[2] + length
            else:
                self._count(1, records, length)

    def _end_transaction(self, producer: int, committed: bool) -> None:
        pending = self._open_transactions.pop(producer, None)
        if pending and committed:
            self._count(*pending)

    def _count(self, batches: int, records: int, size: int) -> None:
        self.batches += batches
        self.records += records
        self.bytes += size


class TopicLog:
    """Follows a topic in a broker's data folder; the topic need not be there yet.

    Args:
        data: the broker's data folder.
        topic: the topic's name.
        partitions: how many partitions it has.
    """

    def __init__(self, data: Path, topic: str, partitions: int) -> None:
        self._folders = [data / f"{topic}-{number}" for number in range(partitions)]
        self._logs = [_PartitionLog(folder) for folder in self._folders]

    def advance(self) -> LogFacts:
        """Read what was appended since the last call and return the totals."""
        for log in self._logs:
            log.advance()
        return LogFacts(
            sum(log.batches for log in self._logs),
            sum(log.records for log in self._logs),
            sum(log.bytes for log in self._logs),
        )

    def warm(self) -> None:
        """Read every segment once, so that the page cache holds the topic."""
        for folder in self._folders:
            for path in folder.glob("*.log"):
                with path.open("rb", buffering=0) as segment:
                    while segment.read(_WARM_PIECE):
                        pass

    def close(self) -> None:
        """Close the files."""
        for log in self._logs:
            log.close()
