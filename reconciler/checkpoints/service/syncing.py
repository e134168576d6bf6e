"""Decides which translated offsets are committed at a target: never past the copy, back only if the group went back.

Pure. `rounds` uses it for every position of every group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.checkpoints.mirrormaker.formats import Checkpoint, CheckpointKey


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """Where a group stands in one partition of a copy, and where it stood at the source.

    Attributes:
        upstream: what the group has committed at the source now.
        downstream: the offset of the same record at the target, within the copy.
        before: what it had committed at the source when the target was last in line with it, from `SyncedOffsets`;
            None where that is not known.
        committed: what the group has committed at the target; None where nothing.
    """

    upstream: int
    downstream: int
    before: int | None
    committed: int | None

    @property
    def is_to_move(self) -> bool:
        """Whether the offset is to be committed at the target.

        A group that is further at the target than at the source was moved there, or reads there: it is set back only if
        it was set back at the source.
        """
        if self.committed is None or self.downstream > self.committed:
            return True
        went_back = self.before is not None and self.upstream < self.before
        return went_back and self.downstream < self.committed


class SyncedOffsets:
    """The source offsets of groups when their commits at the target were last in line, or rightly left as they are.

    Between that moment and now a group has gone back or has not, however many rounds there were: a commit that the
    target refuses, as the group has members there, is tried again until it is done or no longer needed.

    All this is in memory. A new process has the source offsets of the newest checkpoints alone: it counts all of them
    as settled, and so misses a going back that was refused until then, or that was written as a checkpoint and not
    committed any more. Then the group stays where it is at the target until it is there at the source, too, or goes
    back once more.
    """

    def __init__(self) -> None:
        self._places: dict[CheckpointKey, int] = {}

    def learn(self, standing: Mapping[CheckpointKey, Checkpoint]) -> None:
        """Add the newest checkpoints of the topic, for positions that are not known."""
        self._places = {key: one.upstream for key, one in standing.items()} | self._places

    def forget(self, known: Mapping[CheckpointKey, Checkpoint], standing: Mapping[CheckpointKey, Checkpoint]) -> None:
        """Drop the positions that another process has written, or that are gone.

        Args:
            known: what this process had last written or read.
            standing: what stands in the topic now.
        """
        self._places = {
            key: place for key, place in self._places.items() if key in standing and known.get(key) == standing[key]
        }

    def before(self, key: CheckpointKey) -> int | None:
        """Return what a group had committed at the source then; None where that is not known."""
        return self._places.get(key)

    def note(self, key: CheckpointKey, upstream: int, *, is_in_line: bool) -> None:
        """Note the result of a round for a position.

        Args:
            key: group and partition.
            upstream: what the group has committed at the source.
            is_in_line: whether the target has what it is to have; False where that was refused.
        """
        # Going back counts from the furthest place since then.
        self._places[key] = upstream if is_in_line else max(upstream, self._places.get(key, upstream))
