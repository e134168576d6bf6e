"""A flow that is failed over: its consumers and producers are at the target, and nothing is copied until failback.

`state` keeps it at the target, `cli` writes it; `plan`, `drift` and `replicate` go by it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["ending", "over", "returning"]
"""`ending`: the flow is to end, nobody was moved yet; `over`: everybody is at the target; `returning`: what came there
is copied back. In none of them the flow runs."""


@dataclass(frozen=True)
class Cut:
    """Where a copy stood when its flow had ended.

    Attributes:
        topic: the original.
        remote: its copy.
        mode: of its offsets, `identical` or `translated`.
        ends: by partition the source offset that would have been copied next, and the end of the copy's log; what
            stands behind these was written later by others.
    """

    topic: str
    remote: str
    mode: str
    ends: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class FailedOver:
    """The state of a flow that is failed over, on record at its target.

    Attributes:
        flow: name of the flow.
        phase: how far it has come.
        since: when failover began, in seconds since 1970.
        by: who asked for it.
        cuts: by original; empty while the flow is ending.
    """

    flow: str
    phase: Phase
    since: float
    by: str
    cuts: Mapping[str, Cut] = field(default_factory=dict)


@dataclass(frozen=True)
class Crossing:
    """How far one partition of a flow was copied, before anybody is moved.

    Attributes:
        topic: the original.
        remote: its copy.
        partition: of both.
        mode: of its offsets, `identical` or `translated`.
        copied: the source offset that comes next; -1 where nothing was copied yet.
        remote_end: the end of the copy's log.
        source_end: the end of the original's log; None where the source cannot be asked.
        waiting: how many records of the original were not copied; None where nobody knows.
    """

    topic: str
    remote: str
    partition: int
    mode: str
    copied: int
    remote_end: int
    source_end: int | None = None
    waiting: int | None = None


@dataclass(frozen=True)
class Carried:
    """A position of a group on one side of a flow, and where it goes on at the other.

    Attributes:
        group: the group.
        topic: where it reads on this side.
        partition: of it.
        offset: the next one that it would read there.
        lag: offsets behind that; None where nobody knows.
        to_topic: where it reads on the other side.
        to_offset: the next one that it reads there; None where that cannot be told.
        before: what it has committed there already; None where nothing.
        metadata: what was said with the position.
        why: what is to be known of it: why it cannot be told, or that the copy is not so far yet.
    """

    group: str
    topic: str
    partition: int
    offset: int
    lag: int | None
    to_topic: str
    to_offset: int | None
    before: int | None = None
    metadata: str = ""
    why: str = ""

    @property
    def moves(self) -> bool:
        """Whether something is to be committed on the other side."""
        return self.to_offset is not None and self.to_offset != self.before
