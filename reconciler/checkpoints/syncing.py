"""Which synced offsets are committed at a target: never past the copy, and back only where the group went back.

Pure. `rounds` asks it for every position of every group.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a group stands in one partition of a copy, and where it stood at the source.

    Attributes:
        upstream: what the group has committed at the source now.
        downstream: the offset of the same record at the target, within the copy.
        before: what it had committed at the source when it was last looked at; None where nobody has looked.
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
