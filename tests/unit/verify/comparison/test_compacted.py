"""Copies of compacted topics: what compaction takes on either side is no difference, and nothing hides behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.model.offsets.verification import Difference, Findings
from reconciler.records.read_committed import Gap
from reconciler.records.split import split
from reconciler.verify.comparison.pairing import PairingTerms
from tests.support.commands.verifying import IDENTICAL, TRANSLATED, Log, compare, log
from tests.support.records.batches import Content, compacted

pytestmark = pytest.mark.slow

START = 1_700_000_000_000
BOTH = pytest.mark.parametrize("terms", [IDENTICAL, TRANSLATED], ids=["identical", "translated"])
AT_ONCE = 20


def both(terms: PairingTerms, copied_to: int | None = None) -> PairingTerms:
    """Return terms of topics that are compacted on both sides."""
    return replace(terms, source_compacts=True, target_compacts=True, copied_to=copied_to)


def keyed(numbers: Sequence[int], first: int = 0) -> list[Content]:
    """Return a record of each of these keys."""
    return [Content(START + first + n, b"k%d" % key, b"v%d" % (first + n)) for n, key in enumerate(numbers)]


def pieces(records: Sequence[Content], size: int = AT_ONCE) -> Log:
    return log(*(records[at : at + size] for at in range(0, len(records), size)))


def cleaned(records: Sequence[Content], gone: set[int], start: int = 0) -> Log:
    """Return a log as compaction leaves it: one batch with holes."""
    return list(split(compacted(records, gone, start)))


def told(found: Findings) -> list[tuple[str, int, int]]:
    return [(one.kind, one.source, one.target) for one in found.told]


# --- one side has cleaned much more than the other --------------------------------------------------------------------

# More than a window.
SUPERSEDED = 200
OLD = keyed(range(SUPERSEDED))
NEW = keyed(range(SUPERSEDED + 10), SUPERSEDED)


def far(less: str, copied: Sequence[Content], terms: PairingTerms) -> Findings:
    """Compare logs of which one lacks the superseded records; `copied` is what the copy has of the others."""
    whole = [*OLD, *copied] if less == "the source" else [*OLD, *NEW]
    ends = replace(terms, copied_to=len(OLD) + len(NEW) if less == "the target" else len(NEW))
    if less == "the source":
        return compare(pieces(NEW), pieces(whole), ends, at_once=4)
    return compare(pieces(whole), pieces(copied), ends, at_once=4)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("comparer", "looking"):
        monkeypatch.setattr(f"reconciler.verify.comparison.{module}.WINDOWS", (8, 64))
    monkeypatch.setattr("reconciler.verify.comparison.looking._AT_ONCE", 32)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("comparer", "looking"):
        monkeypatch.setattr(f"reconciler.verify.comparison.{module}.WINDOWS", (2, 4))
    monkeypatch.setattr("reconciler.verify.comparison.looking._AT_ONCE", 3)
    monkeypatch.setattr("reconciler.verify.comparison.compaction.MOST_KEYS", 3)


def test_more_superseded_records_than_are_looked_at_at_once_may_be_gone() -> None:
    count = 20_000
    old, new = keyed(range(count)), keyed(range(count + 10), count)
    found = compare(pieces([*old, *new]), pieces(new), both(TRANSLATED, 2 * count), at_once=4)
    assert (found.by_kind, found.counts.records, found.counts.compacted_target) == ({}, len(new), count)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("either", [False, True], ids=["one compacts", "both compact"])
@pytest.mark.parametrize("less", ["the source", "the target"])
def test_any_number_of_superseded_records_may_be_gone_on_one_side(less: str, either: bool) -> None:
    is_source = less == "the source"
    terms = (
        both(TRANSLATED) if either else replace(TRANSLATED, source_compacts=is_source, target_compacts=not is_source)
    )
    found = far(less, NEW, terms)
    assert (found.by_kind, found.counts.records) == ({}, len(NEW))
    gone = found.counts.compacted_source if is_source else found.counts.compacted_target
    assert gone == SUPERSEDED


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("less", ["the source", "the target"])
@pytest.mark.parametrize(
    ("at", "changes", "kind"),
    [
        (0, {"value": b"v20O"}, "changed"),
        (0, {"timestamp": 5}, "changed"),
        (7, {"headers": (("trace", b"1"),)}, "changed"),
        (199, {"value": None}, "changed"),
    ],
)
def test_a_changed_record_behind_them_is_found_at_its_place(
    less: str, at: int, changes: dict[str, object], kind: str
) -> None:
    copied = list(NEW)
    copied[at] = replace(copied[at], **changes)  # type: ignore[arg-type]
    found = far(less, copied, both(TRANSLATED))
    source, target = (at, at + SUPERSEDED) if less == "the source" else (at + SUPERSEDED, at)
    assert (kind, source, target) in told(found)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("less", ["the source", "the target"])
def test_a_lost_record_behind_them_is_found_at_its_place(less: str) -> None:
    for at in (0, 123, SUPERSEDED + 9):
        copied = NEW[:at] + NEW[at + 1 :]
        source, target = (at, at + SUPERSEDED) if less == "the source" else (at + SUPERSEDED, at)
        found = far(less, copied, both(TRANSLATED))
        assert (told(found), found.counts.records) == ([("missing", source, target)], len(NEW) - 1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("gone", [200, 100, 3])
def test_both_may_lack_what_the_other_one_has_at_the_same_place(gone: int) -> None:
    records = [*OLD, *NEW[:gone], *keyed(range(SUPERSEDED + 10), 2 * SUPERSEDED)]
    common = records[SUPERSEDED + gone :]
    found = compare(pieces([*OLD, *common]), pieces(records[SUPERSEDED:]), both(TRANSLATED, len(records)), at_once=4)
    assert (found.by_kind, found.counts.records) == ({}, len(common))
    assert (found.counts.compacted_source, found.counts.compacted_target) == (gone, SUPERSEDED)


@pytest.mark.usefixtures("small")
def test_logs_with_nothing_in_common_are_looked_through_once() -> None:
    other = [replace(one, timestamp=one.timestamp + 10**9, value=b"other") for one in NEW]
    found = compare(pieces(OLD), pieces(other), both(TRANSLATED, len(OLD)), at_once=4)
    assert (found.by_kind, found.counts.records) == ({"missing": len(OLD)}, 0)
    # All their times have changed.
    late = [replace(one, timestamp=one.timestamp + 10**9) for one in OLD]
    found = compare(pieces(OLD), pieces(late), both(TRANSLATED, len(OLD)), at_once=4)
    assert (found.by_kind, found.counts.records) == ({"changed": len(OLD)}, 0)


# --- a topic that goes on meanwhile -----------------------------------------------------------------------------------

TEN = keyed([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])


@BOTH
def test_what_replaces_a_record_may_stand_behind_the_end_of_the_comparison(terms: PairingTerms) -> None:
    terms = both(terms, 10)
    later = keyed([0, 5, 1], 10)
    left = cleaned(TEN, {5})
    # The target's cleaner has been there, the source's not yet.
    now = [*pieces(TEN), *log(later, start=10)]
    copy = [*left, *log(later, start=10)]
    found = compare(pieces(TEN), left, terms, now=(now, copy), ends=(10, 10))
    assert (found.told, found.counts.records, found.counts.compacted_target) == ([], 9, 1)
    # The source has one more, which is not copied yet: then the target has lost it.
    found = compare(pieces(TEN), left, terms, now=(now, [*left, *log(later[:1], start=10)]), ends=(10, 10))
    what = "the target does not have it, and no later record of its key replaces it"
    assert found.told == [Difference("missing", 5, 5, what)]
    # A tombstone has replaced it, and is gone at the target by now.
    gone = [*pieces(TEN), *log([replace(later[1], value=None)], start=10)]
    assert compare(pieces(TEN), left, terms, now=(gone, left), ends=(10, 10)).told == []
    # The source has lost it meanwhile, too.
    assert compare(pieces(TEN), left, terms, now=(left, left), ends=(10, 10)).told == []


@BOTH
def test_of_keys_that_are_too_many_it_is_known_in_between(terms: PairingTerms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.verify.comparison.compaction.MOST_KEYS", 3)
    records = keyed([*range(40), *range(20, 60)])
    terms = both(terms, 80)
    superseded = set(range(20, 40))
    found = compare(pieces(records, 10), cleaned(records, superseded), terms)
    assert (found.told, found.counts.records, found.counts.compacted_target) == ([], 60, 20)
    found = compare(pieces(records, 10), cleaned(records, {*superseded, 3, 4, 11}), terms)
    assert [(kind, source) for kind, source, _ in told(found)] == [("missing", 3), ("missing", 4), ("missing", 11)]
    assert (found.counts.records, found.counts.compacted_target) == (57, 20)


# --- tombstones -------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("at_source", [set(), {2}], ids=["not cleaned", "cleaned"])
def test_a_lost_tombstone_is_no_compaction_while_what_it_deletes_is_there(
    terms: PairingTerms, at_source: set[int]
) -> None:
    records = [*TEN[:7], replace(TEN[2], timestamp=START + 7, value=None), *TEN[8:]]
    terms = both(terms, 10)
    source = cleaned(records, at_source)
    found = compare(source, cleaned(records, {7}), terms)
    what = "the target does not have it, and still has what this tombstone deletes, at offset 2"
    assert found.told == [Difference("missing", 7, 7, what)]
    found = compare(source, cleaned(records, {2, 7}), terms)
    assert (found.told, found.counts.compacted_target) == ([], 2 - len(at_source))
    # Its key came again, in what was written since.
    now = [*cleaned(records, {7}), *log(keyed([2], 10), start=10)]
    assert compare(source, cleaned(records, {7}), terms, now=(source, now), ends=(10, 10)).told == []


def test_a_lost_tombstone_is_told_also_where_the_source_has_cleaned_and_nothing_else_is_there() -> None:
    """Where it should stand is not known then, but that what it deletes lives on at the target."""
    tombstone = replace(TEN[0], timestamp=START + 1, value=None)
    source, copy = [Gap(0, 1), *log([tombstone], start=1)], log([TEN[0]])
    found = compare(source, copy, both(TRANSLATED, 2), ends=(2, 1))
    assert [one.kind for one in found.told] == ["missing"]
    assert "still has what this tombstone deletes, at offset 0" in found.told[0].what
    # An older tombstone is nothing that lives on.
    older = log([TEN[0], replace(tombstone, timestamp=START, headers=(("older", b""),))])
    assert compare(source, older, both(TRANSLATED, 2), ends=(2, 2)).told == []


# --- any log, cleaned anyhow ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """A topic, and what is left of it on either side: as it is compared, and as it is looked at later.

    Attributes:
        records: all that were ever written.
        end: number behind the last that is compared.
        source: numbers of what the source has, when it is compared and later.
        target: likewise of the target.
        places: target offsets of those that were copied.
    """

    records: list[Content]
    end: int
    source: tuple[set[int], set[int]]
    target: tuple[set[int], set[int]]
    places: dict[int, int]

    def compare(self, terms: PairingTerms, bad: int = -1, instead: Content | None = None) -> Findings:
        """Compare; the copy has something instead of one record, or nothing."""
        said = [one if number != bad else instead for number, one in enumerate(self.records)]
        places = {n: n for n in range(len(said))} if terms.identical else self.places
        behind = sum(number < self.end for number in places)
        logs = [held(self.records, numbers, {n: n for n in numbers}) for numbers in self.source]
        copies = [held(said, numbers, places) for numbers in self.target]
        now = ([*logs[1], Gap(len(said), len(said) + 1)], [*copies[1], Gap(len(places), len(places) + 1)])
        return compare(logs[0], copies[0], both(terms, self.end), ends=(self.end, behind), now=now)

    def cannot_be_spared(self, number: int) -> bool:
        """Tell whether nothing but a fault explains that the copy lacks a record that both sides have."""
        one = self.records[number]
        if any(later.key == one.key for later in self.records[number + 1 :]) or number not in self.source[1]:
            return False
        # A tombstone matters where what it deletes is still there; an older tombstone is nothing to be deleted.
        held = sorted(n for n in self.target[0] & self.target[1] if n < number and self.records[n].key == one.key)
        # What stands before an older one is deleted already.
        return one.value is not None or (bool(held) and self.records[held[-1]].value is not None)


def held(records: Sequence[Content | None], numbers: set[int], places: dict[int, int]) -> Log:
    """Return a log that holds these records at these offsets, each in a batch of its own."""
    found: Log = []
    at = 0
    for number in sorted(numbers):
        one, place = records[number], places[number]
        if one is not None:
            found += [*([Gap(at, place)] if place > at else []), *log([one], start=place)]
            at = place + 1
    return found


def after_cleaning(records: Sequence[Content], end: int, tombstones: int) -> set[int]:
    """Return what a cleaner leaves that came so far, and dropped tombstones so far."""
    last = {one.key: number for number, one in enumerate(records[:end])}
    return {
        number
        for number, one in enumerate(records)
        if number >= end or (last[one.key] == number and (one.value is not None or number >= tombstones))
    }


@st.composite
def histories(draw: st.DrawFn) -> History:
    numbers = draw(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
    # Two tombstones of a key that differ in nothing but their time may pass for one whose time was changed.
    records = [
        Content(START + n, b"k%d" % key, b"v%d" % n if is_set else None, () if is_set else ((f"{n}", b""),))
        for n, (key, is_set) in enumerate(numbers)
    ]
    end = draw(st.integers(1, len(records)))

    def cleanings(count: int, begin: tuple[int, int] = (0, 0)) -> list[tuple[int, int]]:
        found = [begin]
        for _ in range(count):
            upto = draw(st.integers(found[-1][0], len(records)))
            found.append((upto, draw(st.integers(found[-1][1], upto))))
        return found

    copied = after_cleaning(records, *cleanings(1)[1]) if draw(st.booleans()) else set(range(len(records)))
    sides = []
    for _ in range(2):
        # The cleaner runs once before, once while it is read, and once more until it is looked at again.
        states = [after_cleaning(records, *one) & copied for one in cleanings(3)[1:]]
        turn = draw(st.integers(0, end))
        read = {n for n in states[0] if n < turn} | {n for n in states[1] if turn <= n < end}
        sides.append((read, states[2]))
    return History(records, end, sides[0], sides[1], {n: at for at, n in enumerate(sorted(copied))})


@BOTH
@pytest.mark.usefixtures("tiny")
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(history=histories())
def test_whatever_was_cleaned_anywhere_at_any_time_is_no_difference(terms: PairingTerms, history: History) -> None:
    found = history.compare(terms)
    assert found.told == []


@BOTH
@pytest.mark.usefixtures("tiny")
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), history=histories())
def test_whatever_was_cleaned_a_fault_is_found_at_its_place(
    terms: PairingTerms, data: st.DataObject, history: History
) -> None:
    held_by_both = sorted(history.source[0] & history.target[0])
    assume(held_by_both)
    at = data.draw(st.sampled_from(held_by_both))
    for changes in ({"value": b"flipped"}, {"headers": (("trace", b"1"),)}):
        found = history.compare(terms, at, replace(history.records[at], **changes))
        place = at if terms.identical else history.places[at]
        assert ("changed", at, place) in told(found)
    if history.cannot_be_spared(at):
        found = history.compare(terms, at)
        assert ("missing", at) in [(kind, source) for kind, source, _ in told(found)]


def test_one_of_two_equal_records_that_is_compacted_away_is_in_no_other_order() -> None:
    first, twice, other, last = (Content(at, b"k%d" % at, b"v", ()) for at in range(4))
    source = [*log([first]), Gap(1, 2), *log([other, twice, last], start=2)]
    terms = replace(TRANSLATED, copied_to=5, source_compacts=True, target_compacts=True)
    found = compare(source, log([first, twice, other, twice, last]), terms)
    assert (found.told, found.counts.records, found.counts.compacted_source) == ([], 4, 1)
    # One that has only changed its place is told.
    found = compare(source, log([first, twice, other, last]), terms)
    assert [one.kind for one in found.told] == ["order"]
