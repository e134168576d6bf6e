"""Where a copy without a committed position begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

StartAt = Literal["earliest", "latest", "timestamp", "offsets"]


@dataclass(frozen=True)
class Start:
    """Where copies begin.

    Attributes:
        at: at the first record, behind the last one, at the first one of a time, or at offsets.
        timestamp: for `timestamp`: milliseconds since 1970.
        offsets: for `offsets`: by original topic, one for each partition from 0 on; what is not named begins at its
            original's first record.
    """

    at: StartAt = "earliest"
    timestamp: int = 0
    offsets: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def moves(self, topic: str) -> bool:
        """Return whether a copy of `topic` may begin elsewhere than the original."""
        return self.at in ("latest", "timestamp") or bool(self.offsets_of(topic))

    def offsets_of(self, topic: str) -> tuple[int, ...]:
        """Return the offsets that are named for the partitions of a topic, from 0 on."""
        return dict(self.offsets).get(topic, ())

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Start:
        """Read what `dataclasses.asdict` returned, perhaps as JSON has it.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        offsets = tuple((topic, tuple(numbers)) for topic, numbers in value["offsets"])
        return cls(value["at"], value["timestamp"], offsets)
