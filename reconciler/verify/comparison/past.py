"""Where records stand that went by not long ago: a record that comes once more is no foreign one. Pure.

Batches are kept as they are, and decoded when somebody asks for the first time; then a digest stands for each record.
"""

from __future__ import annotations

import contextlib
from collections import deque
from functools import cached_property
from hashlib import blake2b

from reconciler.records.batch import Batch
from reconciler.records.rewrite import RawRecord, raw_records

# So much is kept, of batches as they are and of records, some 200 bytes each.
_BYTES = 8 * 2**20
_RECORDS = 100_000


class Past:
    """The batches of one side that went by, or are decoded and go by next."""

    def __init__(self) -> None:
        self._gone: deque[_Batch] = deque()
        # Those of which somebody has asked: they are the first of what has gone.
        self._places: dict[bytes, int] = {}
        self._asked = 0
        self._ahead: deque[_Batch] = deque()
        self._bytes = self._records = 0

    def add(self, batch: Batch, taken_to: int) -> None:
        """Take a batch that goes by, or is decoded.

        Args:
            batch: it stands behind all that came before.
            taken_to: offset behind what has gone by.
        """
        self._ahead.append(_Batch(batch))
        self._settle(taken_to)

    def find(self, record: RawRecord, taken_to: int) -> int | None:
        """Return at which offset a record that carries the same was taken, the last one; None if none was."""
        self._settle(taken_to)
        wanted = _digest(record)
        if self._ahead:
            # What is decoded beyond has not gone by.
            found = self._ahead[0].places.get(wanted)
            if found is not None and found < taken_to:
                return found
        while self._asked < len(self._gone):
            batch = self._gone[self._asked]
            self._places |= batch.places
            batch.forget_records()
            self._asked += 1
        return self._places.get(wanted)

    def _settle(self, taken_to: int) -> None:
        # What is decoded far ahead pushes nothing out before it has gone by itself.
        while self._ahead and self._ahead[0].end <= taken_to:
            batch = self._ahead.popleft()
            self._gone.append(batch)
            self._bytes, self._records = self._bytes + batch.size, self._records + batch.records
        while (self._bytes > _BYTES or self._records > _RECORDS) and len(self._gone) > 1:
            batch = self._gone.popleft()
            self._bytes, self._records = self._bytes - batch.size, self._records - batch.records
            if self._asked:
                self._asked -= 1
                for digest in batch.digests:
                    # Another that carries the same may have come behind it.
                    if self._places.get(digest, batch.end) < batch.end:
                        del self._places[digest]


class _Batch:
    def __init__(self, batch: Batch) -> None:
        self.size, self.records, self.end = batch.size, batch.record_count, batch.next_offset
        self.digests: tuple[bytes, ...] = ()
        self._batch: Batch | None = batch

    @cached_property
    def places(self) -> dict[bytes, int]:
        """The offsets of its records by what they carry, of equal ones the first."""
        found: dict[bytes, int] = {}
        # It may have been equal as it is, undecoded; then nobody can tell what it holds.
        with contextlib.suppress(ValueError):
            for record in raw_records(self._batch) if self._batch is not None else ():
                found.setdefault(_digest(record), record.offset)
        return found

    def forget_records(self) -> None:
        """Keep nothing but what tells which records were there."""
        self.digests, self._batch = tuple(self.places), None
        del self.places


def _digest(record: RawRecord) -> bytes:
    return blake2b(b"%d " % record.timestamp + record.rest, digest_size=16).digest()
