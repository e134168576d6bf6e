"""How much is filled before the first records of copies whose originals' logs begin above 0, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

PADDED_PER_SECOND = 5_000_000
"""Offsets of padding that a target takes in a second, measured."""

PADDING_BYTES = 0.8
"""Of one empty record among 500,000 in a batch compressed with zstd, measured."""


@dataclass(frozen=True)
class Padding:
    """Offsets that are filled before the first records of copies whose originals' logs begin above 0.

    Attributes:
        offsets: how many, in all partitions together.
        partitions: how many have any.
    """

    offsets: int = 0
    partitions: int = 0

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return self.offsets / PADDED_PER_SECOND

    @property
    def bytes(self) -> int:
        """About how many bytes are written to the target for it, and deleted again."""
        return round(self.offsets * PADDING_BYTES)
