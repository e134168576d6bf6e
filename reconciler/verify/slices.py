"""Bounds and progress of one partition: values that go to Spark's workers and back as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from reconciler.model.base.errors import Problem
from reconciler.model.offsets.runs import CopyRecord, Handed, Run, Runs
from reconciler.model.offsets.verification import Compared, Findings


@dataclass(frozen=True)
class SliceBounds:
    """One partition, and the offsets between which it is compared, fixed when the comparison begins.

    Attributes:
        topic: the original.
        partition: its number on both sides.
        remote: the copy.
        offsets: identical or translated.
        source_id: id of the source topic; None if brokers have no topic ids.
        target_id: id of the remote topic, likewise.
        source_first: first offset to compare at the source.
        source_end: end offset of the source.
        target_first: first offset to compare at the target.
        target_end: end offset of the target.
        record: the copy record.
        copied_to: source offset below which all is copied, with translated offsets; None if unknown.
        sync: the first known pair of offsets of one record on both sides; None if none is known.
        has_first: whether the copy must have the source's first record.
        committed: whether only committed records of the source count.
        repeats: whether records may be at the target twice.
        source_compacts: whether the source is a compacted topic.
        target_compacts: whether the target is.
        is_shared: whether other flows have filled the copy, too; it then holds this flow's records as a subsequence.
        held: offsets of the source behind `source_end` that an open transaction held back.
        held_by: that transaction, in words.
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
    """Progress of one partition.

    Attributes:
        source: the next source offset.
        target: the next target offset.
        is_paired: whether both positions are known to be at the same record.
        moved: by how many offsets records are higher than they should be, after reported differences.
        source_expired: offset below which the source deleted records before they were read; 0 for none.
        target_expired: likewise at the target.
        compaction: records that a compacted target lacks so far.
        meeting: offsets on both sides from which both are the same again, until both are reached.
        failed_meetings: how often no such place was found since the last equal record.
        findings: counts and differences.
        is_done: whether nothing is left to compare.
        failure: why it ended early; None if it did not.
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
        """Return the progress at the beginning."""
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
