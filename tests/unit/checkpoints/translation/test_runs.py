"""Where records stand on both sides, against brute force over logs that were made up; also where syncs are gone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.checkpoints.translation.pairing import SeenRecord, paired
from reconciler.checkpoints.translation.runs import Behind, Between, Found, PairedRun, PairedRuns, Point, RunPoint
from reconciler.replicator.partition import offset_syncs as writing
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_syncs import OffsetSync, syncs

pytestmark = pytest.mark.slow

LOG = "orders", 0
SMALL = st.integers(0, 3)


@dataclass
class Copying:
    """A copy as it comes to be, with the truth about it.

    Attributes:
        offsets: source offsets of all records.
        repeats: whether it is an at-least-once copy.
        told: source and target offset of each record that syncs speak of, in the order of the target.
        syncs: as they are written.
        end: of the target's log.
        most: numbers in one sync.
        begins: with which sync each transaction begins.
    """

    offsets: list[int]
    repeats: bool
    told: list[tuple[int, int]] = field(default_factory=list)
    syncs: list[OffsetSync] = field(default_factory=list)
    end: int = 0
    done: int = 0
    position: int = 0
    most: int = 50_000
    begins: list[int] = field(default_factory=list)

    def junk(self, count: int) -> None:
        """Write what nobody counts: an aborted transaction; of an at-least-once copy what a crash left untold."""
        self.end += count + (0 if self.repeats else 1)

    def commit(self, sizes: Sequence[int], slack: Sequence[int], is_lost: bool) -> None:
        """Copy some records in parcels of so many, and tell of it.

        Args:
            sizes: of parcels.
            slack: how much of the hole behind each parcel it spans.
            is_lost: whether the syncs are written and the position is not committed.
        """
        sent_batches, at, position = [], self.done, self.position
        for size, more in zip(sizes, slack, strict=True):
            taken = self.offsets[at : at + size]
            if not taken:
                break
            at += len(taken)
            following = self.offsets[at] if at < len(self.offsets) else taken[-1] + 4
            position = min(following, taken[-1] + 1 + more)
            sent_batches.append(sent_batch(taken, position, self.end))
            self.told += [(offset, self.end + number) for number, offset in enumerate(taken)]
            self.end += len(taken)
        # More may have been read than was written.
        upto = self.offsets[at] if at < len(self.offsets) else position + 2
        position = max(position, min(upto, position + sum(slack)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing, "_MOST_PARTS", self.most)
            self.begins.append(len(self.syncs))
            self.syncs += syncs(LOG, sent_batches, self.position, position, self.repeats)
        self.end += 0 if self.repeats or not sent_batches else 1
        if not (is_lost and self.repeats):
            self.done, self.position = at, position

    def begin_of(self, sync: int) -> int:
        """Return the number of the first sync in the transaction of a sync."""
        return max((begin for begin in self.begins if begin <= sync), default=0)

    def first_told(self) -> list[tuple[int, int]]:
        """Return the records that count: of those written again the first."""
        kept: list[tuple[int, int]] = []
        for source, target in self.told:
            if not kept or source > kept[-1][0]:
                kept.append((source, target))
        return kept


def sent_batch(offsets: Sequence[int], behind: int, landing: int) -> InFlightBatch:
    parts: list[int] = []
    for number, offset in enumerate(offsets):
        following = offsets[number + 1] if number + 1 < len(offsets) else behind
        if parts and parts[-1] == 0 and offset == offsets[number - 1] + 1:
            parts[-2:] = [parts[-2] + 1, following - offset - 1]
        else:
            parts += (1, following - offset - 1)
    holed = len(offsets) != behind - offsets[0]
    return InFlightBatch(1, offsets[0], behind, landing, len(offsets), 0, 0, 0, b"", b"", tuple(parts) if holed else ())


@st.composite
def copies(draw: st.DrawFn, repeats: bool | None = None) -> Copying:
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), max_size=30))
    offsets = [sum(gaps[: number + 1]) - 1 for number in range(len(gaps))]
    made = Copying(offsets, draw(st.booleans()) if repeats is None else repeats)
    # Syncs tell of as much as they do, or of very little, so that there are many.
    made.most = draw(st.sampled_from([50_000, 3]))
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.integers(0, 3)) == 0:
            made.junk(draw(SMALL))
        sizes = draw(st.lists(st.integers(1, 6), max_size=4))
        made.commit(sizes, [draw(SMALL) for _ in sizes], draw(st.booleans()))
    return made


def added(told: Sequence[OffsetSync]) -> PairedRuns:
    runs = PairedRuns()
    for sync in told:
        assert sync.span is not None
        runs.add(Point(sync.source, sync.target), sync.span.parts, sync.span.begin, repeats=sync.span.repeats)
    return runs


def truth(pairs: Sequence[tuple[int, int]], offset: int, back: bool = False) -> int | None:
    """Return the other side's offset of the first record at or behind an offset; None where there is none."""
    here = [pair[1] if back else pair[0] for pair in pairs]
    at = bisect_left(here, offset)
    return pairs[at][0 if back else 1] if at < len(pairs) else None


