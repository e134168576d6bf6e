"""What a running task says of itself every second: the values behind `status`, the demo's view and `--until-caught-up`.

Tasks make them, the `state` room carries them as JSON, `report` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class PartitionState(StrEnum):
    """Where a partition stands."""

    OPENING = "opening"  # position not known yet: before the first record, or after a break
    RUNNING = "running"
    PARKED = "parked"  # cannot go on by itself; tried again with growing pauses
    PAUSED = "paused"  # somebody asked for it; stays so until somebody resumes it
    WAITING = "waiting"  # nobody has started it in this round yet


@dataclass(frozen=True)
class Reason:
    """Why a partition is not running.

    Attributes:
        code: stable code such as `AB212`.
        text: what was found, and what to do.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} [{self.code}]"


@dataclass(frozen=True)
class PartitionStatus:
    """One partition of a flow.

    Attributes:
        topic: the original topic.
        partition: its number, the same on both sides.
        remote: the remote topic.
        state: where it stands.
        position: next source offset to be written, or -1 while unknown; with identical offsets the target's log end.
        end: the source's end (last stable offset), or -1 while unknown.
        reason: why it is parked or opening again; None when all is well.
    """

    topic: str
    partition: int
    remote: str
    state: PartitionState
    position: int
    end: int
    reason: Reason | None = None

    @property
    def lag(self) -> int | None:
        """Records (offsets) still to copy; None while unknown."""
        return max(0, self.end - self.position) if self.position >= 0 and self.end >= 0 else None


# A task that has not spoken for this many seconds is not running any more.
STALE_SECONDS = 5.0


@dataclass(frozen=True)
class TaskStatus:
    """One task of a flow in one run.

    Attributes:
        flow: name of the flow.
        source: alias.
        target: alias.
        run: which start of `replicate` it belongs to.
        task: number of the task, from 0.
        tasks: how many tasks the flow has in this run.
        time: seconds since 1970 when it was said.
        stopped: whether this is the task's last word.
        waiting: what it waits for while it has no partitions, otherwise None.
        records: copied since the run began.
        bytes: likewise, as batches in their codec.
        records_per_second: over the last seconds.
        bytes_per_second: likewise.
        partitions: what it replicates.
    """

    flow: str
    source: str
    target: str
    run: str
    task: int
    tasks: int
    time: float
    stopped: bool
    waiting: str | None
    records: int
    bytes: int
    records_per_second: float
    bytes_per_second: float
    partitions: tuple[PartitionStatus, ...]

    def is_live(self, now: float) -> bool:
        """Tell whether the task runs at `now` (seconds since 1970): it spoke lately, and not its last word."""
        return not self.stopped and now - self.time < STALE_SECONDS

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TaskStatus:
        """Read what `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        partitions = tuple(
            PartitionStatus(
                **{
                    **row,
                    "state": PartitionState(row["state"]),
                    "reason": Reason(**row["reason"]) if row["reason"] else None,
                }
            )
            for row in value["partitions"]
        )
        return cls(**{**value, "partitions": partitions})
