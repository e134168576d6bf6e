"""Where a copy's offsets differ from the original's, exactly: shifted runs, and the translation through them.

With identical offsets a copy has one run without a shift and this file has nothing to do. A run that is shifted begins
where a broker wrote a transaction marker twice, or where lost records could not be filled in; it ends where a gap heals
it. `state` keeps the runs, the takeover reads and extends them, and offsets of consumers are translated through them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.model.base.shape import COUNT, ID, PARTITION, Misfit, fields, flag, listed, maybe, row, whole

# What a takeover reads stands near the end: so many ranges, and offsets in all of them, which it holds in memory.
_MOST_ASIDE, _MOST_OFFSETS_ASIDE = 1_000, 1_000_000
_HANDED = listed(whole())


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one partition from `source` on stand at the target `shift` offsets higher (lower when negative).

    Attributes:
        source: first source offset of the run.
        shift: target offset minus source offset.
    """

    source: int
    shift: int

    @property
    def target(self) -> int:
        """The first target offset of the run."""
        return self.source + self.shift


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs of one partition in the order of the log; before the first of them nothing is shifted.

    Attributes:
        runs: each begins above the one before, at the source and at the target.
    """

    runs: tuple[Run, ...] = ()

    @property
    def shift(self) -> int:
        """The shift of the newest run, 0 without one."""
        return self.runs[-1].shift if self.runs else 0

    @property
    def shifted(self) -> int:
        """How many runs are shifted."""
        return sum(1 for run in self.runs if run.shift)

    def at_source(self, offset: int) -> Run:
        """Return the run that holds source `offset`."""
        return self._before(bisect_right(self.runs, offset, key=lambda run: run.source))

    def at_target(self, offset: int) -> Run:
        """Return the run that holds target `offset`."""
        return self._before(bisect_right(self.runs, offset, key=lambda run: run.target))

    def to_target(self, offset: int) -> int:
        """Return where the record of source `offset` stands at the target.

        An offset that holds no record gives a place at or before which no later record stands and no earlier one after
        it, so a consumer that is moved there reads on without loss and without repeating a record.
        """
        index = bisect_right(self.runs, offset, key=lambda run: run.source)
        translated = offset + self._before(index).shift
        # In a gap, a run that begins behind it may begin lower than the shift of the run before implies.
        return min(translated, self.runs[index].target) if index < len(self.runs) else translated

    def to_source(self, offset: int) -> int:
        """Return the source offset of what stands at target `offset`, or behind it."""
        index = bisect_right(self.runs, offset, key=lambda run: run.target)
        found = max(offset - self._before(index).shift, 0)
        # Behind the records of a run stand markers for which the source has no offsets.
        return min(found, self.runs[index].source) if index < len(self.runs) else found

    def extended(self, run: Run) -> Runs:
        """Return the runs with `run` as the newest; runs that would begin at or after it are replaced."""
        kept = tuple(one for one in self.runs if one.source < run.source and one.target < run.target)
        last = kept[-1].shift if kept else 0
        return Runs(kept) if last == run.shift else Runs((*kept, run))

    def _before(self, index: int) -> Run:
        return self.runs[index - 1] if index else Run(0, 0)


@dataclass(frozen=True, slots=True)
class Handed:
    """A log that others wrote to before it was handed to us: as it was an original, or its flow was failed over.

    Attributes:
        end: its end when it was handed over.
        producers: ids of all producers that it had then: none of them owns the copy.
    """

    end: int
    producers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """What is stored of a copy beside its log.

    Attributes:
        source_id: id of the source topic that it is a copy of; None while unknown, or where the brokers have none.
        target_id: id of the remote topic that holds it; None where the brokers have none.
        origin: target offset from which on it is a copy of that topic; above 0 when the topic was made anew.
        runs: how its offsets differ from the original's.
        aside: source offsets of the newest records that were put aside instead of copied: ranges, each with the
            offset behind it, in order.
        is_begun: whether a position of it was committed, or a record written.
        handed: how its log was handed to us; None where only owners of the copy ever wrote to it.
        partitions: how many partitions the original had when a position of this one was first committed; 0 while
            unknown, as where an older release did that.
    """

    source_id: str | None
    target_id: str | None
    origin: int = 0
    runs: Runs = Runs()
    aside: tuple[tuple[int, int], ...] = ()
    is_begun: bool = True
    handed: Handed | None = None
    partitions: int = 0

    @property
    def ours_from(self) -> int:
        """From which target offset on records are of this copy's owners, and can be compared with the original.

        What others wrote before a log was handed over may differ in form: aborted records here are markers there.
        """
        return max(self.origin, self.handed.end if self.handed else 0)

    def with_what_is_known(self, known: CopyRecord | None) -> CopyRecord:
        """Return what is known of a copy of these two topics; this, where that is about others or empty."""
        same = known is not None and (known.source_id, known.target_id) == (self.source_id, self.target_id)
        return known if known is not None and same else self

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; what is usual is left out. `from_json` is its inverse."""
        return {
            "source_id": self.source_id,
            "target_id": self.target_id,
            "origin": self.origin,
            "runs": [[run.source, run.shift] for run in self.runs.runs],
            **({"aside": [list(one) for one in self.aside]} if self.aside else {}),
            **({} if self.is_begun else {"is_begun": False}),
            **({"handed": [self.handed.end, *self.handed.producers]} if self.handed else {}),
            **({"partitions": self.partitions} if self.partitions else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CopyRecord:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(value, _RECORD, _UNUSUAL))

    def without(self, *offsets: int) -> CopyRecord:
        """Return this after the records at source offsets were put aside; at least one.

        What is too much is forgotten: first what stands behind all of these, of which nothing is written yet where
        these are not; it will be put aside once more. Then the oldest.
        """
        ranges: list[tuple[int, int]] = []
        for first, behind in sorted((*self.aside, *((offset, offset + 1) for offset in offsets))):
            if ranges and first <= ranges[-1][1]:
                ranges[-1] = ranges[-1][0], max(behind, ranges[-1][1])
            else:
                ranges.append((first, behind))
        newest = max(offsets)
        while len(ranges) > _MOST_ASIDE and ranges[-1][0] > newest:
            ranges.pop()
        ranges = ranges[-_MOST_ASIDE:]
        while (over := sum(behind - first for first, behind in ranges) - _MOST_OFFSETS_ASIDE) > 0:
            first, behind = ranges.pop(0)
            if behind - first > over:
                ranges.insert(0, (first + over, behind))
        return replace(self, aside=tuple(ranges))

    def behind_aside(self, offset: int) -> int:
        """Return the first source offset from `offset` on that was not put aside."""
        return next((behind for first, behind in self.aside if first <= offset < behind), offset)

    def aside_below(self, position: int) -> CopyRecord:
        """Return this without what was put aside from a source offset on."""
        ranges = [(first, min(behind, position)) for first, behind in self.aside if first < position]
        return replace(self, aside=tuple(ranges))

    def aside_from(self, position: int) -> frozenset[int]:
        """Return the source offsets from a position on that were put aside."""
        return frozenset(one for first, behind in self.aside for one in range(max(first, position), behind))


def _handed(value: Any) -> Handed:
    numbers = _HANDED(value)
    if not numbers or numbers[0] < 0:
        message = "expected where a log ended"
        raise Misfit(message)
    return Handed(numbers[0], numbers[1:])


def _aside(value: Any) -> tuple[tuple[int, int], ...]:
    ranges: tuple[tuple[int, int], ...] = listed(row(COUNT, COUNT), _MOST_ASIDE)(value)
    if any(first >= behind for first, behind in ranges):
        message = "a range without offsets"
        raise Misfit(message)
    if sum(behind - first for first, behind in ranges) > _MOST_OFFSETS_ASIDE:
        message = f"expected {_MOST_OFFSETS_ASIDE:,} offsets at most"
        raise Misfit(message)
    return ranges


_PAIRS = listed(row(COUNT, whole()))
_RECORD = {
    "source_id": maybe(ID),
    "target_id": maybe(ID),
    "origin": COUNT,
    "runs": lambda value: Runs(tuple(Run(source, shift) for source, shift in _PAIRS(value))),
}
_UNUSUAL = {"aside": _aside, "is_begun": flag, "handed": _handed, "partitions": PARTITION}
