"""A parcel: one batch on its way to the target, in flight from `channel` through `sender` until it is answered.

Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.records.batch import CHECKED_FROM, Body
from reconciler.records.checksum import crc32c


class InFlightBatch(NamedTuple):
    """A batch on its way.

    Attributes:
        opening: the channel's opening in which it was sent.
        base_offset: source offset of its first record.
        next_offset: source offset behind its last one.
        landing: the target offset at which it must land.
        records: how many it holds.
        oldest: timestamp of its first record, ms.
        newest: the greatest timestamp, ms.
        size: bytes of the whole batch.
        head: the new header.
        body: the records as they were read; both are sent from where they are, so nothing is copied.
        parts: where source offsets between its records have none: `Batch.parts`.
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
        """Whether its checksum fits, which it does where that of what was read did."""
        crc = crc32c(self.body, crc32c(self.head[CHECKED_FROM:]))
        return crc == int.from_bytes(self.head[CHECKED_FROM - 4 : CHECKED_FROM], "big")

    def noted(self, landing: int) -> InFlightBatch:
        """Return what is to be remembered of it, without its bytes.

        Args:
            landing: the target offset at which it has landed.
        """
        return self._replace(landing=landing, head=b"", body=b"")
