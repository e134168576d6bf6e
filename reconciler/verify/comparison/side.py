"""One side of a comparison: a buffer of batches, taken whole if possible, else record by record.

`feed` adds batches, `comparer` takes them. Pure: no I/O.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from itertools import islice, takewhile

from reconciler.records.batch import Batch
from reconciler.records.read_committed import Gap
from reconciler.records.rewrite import RawRecord, raw_records
from reconciler.verify.comparison.past import Past

# Bytes that are read in advance.
_BUFFER_BYTES = 16 * 2**20
# Bytes that are decoded in advance, at most.
_WINDOW_BYTES = 64 * 2**20

Content = tuple[int, bytes]


class NeedMore(Exception):
    """More must be read before the comparison can go on; holds the side."""

    def __init__(self, side: Side) -> None:
        super().__init__(side.name)
        self.side = side


class UnreadableLog(Exception):
    """A batch cannot be decoded, or its checksum is wrong; holds the side and the batch."""

    def __init__(self, side: Side, batch: Batch, why: str) -> None:
        super().__init__(why)
        self.side = side
        self.batch = batch


def content(record: RawRecord) -> Content:
    """Return what is compared of a record: timestamp, and key, value and headers as bytes."""
    return record.timestamp, record.rest


class Side:
    """Buffer of one side's log, from the next record to compare on.

    Args:
        name: `source` or `target`.
        first: offset of the next record.
        end: end offset of the records to compare; it may change.
        limit: end offset of the records to read, at least `end`; by default `end`.

    Attributes:
        next: offset after the last taken record.
        read_to: offset up to which the log was read.
        expired: offset below which the cluster deleted records before they were read; 0 for none.
    """

    def __init__(self, name: str, first: int, end: int, limit: int | None = None) -> None:
        self.name = name
        self.next = self.read_to = first
        self.end = end
        self.limit = end if limit is None else limit
        self.expired = 0
        self._whole: deque[Batch] = deque()
        self._records: deque[RawRecord] = deque()
        self._bytes = 0
        # Taken records, to distinguish repeated records from foreign ones.
        self._past = Past()

    # --- what is read -------------------------------------------------------------------------------------------------

    def add(self, items: Iterable[Batch | Gap]) -> None:
        """Add batches and gaps from `read_to` on."""
        for item in items:
            if isinstance(item, Batch):
                self._whole.append(item)
                self._bytes += item.size
                self.read_to = item.next_offset
            else:
                self.read_to = item.next

    def jump(self, offset: int) -> None:
        """Skip offsets that were deleted before they were read."""
        self.expired = self.read_to = max(self.read_to, offset)
        if not self._whole and not self._records:
            self.next = max(self.next, offset)

    def nothing_more(self) -> None:
        """Mark the log as read up to the limit."""
        self.read_to = max(self.read_to, self.limit)

    @property
    def is_read(self) -> bool:
        """Whether the log was read up to `end`."""
        return self.read_to >= self.end

    @property
    def is_full(self) -> bool:
        """Whether the buffer is full."""
        return self._bytes >= _BUFFER_BYTES

    # --- what is taken ------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether no record before `end` is left."""
        first = self._records[0].offset if self._records else self._whole[0].base_offset if self._whole else None
        return self.is_read if first is None else first >= self.end

    def whole(self) -> Batch | None:
        """Return the next batch if all of it is to be compared, and it was not decoded.

        Raises:
            NeedMore: it is not read yet; the other side should not be decoded either.
        """
        if self._records or not self._whole:
            if not self._records and not self.is_read:
                raise NeedMore(self)
            return None
        batch = self._whole[0]
        return batch if batch.base_offset >= self.next and batch.next_offset <= self.end else None

    def take_whole(self) -> None:
        """Take the batch that `whole` returned."""
        batch = self._whole.popleft()
        self._bytes -= batch.size
        self._past.add(batch, self.next)
        self.next = batch.next_offset

    def head(self) -> RawRecord | None:
        """Return the next record; None when there is none before the end.

        Raises:
            NeedMore: it is not read yet.
            UnreadableLog: its batch cannot be decoded.
        """
        while not self._records:
            if not self._whole:
                if self.is_read:
                    return None
                raise NeedMore(self)
            if self._whole[0].base_offset >= self.end:
                return None
            self._decode()
        record = self._records[0]
        return record if record.offset < self.end else None

    def take(self) -> RawRecord:
        """Take the record that `head` returned."""
        record = self._records.popleft()
        self.next = record.offset + 1
        return record

    @property
    def decoded(self) -> deque[RawRecord]:
        """The decoded records; a caller that takes from it must move `next`."""
        return self._records

    def window(self, count: int) -> list[RawRecord]:
        """Return the next records up to the limit: `count` of them, fewer where there are no more, or too large ones.

        Raises:
            NeedMore: they are not read yet.
            UnreadableLog: the next batch cannot be decoded.
        """
        size = sum(len(record.rest) for record in self._records)
        while len(self._records) < count and size < _WINDOW_BYTES:
            known = len(self._records)
            if not self._whole:
                if self.read_to < self.limit and not self.is_full:
                    raise NeedMore(self)
                break
            if self._whole[0].base_offset >= self.limit:
                break
            try:
                self._decode()
            except UnreadableLog:
                if not self._records:
                    raise
                break
            size += sum(len(record.rest) for record in islice(self._records, known, None))
        return list(takewhile(lambda one: one.offset < self.limit, islice(self._records, count)))

    def shows_all(self, count: int) -> bool:
        """Return whether a `window` of this many records holds all up to the limit; large records may shorten it."""
        is_more = bool(self._whole) and self._whole[0].base_offset < self.limit
        return len(self._records) < count and self.read_to >= self.limit and not is_more

    def skip(self, offset: int) -> int:
        """Skip all records below an offset; return how many of them had been read."""
        count = 0
        while self._records and self._records[0].offset < offset:
            self._records.popleft()
            count += 1
        while not self._records and self._whole and self._whole[0].next_offset <= offset:
            batch = self._whole.popleft()
            self._bytes -= batch.size
            count += batch.record_count
        if not self._records and self._whole and self._whole[0].base_offset < offset:
            # The offset is inside this batch. If it cannot be decoded, it is reported when it is the next one.
            with contextlib.suppress(UnreadableLog):
                self._decode()
                return count + self.skip(offset)
        self.next = max(self.next, offset)
        return count

    def leap(self, offset: int) -> None:
        """Skip all records below an offset, read or not, as they were checked elsewhere."""
        self.skip(offset)
        self.next, self.read_to = max(self.next, offset), max(self.read_to, offset)

    def drop(self, batch: Batch) -> None:
        """Skip a batch that cannot be decoded; it must be the next one."""
        assert self._whole[0] is batch, "only the next batch can have been refused"
        self._whole.popleft()
        self._bytes -= batch.size
        if not self._records:
            self.next = max(self.next, batch.next_offset)

    def _decode(self) -> None:
        batch = self._whole[0]
        if not batch.is_intact:
            raise UnreadableLog(self, batch, "its checksum does not fit")
        try:
            records = raw_records(batch)
        except ValueError as error:
            raise UnreadableLog(self, batch, str(error)) from None
        self._whole.popleft()
        self._bytes -= batch.size
        self._past.add(batch, self.next)
        self._records.extend(record for record in records if record.offset >= self.next)

    # --- what went by -------------------------------------------------------------------------------------------------

    def went_by(self, record: RawRecord) -> int | None:
        """Return the offset at which an equal record was taken not long ago; None if none was."""
        return self._past.find(record, self.next)
