"""Remembers records that were taken not long ago, so that a repeated record does not count as foreign. Pure.

Batches are kept as they are, and decoded at the first lookup; then only a digest of each record is kept.
"""

from __future__ import annotations

import contextlib
from collections import deque
from functools import cached_property
from hashlib import blake2b

from reconciler.records.batch import Batch
from reconciler.records.rewrite import RawRecord, raw_records

# Limits: bytes of batches, and records of some 200 bytes each.
_BYTES = 8 * 2**20
_RECORDS = 100_000


class Past:
    """The batches of one side that were taken, or are decoded and taken next."""

    def __init__(self) -> None:
        self._gone: deque[_Batch] = deque()
        # The batches that were looked up: the first ones of `_gone`.
        self._places: dict[bytes, int] = {}
        self._asked = 0
        self._ahead: deque[_Batch] = deque()
        self._bytes = self._records = 0

    def add(self, batch: Batch, taken_to: int) -> None:
        """Add a batch that is taken or decoded.

        Args:
            batch: the next one, in the order of the log.
            taken_to: offset after the last taken record.
        """
        self._ahead.append(_Batch(batch))
        self._settle(taken_to)

    def find(self, record: RawRecord, taken_to: int) -> int | None:
        """Return the offset of the last equal record that was taken; None if none was."""
        self._settle(taken_to)
        wanted = _digest(record)
        if self._ahead:
            # Decoded records beyond this offset are not taken yet.
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
        # Batches that are decoded far ahead evict none before they are taken themselves.
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
                    # A later batch may hold an equal record.
                    if self._places.get(digest, batch.end) < batch.end:
                        del self._places[digest]


class _Batch:
    def __init__(self, batch: Batch) -> None:
        self.size, self.records, self.end = batch.size, batch.record_count, batch.next_offset
        self.digests: tuple[bytes, ...] = ()
        self._batch: Batch | None = batch

    @cached_property
    def places(self) -> dict[bytes, int]:
        """Offsets of its records by digest; of equal records, the first."""
        found: dict[bytes, int] = {}
        # A batch that was equal as bytes may be impossible to decode; it then holds no known record.
        with contextlib.suppress(ValueError):
            for record in raw_records(self._batch) if self._batch is not None else ():
                found.setdefault(_digest(record), record.offset)
        return found

    def forget_records(self) -> None:
        """Drop the batch, and keep only the digests of its records."""
        self.digests, self._batch = tuple(self.places), None
        del self.places


def _digest(record: RawRecord) -> bytes:
    return blake2b(b"%d " % record.timestamp + record.rest, digest_size=16).digest()
