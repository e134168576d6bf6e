"""What is compared of one partition, and how far that is: values that go to Spark's workers and back as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from reconciler.model.base.errors import Problem
from reconciler.model.offsets.runs import CopyRecord, Handed, Run, Runs
from reconciler.model.offsets.verification import Compared, Findings


@dataclass(frozen=True)
class SliceBounds:
    """One partition, and between which offsets it is compared: they were fixed when the comparison began.

    Attributes:
        topic: the original.
        partition: its number on both sides.
        remote: the copy.
        offsets: identical or translated.
        source_id: id of the source topic; None where the brokers have none.
        target_id: id of the remote topic, likewise.
        source_first: from where the source is compared.
        source_end: behind what it held.
        target_first: from where the target is compared.
        target_end: behind what it held.
        record: what is recorded of the copy.
        copied_to: source offset below which all is copied, of translated offsets; None where nobody knows.
        sync: one record's offsets on both sides, the first that is known there; None where none is.
        has_first: whether the copy must have the source's first record.
        committed: whether only committed records of the source count.
        repeats: whether records may stand twice at the target.
        source_compacts: whether the source is a compacted topic.
        target_compacts: whether the target is.
        is_shared: whether other flows have copied there, too; then its records are some of the target's, in order.
        held: offsets of the source behind `source_end` that an open transaction held back.
        held_by: whose transaction that was, in words.
    """

    topic: str
    partition: int
    remote: str
    offsets: str
    source_id: str | None
    target_id: str | None
    source_first: int
    source_end: int
    target_first: int
    target_end: int
    record: CopyRecord
    copied_to: int | None = None
    sync: tuple[int, int] | None = None
    has_first: bool = False
    committed: bool = True
    repeats: bool = False
    source_compacts: bool = False
    target_compacts: bool = False
    is_shared: bool = False
    held: int = 0
    held_by: str = ""

    @property
    def is_identical(self) -> bool:
        """Whether its offsets are the original's."""
        return self.offsets == "identical"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SliceBounds:
        """Read what `to_json` returned, perhaps as JSON has it.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        record = value["record"]
        runs = Runs(tuple(Run(**run) for run in record["runs"]["runs"]))
        aside = tuple((first, behind) for first, behind in record["aside"])
        handed = record["handed"] and Handed(record["handed"]["end"], tuple(record["handed"]["producers"]))
        sync = None if value["sync"] is None else (int(value["sync"][0]), int(value["sync"][1]))
        copy = CopyRecord(**{**record, "runs": runs, "aside": aside, "handed": handed})
        return cls(**{**value, "record": copy, "sync": sync})


@dataclass
class SliceProgress:
    """How far one partition is compared.

    Attributes:
        source: the next source offset.
        target: the next target offset.
        is_paired: whether the records there are known to belong together.
        moved: how much higher records stand than they should, behind what was told.
        source_expired: offset below which the source deleted records before they were read; 0 for none.
        target_expired: likewise at the target.
        compaction: what a compacted target lacks so far.
        meeting: offsets at both sides from which both go on alike, while not both of them are reached.
        failed_meetings: how often no such place was found since both last had the same record.
        findings: what was found.
        is_done: whether nothing is left to be compared.
        failure: why it ended before; None where it did not.
    """

    source: int
    target: int
    is_paired: bool
    moved: int = 0
    source_expired: int = 0
    target_expired: int = 0
    compaction: dict[str, Any] = field(default_factory=dict)
    meeting: tuple[int, int] | None = None
    failed_meetings: int = 0
    findings: Findings = field(default_factory=Findings)
    is_done: bool = False
    failure: Problem | None = None

    @classmethod
    def begin(cls, bounds: SliceBounds) -> SliceProgress:
        """Return where comparing begins."""
        return cls(bounds.source_first, bounds.target_first, bounds.is_identical)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SliceProgress:
        """Read what `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        failure = None if value["failure"] is None else Problem(**value["failure"])
        meeting = value.get("meeting")
        meeting = None if meeting is None else (int(meeting[0]), int(meeting[1]))
        findings = Findings.from_json(value["findings"])
        return cls(**{**value, "meeting": meeting, "findings": findings, "failure": failure})


@dataclass(frozen=True)
class SliceNames:
    """A flow's name, and the aliases of its clusters."""

    flow: str
    source: str
    target: str

    def compared(self, bounds: SliceBounds, progress: SliceProgress) -> Compared:
        """Return what was found in a partition of the flow."""
        return Compared(
            *(self.flow, self.source, bounds.topic, self.target, bounds.remote, bounds.partition, bounds.offsets),
            source_range=(bounds.source_first, max(progress.source, bounds.source_first)),
            target_range=(bounds.target_first, max(progress.target, bounds.target_first)),
            findings=progress.findings,
            failure=progress.failure,
        )