def check(found: Found, expected: int | None, made: Copying) -> None:
    if expected is not None:
        assert found == RunPoint(expected)
    elif made.told:
        assert isinstance(found, Behind)
        source, target = made.first_told()[-1]
        assert source < found.position
        assert not [one for one in made.offsets if source < one < found.position]
        assert found.end == target + 1
    else:
        assert found == Between(None, None)


@given(copies())
@settings(deadline=None, max_examples=400)
def test_every_offset_is_that_of_the_first_record_at_or_behind_it(made: Copying) -> None:
    runs, pairs = added(made.syncs), made.first_told()
    if pairs and pairs[0][1]:
        # What was aborted before the first record can only be seen by reading.
        before = runs.downstream(0)
        assert before == Between(None, Point(*pairs[0])) or made.offsets[0] == 0
        runs.fill(Between(None, Point(*pairs[0])), [])
    for offset in range((made.offsets or [0])[-1] + 6):
        check(runs.downstream(offset), truth(pairs, offset), made)
    for offset in range(made.end + 3):
        check(runs.upstream(offset), truth(pairs, offset, back=True), made)


@given(copies(repeats=False), st.data())
@settings(deadline=None, max_examples=400)
def test_where_syncs_are_gone_nothing_is_guessed_and_reading_tells_it(made: Copying, data: st.DataObject) -> None:
    """The newest one stays: the topic is compacted. Of one transaction the older ones go before the newer ones."""
    drawn = data.draw(st.sets(st.integers(0, max(0, len(made.syncs) - 2))))
    gone = {number for one in drawn for number in range(made.begin_of(one), one + 1)}
    runs = added([sync for number, sync in enumerate(made.syncs[:-1]) if number not in gone] + made.syncs[-1:])
    pairs = made.first_told()
    # Records of which one is like another only where that does no harm.
    alike = data.draw(st.booleans())
    for offset in range((made.offsets or [0])[-1] + 6):
        found = runs.downstream(offset)
        if isinstance(found, Between) and pairs:
            here = [
                SeenRecord(source, source % 3 if alike else source) for source, _ in pairs if inside(found, source, 0)
            ]
            there = [
                SeenRecord(target, source % 3 if alike else source)
                for source, target in pairs
                if inside(found, target, 1)
            ]
            known = paired(found, here, there)
            assert known is not None
            assert [pair for run in known for pair in spread(run)] == [
                pair for pair in pairs if inside(found, pair[0], 0)
            ]
            runs.fill(found, known)
            found = runs.downstream(offset)
        check(found, truth(pairs, offset), made)
    for offset in range(made.end + 3):
        found = runs.upstream(offset)
        if not isinstance(found, Between):
            check(found, truth(pairs, offset, back=True), made)


