"""One batch in flight: sent to the target and not answered yet. `channel` makes it, `sender` sends it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.records.batch import CHECKED_FROM, Body
from reconciler.records.checksum import crc32c


class InFlightBatch(NamedTuple):
    """A batch in flight.

    Attributes:
        opening: the channel's opening in which it was sent.
        base_offset: source offset of its first record.
        next_offset: source offset behind its last one.
        landing: the target offset at which it must land.
        records: number of its records.
        oldest: timestamp of its first record, ms.
        newest: the greatest timestamp, ms.
        size: bytes of the whole batch.
        head: the new header.
        body: the records as read; head and body are sent from where they are, without a copy.
        parts: `Batch.parts`, where source offsets between its records are empty.
    """

    opening: int
    base_offset: int
    next_offset: int
    landing: int
    records: int
    oldest: int
    newest: int
    size: int
    head: bytes
    body: Body
    parts: tuple[int, ...] = ()

    def source_offset(self, index: int) -> int:
        """Return the source offset of one of its records.

        Args:
            index: which record, from 0.
        """
        offset, left = self.base_offset, index
        for count, missing in zip(self.parts[::2], self.parts[1::2], strict=True):
            if left < count:
                break
            offset += count + missing
            left -= count
        return offset + left

    @property
    def is_intact(self) -> bool:
        """Whether its checksum fits; it is derived from the source's, so it fits only if that one did."""
        crc = crc32c(self.body, crc32c(self.head[CHECKED_FROM:]))
        return crc == int.from_bytes(self.head[CHECKED_FROM - 4 : CHECKED_FROM], "big")

    def noted(self, landing: int) -> InFlightBatch:
        """Return a copy without bytes, for the record of what was written.

        Args:
            landing: the target offset at which it was appended.
        """
        return self._replace(landing=landing, head=b"", body=b"")
