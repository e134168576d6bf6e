"""A flow that is failed over: its consumers and producers are at the target, and nothing is copied until failback.

`state` keeps it at the target, `cli` writes it; `plan`, `drift` and `replicate` go by it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from reconciler.model.base.shape import COUNT, MODE, OFFSET, TEXT, fields, flag, listed, one_of, row, topic_name
from reconciler.model.names.selection import names
from reconciler.model.recorded.placed import Placed

Phase = Literal["ending", "over", "returning"]
"""`ending`: the flow is to end, no group was moved yet; `over`: consumers and producers are at the target; `returning`:
what came there is copied back. In none of them the flow runs."""


Anew = Literal["", "wanted", "made"]

PHASES = one_of(*get_args(Phase))
"""The check of a phase."""
EVERY = "all"
"""Names every group where groups may be left without a place."""
_CUT = {
    "topic": topic_name,
    "remote": topic_name,
    "mode": MODE,
    "ends": listed(row(OFFSET, COUNT)),
    "handed": flag,
    "anew": one_of(*get_args(Anew)),
}


@dataclass(frozen=True)
class Cut:
    """Where a copy stood when its flow had ended.

    Attributes:
        topic: the original.
        remote: its copy.
        mode: of its offsets, `identical` or `translated`.
        ends: by partition the source offset that would have been copied next, and the end of the copy's log; what
            stands behind these was written later by others.
        is_handed: whether a failback has handed the original's log to the flow that copies back.
        anew: whether the original is made anew, for its copy to be copied back as a whole: empty for no.
        notes: by partition the metadata of the position, or what it would have been: its topics, and up to which
            leader epoch the source was read; `replicator.partition.offset_metadata` reads it. Empty where an older
            release made the cut.
    """

    topic: str
    remote: str
    mode: str
    ends: tuple[tuple[int, int], ...]
    is_handed: bool = False
    anew: Anew = ""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json` is its inverse."""
        told = {"topic": self.topic, "remote": self.remote, "mode": self.mode, "ends": [list(end) for end in self.ends]}
        return {**told, "handed": self.is_handed, "anew": self.anew, "notes": list(self.notes)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Cut:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        known = fields(value, _CUT, {"notes": listed(TEXT)})
        return cls(is_handed=known.pop("handed"), **known)

    def note(self, partition: int) -> str:
        """Return the metadata of a partition's position; empty where none is known."""
        return self.notes[partition] if partition < len(self.notes) else ""

    def at(self, partition: int) -> tuple[int | None, int]:
        """Return the source offset that would have been copied next, and the end of the copy's log then.

        The first is None where nothing was copied, as of a partition that was added since.
        """
        if partition >= len(self.ends):
            return None, 0
        copied, end = self.ends[partition]
        return (None if copied < 0 else copied), end


@dataclass(frozen=True)
class FailedOver:
    """The state of a flow that is failed over, on record at its target.

    Attributes:
        flow: name of the flow.
        phase: how far it has come.
        since: when failover began, in seconds since 1970.
        by: the user that began it.
        cuts: by original; empty while the flow is ending.
        moved: by group, which positions the failover has committed at the target: it may have read on there.
        returned: by group, which positions the failback has committed at the source.
    """

    flow: str
    phase: Phase
    since: float
    by: str
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    moved: Mapping[str, Placed] = field(default_factory=dict)
    returned: Mapping[str, Placed] = field(default_factory=dict)


@dataclass(frozen=True)
class Crossing:
    """How far one partition of a flow was copied, before any group is moved.

    Attributes:
        topic: the original.
        remote: its copy, be it there or not.
        partition: of both.
        mode: of its offsets, `identical` or `translated`; `auto` where there is no copy.
        copied: the source offset that comes next; -1 where nothing was copied yet.
        remote_end: the end of the copy's log.
        source_end: the end of the original's log; None where the source cannot be reached.
        waiting: how many records of the original were not copied, though they can be; None where that is unknown.
        held: how many more stand behind an open transaction, and are not copied before it ends.
        held_by: whose transaction that is, in words; empty where nothing is held.
        note: what `Cut.notes` keeps of it.
    """

    topic: str
    remote: str
    partition: int
    mode: str
    copied: int
    remote_end: int
    source_end: int | None = None
    waiting: int | None = None
    held: int = 0
    held_by: str = ""
    note: str = ""

    @property
    def left(self) -> int | None:
        """How many records of the original would be left behind; None where that is unknown."""
        return None if self.waiting is None else self.waiting + self.held


@dataclass(frozen=True)
class Carried:
    """A position of a group on one side of a flow, and where it goes on at the other.

    Attributes:
        group: the group.
        topic: where it reads on this side.
        partition: of it.
        offset: the next one that it would read there.
        lag: offsets behind that; None where that is unknown.
        to_topic: where it reads on the other side.
        to_offset: the next one that it reads there; None where that is unknown.
        before: what it has committed there already; None where nothing.
        metadata: the text that was committed with the position.
        why: a remark: why it is unknown, or that the copy is not so far yet.
        stays: whether it is left as it is there, as the group stands further.
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
    stays: bool = False

    @property
    def moves(self) -> bool:
        """Whether something is to be committed on the other side."""
        return not self.stays and self.to_offset is not None and self.to_offset != self.before

    @property
    def back(self) -> int:
        """By how many offsets the group is taken back on the other side: it reads these again."""
        if not self.moves or self.before is None or self.to_offset is None:
            return 0
        return max(0, self.before - self.to_offset)


@dataclass(frozen=True)
class WithoutPlace:
    """A group that does not get its place on the other side.

    Attributes:
        group: the group; `all` where no group is known.
        why: in words that follow its name.
    """

    group: str
    why: str


@dataclass(frozen=True)
class Allowance:
    """What a failover or failback may leave, as given on the command line.

    Attributes:
        records: how many records at most; None means that their number need not be known.
        groups: which groups may be without a place: names and regular expressions, or `all`.
    """

    records: int | None = 0
    groups: tuple[str, ...] = ()

    def covers(self, left: int | None) -> bool:
        """Return whether so many records may be left; None for a number that is not known."""
        return self.records is None or (left is not None and left <= self.records)

    def takes(self, group: str) -> bool:
        """Return whether a group may be without a place."""
        return EVERY in self.groups or group in names(self.groups, any_text=True)


@dataclass(frozen=True)
class FailoverPlan:
    """What a failover finds and would do.

    Attributes:
        flow: name of the flow.
        source: alias of the side that consumers and producers leave.
        target: alias of the other.
        state: how far it has come already; None where it has not begun.
        is_source_lost: whether the source is taken for gone: then the positions of groups come from checkpoints.
        crossings: how far each partition was copied.
        groups: where positions of groups go on.
        notices: further remarks.
        without: groups that do not get their place at the target, or not for all that they read.
    """

    flow: str
    source: str
    target: str
    state: FailedOver | None
    is_source_lost: bool
    crossings: tuple[Crossing, ...]
    groups: tuple[Carried, ...]
    notices: tuple[str, ...] = ()
    without: tuple[WithoutPlace, ...] = ()

    @property
    def waiting(self) -> int | None:
        """How many records of the originals were not copied, though they can be; None where that is unknown."""
        return total(one.waiting for one in self.crossings)

    @property
    def held(self) -> int:
        """How many records more stand behind open transactions of the source."""
        return sum(one.held for one in self.crossings)

    @property
    def left(self) -> int | None:
        """How many records would be left behind; None where that is unknown."""
        return total(one.left for one in self.crossings)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of some counts; None where one of them is not known."""
    known = list(counts)
    return None if None in known else sum(one for one in known if one is not None)


@dataclass(frozen=True)
class Returning:
    """One topic of a flow that is failed back.

    Attributes:
        topic: the original.
        remote: its copy.
        mode: of the copy's offsets, `identical` or `translated`.
        partitions: how many the copy has.
        new: records that came to the copy since it was cut: they are copied back.
        diverged: records of the original that never crossed to the copy.
        is_new: whether anything came behind the cuts of the copy, be it deleted by now, or ends of transactions alone.
        is_diverged: whether the original has more than was copied although the copy has new records too: it can get
            them only when it is made anew.
        is_rebuilt: whether the user requested that, now or before.
        dropped: records of the original that are exported and dropped with that: its copy does not have them.
    """

    topic: str
    remote: str
    mode: str
    partitions: int
    new: int
    diverged: int
    is_new: bool
    is_diverged: bool
    is_rebuilt: bool
    dropped: int = 0

    @property
    def is_copied(self) -> bool:
        """Whether something of the copy is to be copied back."""
        return self.is_new or self.is_rebuilt


@dataclass(frozen=True)
class FailbackPlan:
    """What a failback finds and would do.

    Attributes:
        flow: name of the flow.
        source: alias of the side that consumers and producers return to.
        target: alias of the other.
        state: how far it has come.
        topics: what becomes of each.
        groups: where positions of groups go on at the source, as far as that is known before records are copied back.
        notices: further remarks.
        cuts: of these topics, by original, with the partitions of today.
        without: groups that do not get their place at the source, or not for all that they read.
    """

    flow: str
    source: str
    target: str
    state: FailedOver
    topics: tuple[Returning, ...]
    groups: tuple[Carried, ...]
    notices: tuple[str, ...] = ()
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    without: tuple[WithoutPlace, ...] = ()