def inside(gap: Between, offset: int, side: int) -> bool:
    return (gap.low is None or offset >= gap.low[side]) and (gap.high is None or offset < gap.high[side])


def spread(run: PairedRun) -> list[tuple[int, int]]:
    return [(run.source + number, run.target + number) for number in range(run.records)]


@given(st.lists(st.integers(0, 40), unique=True), st.data())
@settings(deadline=None)
def test_what_compaction_has_taken_on_either_side_does_not_confuse_the_others(
    marks: list[int], data: st.DataObject
) -> None:
    """Each side lacks some; whoever is left on both is paired, and nobody else."""
    flags = st.lists(st.booleans(), min_size=len(marks), max_size=len(marks))
    here, there = data.draw(flags), data.draw(flags)
    low = data.draw(st.sampled_from([Point(0, 0), None]))
    high = data.draw(st.sampled_from([Point(1_000, 1_000), None]))
    source = [SeenRecord(number, mark) for number, mark in enumerate(marks) if here[number]]
    target = [SeenRecord(100 + 2 * number, mark) for number, mark in enumerate(marks) if there[number]]
    both = [(number, 100 + 2 * number) for number in range(len(marks)) if here[number] and there[number]]
    known = paired(Between(low, high), source, target)
    if known is None:
        assert not both
        assert source
        assert target
    elif both or not (source and target):
        assert [pair for run in known for pair in spread(run)] == both


def test_records_that_are_the_same_are_not_told_apart_where_some_of_them_are_gone() -> None:
    gap = Between(Point(0, 0), Point(9, 9))
    assert paired(
        gap,
        [SeenRecord(0, 1), SeenRecord(1, 7), SeenRecord(2, 7), SeenRecord(3, 2)],
        [SeenRecord(0, 1), SeenRecord(1, 7), SeenRecord(3, 2)],
    ) == [
        PairedRun(0, 0, 2),
        PairedRun(3, 3, 1),
    ]
    middle = [
        SeenRecord(0, 1),
        SeenRecord(1, 5),
        SeenRecord(2, 7),
        SeenRecord(3, 6),
        SeenRecord(4, 7),
        SeenRecord(5, 2),
    ]
    assert paired(gap, middle, [SeenRecord(0, 3), SeenRecord(2, 7), SeenRecord(5, 4)]) is None


def test_times_that_were_made_anew_leave_the_number() -> None:
    here, there = [SeenRecord(3, 1), SeenRecord(5, 2)], [SeenRecord(10, 3), SeenRecord(11, 4)]
    assert paired(Between(Point(3, 10), Point(9, 12)), here, there) == [PairedRun(3, 10, 1), PairedRun(5, 11, 1)]
    assert paired(Between(Point(3, 10), None), here, there) is None
    assert paired(Between(Point(3, 10), Point(9, 12)), here[:1], there) is None


def test_a_sync_that_tells_of_one_record_tells_nothing_of_others() -> None:
    runs = PairedRuns()
    runs.add_point(Point(5, 7))
    runs.add_point(Point(9, 30))
    assert runs.downstream(5) == RunPoint(7)
    assert runs.downstream(4) == Between(None, Point(5, 7))
    assert runs.downstream(6) == Between(Point(6, 8), Point(9, 30))
    assert runs.upstream(29) == Between(Point(6, 8), Point(9, 30))
    assert runs.downstream(10) == Between(Point(10, 31), None)
    runs.fill(Between(Point(10, 31), None), [PairedRun(10, 31, 3)])
    assert runs.downstream(12) == RunPoint(33)
    assert runs.downstream(14) == Behind(13, 34)
    runs.doubt()
    assert runs.downstream(12) == RunPoint(33)
    assert runs.downstream(13) == Between(Point(13, 34), None)
    runs.add(Point(13, 34), (2, 0), 13)
    assert runs.downstream(15) == Behind(15, 36)
    # One that tells what is known already changes nothing.
    runs.add_point(Point(11, 32))
    assert runs.downstream(15) == Behind(15, 36)


