"""What a failover, or a failback, has committed of a group on the side that it leads to: it may have read on there.

`state` keeps it, and the next run of the command continues from it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model.base.shape import OFFSET, PARTITION, decimal, fields, flag, listed, mapped, maybe, topic_name
from reconciler.model.offsets.committed import Log, Move

_FIELDS = {
    "done": mapped(topic_name, listed(PARTITION)),
    "begun": mapped(topic_name, mapped(decimal(), maybe(OFFSET))),
    "whole": flag,
}


@dataclass(frozen=True)
class Placed:
    """Positions of one group on the side to which consumers and producers move.

    Attributes:
        done: partitions whose positions were committed.
        begun: of those whose commit was begun, with unknown outcome: what was committed there before; None where
            nothing was.
        is_whole: whether all its positions count as committed: older releases write no more than that.
    """

    done: frozenset[Log] = frozenset()
    begun: Mapping[Log, int | None] = field(default_factory=dict)
    is_whole: bool = False

    def may_have_read_on(self, log: Log, now: int | None) -> bool:
        """Return whether the group was put there, so that it may have read on since.

        Args:
            log: which partition.
            now: what the group has committed there by now; None where nothing.
        """
        if self.is_whole or log in self.done:
            return True
        # A commit that never arrived has left what was there.
        return log in self.begun and self.begun[log] != now

    def intending(self, moves: Iterable[Move], stays: Collection[Log] = ()) -> Placed:
        """Return it as it is right before some moves; what `stays` is known to have been committed."""
        done = self.done | frozenset(stays)
        begun = {move.log: move.before for move in moves if move.log not in done}
        return replace(self, done=done, begun={**self.begun, **begun})

    def heard(self, done: Iterable[Log], refused: Iterable[Log]) -> Placed:
        """Return it when it is known what of it was committed, and what certainly was not."""
        known = frozenset(done)
        over = known | frozenset(refused)
        return replace(
            self, done=self.done | known, begun={log: old for log, old in self.begun.items() if log not in over}
        )

    def without(self, topic: str) -> Placed:
        """Return it without a topic that is made anew: what was committed there was for another one."""
        begun = {log: old for log, old in self.begun.items() if log[0] != topic}
        return replace(self, done=frozenset(log for log in self.done if log[0] != topic), begun=begun)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        done: dict[str, list[int]] = {}
        for topic, partition in sorted(self.done):
            done.setdefault(topic, []).append(partition)
        begun: dict[str, dict[str, int | None]] = {}
        for (topic, partition), before in sorted(self.begun.items()):
            begun.setdefault(topic, {})[str(partition)] = before
        return {"done": done, "begun": begun, "whole": self.is_whole}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Placed:
        """Return what `to_json` wrote down; where it names no partition, as older releases do, all are meant.

        Raises:
            Misfit: it is something else.
        """
        known = fields(data, {}, _FIELDS)
        return cls(
            frozenset((topic, number) for topic, numbers in known.get("done", {}).items() for number in numbers),
            {
                (topic, number): before
                for topic, numbers in known.get("begun", {}).items()
                for number, before in numbers.items()
            },
            known.get("whole", True),
        )
