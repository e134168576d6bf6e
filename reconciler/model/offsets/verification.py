"""What comparing copies with their originals has found, as values: of each partition, and of all together.

`verify` makes them, `report` prints them, and they are kept as JSON in the file of `--resume`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from reconciler.model.base.errors import Problem

Kind = Literal["changed", "missing", "duplicate", "order", "moved", "extra", "unreadable", "no-copy", "unrelated"]
KINDS: tuple[Kind, ...] = get_args(Kind)

CODES: Mapping[Kind, str] = {
    "changed": "AB600",
    "missing": "AB601",
    "duplicate": "AB602",
    "order": "AB603",
    "moved": "AB604",
    "extra": "AB605",
    "unreadable": "AB606",
    "no-copy": "AB607",
    "unrelated": "AB608",
}

State = Literal["equal", "different", "incomplete", "unfinished"]

NOWHERE = -1
"""An offset where there is none."""

# How many differences of a partition are listed; the others are counted.
MOST_TOLD = 10


@dataclass(frozen=True)
class Difference:
    """One way in which a copy is not its original.

    Attributes:
        kind: what is wrong.
        source: offset at the source; of a record that stands only at the target, of the next one.
        target: offset at the target; of a record that stands only at the source, where it should stand, or the next.
        what: in words, without anything that a record holds but names of headers.
        records: how many records in a row it is about.
    """

    kind: Kind
    source: int
    target: int
    what: str
    records: int = 1


@dataclass
class Counts:
    """How much was compared, and what was seen that is no difference.

    Attributes:
        records: that stand on both sides.
        as_bytes: those of them that were compared as bytes, and not decoded.
        bytes: of the records' batches, on both sides together.
        compacted_source: records that only the target has any more, as the source was compacted later.
        compacted_target: records that only the source has any more, as the target was compacted.
        expired: records that one side deleted before the other (retention).
        aside: records that were put aside (`dlq`) instead of copied.
        repeated: records that stand twice, as `delivery: at-least-once` allows.
        behind: source offsets that are not copied yet.
        others: records at the target that may be those of other flows, which copy there, too.
    """

    records: int = 0
    as_bytes: int = 0
    bytes: int = 0
    compacted_source: int = 0
    compacted_target: int = 0
    expired: int = 0
    aside: int = 0
    repeated: int = 0
    behind: int = 0
    others: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass
class Findings:
    """What was found in one partition so far.

    Attributes:
        counts: how much was compared.
        told: the listed, first differences, in the order of the log.
        by_kind: of how many records each kind of difference is.
    """

    counts: Counts = field(default_factory=Counts)
    told: list[Difference] = field(default_factory=list)
    by_kind: dict[str, int] = field(default_factory=dict)

    def add(self, difference: Difference, goes_on: bool = False) -> None:
        """Take a difference.

        Args:
            difference: found behind all the others.
            goes_on: whether it is the same as the last one, of the records that follow.
        """
        self.by_kind[difference.kind] = self.by_kind.get(difference.kind, 0) + difference.records
        if goes_on and self.told and self.told[-1].kind == difference.kind:
            last = self.told[-1]
            records = last.records + difference.records
            self.told[-1] = Difference(last.kind, last.source, last.target, last.what, records)
        elif not goes_on and len(self.told) < MOST_TOLD:
            self.told.append(difference)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Findings:
        """Read what `to_json` returned.

        Raises:
            KeyError, TypeError: the value is of another shape.
        """
        told = [Difference(**one) for one in value["told"]]
        return cls(Counts(**value["counts"]), told, dict(value["by_kind"]))


@dataclass(frozen=True)
class Compared:
    """One partition of a copy, compared with its original.

    Attributes:
        flow: name of the flow.
        source: alias of the source cluster.
        topic: the original.
        target: alias of the target cluster.
        remote: the copy.
        partition: its number on both sides.
        offsets: how its offsets relate to the original's: identical or translated.
        source_range: source offsets that were compared: the first, and the one behind the last.
        target_range: likewise at the target.
        findings: what was found.
        failure: why it could not be compared to its end; None where it was.
        lacks: what of the original the copy does not have, so that it was not compared.
    """

    flow: str
    source: str
    topic: str
    target: str
    remote: str
    partition: int
    offsets: str
    source_range: tuple[int, int]
    target_range: tuple[int, int]
    findings: Findings
    failure: Problem | None = None
    lacks: tuple[Problem, ...] = ()

    @property
    def state(self) -> State:
        """Whether it differs; where no difference was found: unfinished if not all that is copied was compared.

        It is incomplete if all that is copied is the same, and the original holds more.
        """
        if self.findings.by_kind:
            return "different"
        if self.failure:
            return "unfinished"
        return "incomplete" if self.lacks else "equal"

    def where(self, difference: Difference) -> str:
        """Return the place of a difference on both sides."""
        source = self._side(self.source, self.topic, difference.source)
        return f"{source} ↔ {self._side(self.target, self.remote, difference.target)}"

    def _side(self, alias: str, topic: str, offset: int) -> str:
        at = "" if offset == NOWHERE else f" offset {offset}"
        return f"{alias} {topic}/{self.partition}{at}"


@dataclass(frozen=True)
class Verification:
    """All that was compared.

    Attributes:
        topology: its name.
        partitions: in the order of flows, topics and numbers.
        unseen: why flows, or parts of them, could not be read.
        notices: remarks on flows: that they are failed over.
        copied_only: whether only what is copied was compared: what is not does not count then.
    """

    topology: str
    partitions: tuple[Compared, ...]
    unseen: tuple[Problem, ...] = ()
    notices: tuple[Problem, ...] = ()
    copied_only: bool = False

    @property
    def counts(self) -> Counts:
        """Of all partitions together."""
        return sum((one.findings.counts for one in self.partitions), Counts())

    @property
    def different(self) -> tuple[Compared, ...]:
        """The partitions that differ."""
        return tuple(one for one in self.partitions if one.state == "different")

    @property
    def failures(self) -> tuple[Problem, ...]:
        """Why something was not compared, each reason once."""
        found = [one.failure for one in self.partitions if one.failure is not None]
        return tuple(dict.fromkeys((*self.unseen, *found)))

    @property
    def lacks(self) -> tuple[Problem, ...]:
        """What of originals their copies do not have."""
        return tuple(problem for one in self.partitions for problem in one.lacks)

    @property
    def is_incomplete(self) -> bool:
        """Whether originals hold more than what is copied, where that was requested as well."""
        return bool(self.lacks) and not self.copied_only

    @property
    def is_equal(self) -> bool | None:
        """Whether all copies are their originals; None where nothing differs as far as could be seen, or is copied."""
        if self.different:
            return False
        return None if self.failures or self.is_incomplete else True


@dataclass(frozen=True)
class Sofar:
    """How far a comparison is.

    Attributes:
        offsets: source offsets that are compared.
        of: how many there are.
        counts: what was compared.
        different: how many partitions differ.
    """

    offsets: int
    of: int
    counts: Counts
    different: int
