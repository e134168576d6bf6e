"""Which synced offsets are committed at a target: never past the copy, and back only where the group went back.

Pure. `rounds` asks it for every position of every group.
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
        before: what it had committed at the source when the target was last in line with it, as `Settled` remembers it;
            None where nobody has looked.
        committed: what the group has committed at the target; None where nothing.
    """

    upstream: int
    downstream: int
    before: int | None
    committed: int | None

    @property
    def is_to_move(self) -> bool:
        """Whether the offset is to be committed at the target.

        A group that is further at the target than at the source was moved there, or reads there: nobody takes it back
        unless it was taken back at the source.
        """
        if self.committed is None or self.downstream > self.committed:
            return True
        went_back = self.before is not None and self.upstream < self.before
        return went_back and self.downstream < self.committed


class Settled:
    """Where groups stood at the source when their commits at the target were last in line, or rightly left as they are.

    Between that moment and now a group has gone back or has not, however often it was looked at meanwhile: a commit
    that the target refuses, as the group has members there, is tried again until it is done or no longer called for.

    All this is in memory. A process that begins knows the source offsets of the newest checkpoints alone: it takes all
    of them for settled, and so forgets a going back that was refused until then, or that was written as a checkpoint
    and not committed any more. Then the group stays where it is at the target until it is there at the source, too, or
    goes back once more.
    """

    def __init__(self) -> None:
        self._places: dict[CheckpointKey, int] = {}

    def learn(self, standing: Mapping[CheckpointKey, Checkpoint]) -> None:
        """Take over what stands in the topic of checkpoints, for positions of which nothing is remembered."""
        self._places = {key: one.upstream for key, one in standing.items()} | self._places

    def forget(self, known: Mapping[CheckpointKey, Checkpoint], standing: Mapping[CheckpointKey, Checkpoint]) -> None:
        """Forget the positions of which somebody else has written, or that are gone.

        Args:
            known: what this process had last written or read.
            standing: what stands in the topic now.
        """
        self._places = {
            key: place for key, place in self._places.items() if key in standing and known.get(key) == standing[key]
        }

    def before(self, key: CheckpointKey) -> int | None:
        """Return what a group had committed at the source then; None where nobody has looked."""
        return self._places.get(key)

    def note(self, key: CheckpointKey, upstream: int, *, is_in_line: bool) -> None:
        """Take note of a look at a position.

        Args:
            key: whose.
            upstream: what the group has committed at the source.
            is_in_line: whether the target has what it is to have; False where that was refused.
        """
        # Going back counts from the furthest place since then.
        self._places[key] = upstream if is_in_line else max(upstream, self._places.get(key, upstream))