def test_records_that_took_the_offsets_of_lost_ones_count_at_the_source() -> None:
    runs = added([])
    runs.add(Point(0, 0), (10, 0), 0)
    runs.add(Point(6, 11), (8, 0), 6)
    assert [runs.downstream(offset) for offset in (5, 6, 13)] == [RunPoint(5), RunPoint(11), RunPoint(18)]
    assert [runs.upstream(offset) for offset in (5, 6, 10, 12)] == [RunPoint(5), RunPoint(6), RunPoint(6), RunPoint(7)]


def test_records_that_took_the_offsets_of_lost_ones_count_also_where_records_may_be_repeated() -> None:
    runs = PairedRuns()
    runs.add(Point(0, 0), (10, 0), 0, repeats=True)
    for _ in range(2):
        # It may be told twice, when the position behind it was not committed.
        runs.add(Point(6, 10), (15, 0), 6, repeats=True, is_anew=True)
        assert [runs.downstream(offset) for offset in (5, 6, 7, 20)] == [
            RunPoint(5),
            RunPoint(10),
            RunPoint(11),
            RunPoint(24),
        ]
        assert [runs.upstream(offset) for offset in (5, 6, 9, 10, 24)] == [
            RunPoint(5),
            RunPoint(6),
            RunPoint(6),
            RunPoint(6),
            RunPoint(20),
        ]
        assert runs.downstream(21) == Behind(21, 25)
    # What is repeated of the new ones counts once, as ever.
    runs.add(Point(16, 25), (10, 0), 16, repeats=True)
    assert [runs.downstream(offset) for offset in (20, 21, 26)] == [RunPoint(24), RunPoint(30), Behind(26, 35)]


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize(("anew", "told"), [(120, 101), (160, 160)])
def test_what_may_stand_before_the_new_records_is_not_forgotten(anew: int, told: int, repeats: bool) -> None:
    runs = PairedRuns()
    for offset in (0, 100):
        runs.add_point(Point(offset, offset))
    runs.add(Point(150, 150), (40, 0), 150, repeats=repeats)
    runs.add(Point(anew, 190), (30, 0), anew, repeats=repeats, is_anew=repeats)
    assert runs.downstream(anew) == RunPoint(190)
    assert runs.downstream(105) == Between(Point(101, 101), Point(anew, 190) if told == 101 else Point(150, 150))
    assert runs.upstream(189) == (Between(Point(101, 101), Point(anew, 190)) if told == 101 else RunPoint(160))


def test_of_a_copy_that_was_made_anew_no_older_position_counts() -> None:
    runs = PairedRuns()
    runs.add(Point(0, 0), (1_000, 0), 0, repeats=True)
    runs.add(Point(0, 0), (10, 0), 0, repeats=True, is_anew=True)
    assert runs.downstream(10) == runs.upstream(10) == Behind(10, 10)


def test_of_a_topic_that_was_made_anew_nothing_older_counts_where_records_may_be_repeated() -> None:
    runs = PairedRuns()
    runs.add(Point(0, 0), (10, 0), 0, repeats=True)
    runs.add(Point(2, 10), (3, 1), 0, repeats=True, is_anew=True)
    assert [runs.downstream(offset) for offset in (2, 4, 5)] == [RunPoint(10), RunPoint(12), Behind(6, 13)]
    assert runs.downstream(0) == Between(None, Point(2, 10))


def test_what_the_target_has_lost_is_told_again() -> None:
    runs = PairedRuns()
    runs.add(Point(0, 0), (10, 0), 0)
    runs.add(Point(10, 11), (5, 0), 10)
    runs.add(Point(4, 4), (3, 2), 4)
    assert list(runs) == [PairedRun(0, 0, 7)]
    assert runs.downstream(7) == Behind(9, 7)
