"""Where readers stand: offsets that groups have committed, positions of flows, and moves from one offset to another.

`checkpoints` reads them from clusters and writes them there, `report` prints them. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from reconciler.model.base.errors import Problem

Log = tuple[str, int]
"""A partition of a topic, by name and number."""

Kind = Literal["group", "flow"]
"""Whose offsets: a consumer group's, or a flow's own positions."""

Cells = dict[str, str | int | None]


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Where a partition's log begins and ends.

    Attributes:
        start: its first offset.
        stable: the last stable offset: where readers of committed records end, below `end` while a transaction is open.
        end: the next offset that will be written (the high watermark).
    """

    start: int
    stable: int
    end: int

    def read(self, *, committed: bool) -> LogBounds:
        """Return the bounds as a reader has them: `stable` is where it ends, of committed records or of all."""
        return self if committed else replace(self, stable=self.end)

    def holds(self, offset: int) -> bool:
        """Return whether a reader may stand at an offset: in the log, or right behind it."""
        return self.start <= offset <= self.end

    def clamped(self, offset: int) -> int:
        """Return the offset, or the nearest one from which a reader misses nothing that is in the log or will be."""
        if self.holds(offset):
            return offset
        return self.start if offset < self.start else self.stable


@dataclass(frozen=True, slots=True)
class Committed:
    """An offset that a group has committed.

    Attributes:
        group: the group.
        topic: the topic.
        partition: its number.
        offset: the next one to be read.
        metadata: the text that was committed with it.
        epoch: the leader epoch that was committed with it; None without one.
        bounds: of the log; None where they are unknown, as for a topic that is gone.
    """

    group: str
    topic: str
    partition: int
    offset: int
    metadata: str = ""
    epoch: int | None = None
    bounds: LogBounds | None = None

    @property
    def lag(self) -> int | None:
        """Offsets of the log between it and the log's end, without those that are deleted; negative behind the end."""
        return None if self.bounds is None else self.bounds.end - max(self.offset, self.bounds.start)

    def cells(self) -> Cells:
        """Return it by columns."""
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "metadata": self.metadata,
            "leader_epoch": self.epoch,
            **_cells(self.bounds),
            "lag": self.lag,
        }


@dataclass(frozen=True, slots=True)
class Position:
    """Where a flow stands in one partition.

    Attributes:
        flow: name of the flow.
        topic: the original topic.
        partition: its number, the same on both sides.
        offset: the next source offset to be copied; None where that is not known: nothing was copied yet.
        metadata: the note that is committed with it; empty with identical offsets, where nothing is committed.
        remote: the remote topic.
        mode: `identical`: the position is the remote log's end; `translated`: it is committed in the flow's group.
        bounds: of the log at the source; None where they are unknown.
    """

    flow: str
    topic: str
    partition: int
    offset: int | None
    metadata: str
    remote: str
    mode: str
    bounds: LogBounds | None = None

    @property
    def lag(self) -> int | None:
        """Offsets still to be copied; negative behind the end."""
        if self.bounds is None or self.offset is None:
            return None
        return self.bounds.end - max(self.offset, self.bounds.start)

    def cells(self) -> Cells:
        """Return it by columns."""
        return {
            "flow": self.flow,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "metadata": self.metadata,
            "remote": self.remote,
            "offsets": self.mode,
            **_cells(self.bounds),
            "lag": self.lag,
        }


def _cells(bounds: LogBounds | None) -> Cells:
    if bounds is None:
        return {"log_start": None, "log_stable": None, "log_end": None}
    return {"log_start": bounds.start, "log_stable": bounds.stable, "log_end": bounds.end}


COLUMNS: dict[Kind, tuple[str, ...]] = {
    "group": tuple(Committed("", "", 0, 0).cells()),
    "flow": tuple(Position("", "", 0, 0, "", "", "").cells()),
}
"""The columns of each row, in this order; the first four are needed to write it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A requested offset.

    Attributes:
        owner: the group, or the flow.
        topic: the topic; of a flow the original.
        partition: its number.
        offset: where to stand.
        metadata: the text to commit with it.
        where: the place that requests it, such as `offsets.csv:3`.
    """

    owner: str
    topic: str
    partition: int
    offset: int
    metadata: str
    where: str

    @property
    def log(self) -> Log:
        """Which partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Move:
    """One offset that is to be written.

    Attributes:
        owner: the group, or the flow.
        topic: the topic; of a flow the original.
        partition: its number.
        before: what is committed now; None where nothing is.
        after: what is to be.
        asked: the requested offset: another one where it is clamped.
        metadata: the text that is committed with it.
    """

    owner: str
    topic: str
    partition: int
    before: int | None
    after: int
    asked: int
    metadata: str = ""

    @property
    def log(self) -> Log:
        """Which partition."""
        return self.topic, self.partition

    @property
    def is_clamped(self) -> bool:
        """Whether another offset was requested, outside of the log."""
        return self.after != self.asked

    def to_json(self, kind: Kind) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            kind: self.owner,
            "topic": self.topic,
            "partition": self.partition,
            "from": self.before,
            "to": self.after,
            "asked": self.asked,
        }


@dataclass(frozen=True)
class MovedOffset:
    """What became of moves.

    Attributes:
        done: those that were written.
        problems: why the others were not.
    """

    done: tuple[Move, ...] = ()
    problems: tuple[Problem, ...] = ()


def owners(moves: Sequence[Move]) -> tuple[str, ...]:
    """Return whose offsets are moved, each once, in order."""
    return tuple(dict.fromkeys(move.owner for move in moves))
