"""The comparer on hand-made logs: each kind of difference at its place, and equal logs however they are framed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.offsets.verification import Counts, Difference, Findings
from reconciler.records.batch import HEADER_SIZE
from reconciler.records.read_committed import Gap
from reconciler.records.split import split
from reconciler.verify.comparison.comparer import Comparer
from reconciler.verify.comparison.pairing import PairingTerms
from reconciler.verify.comparison.side import Side
from tests.support.commands.verifying import IDENTICAL, TRANSLATED, Log, compare, log, shifted
from tests.support.records.batches import (
    CODECS,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    ZSTD,
    Content,
    build,
    compacted,
    damaged,
    marked,
    resealed,
    some,
)
from tests.support.records.contents import contents

TEN = some(10)
BOTH = pytest.mark.parametrize("terms", [IDENTICAL, TRANSLATED], ids=["identical", "translated"])


def told(found: Findings) -> list[tuple[str, int, int]]:
    return [(one.kind, one.source, one.target) for one in found.told]


def only(found: Findings) -> Difference:
    (one,) = found.told
    assert found.by_kind == {one.kind: one.records}
    return one


def with_one(at: int, **changes: object) -> list[Content]:
    changed = list(TEN)
    changed[at] = replace(changed[at], **changes)  # type: ignore[arg-type]
    return changed


# --- equal ------------------------------------------------------------------------------------------------------------


@BOTH
def test_equal_bytes_are_compared_as_bytes(terms: PairingTerms) -> None:
    found = compare(log(TEN[:4], TEN[4:]), log(TEN[:4], TEN[4:]), terms)
    assert (found.told, found.counts.records, found.counts.as_bytes) == ([], 10, 10)


@BOTH
@pytest.mark.parametrize("codec", CODECS)
def test_equal_bytes_are_never_decoded(terms: PairingTerms, codec: int) -> None:
    # What is in them is in no codec: whoever decodes it fails.
    head = build(TEN[:3])[:HEADER_SIZE]
    data = bytearray(head + b"\x00not in any codec")
    data[22] |= codec
    (one,) = split(resealed(data))
    source, target = [one, *log(TEN[3:], start=3)], [one, *log(TEN[3:5], TEN[5:], start=3)]
    found = compare(source, target, terms)
    assert (found.told, found.counts.records, found.counts.as_bytes) == ([], 10, 3)


@BOTH
@pytest.mark.parametrize("codec", CODECS)
def test_other_framing_and_codec_make_no_difference(terms: PairingTerms, codec: int) -> None:
    found = compare(log(TEN[:1], TEN[1:7], TEN[7:]), log(TEN[:5], TEN[5:], codec=codec), terms)
    assert (found.told, found.counts.records, found.counts.as_bytes) == ([], 10, 0)


def test_times_of_append_count_as_what_they_are_at_the_source() -> None:
    appended = split(marked(build(TEN), LOG_APPEND_TIME))
    stamped = [replace(one, timestamp=TEN[-1].timestamp) for one in TEN]
    assert compare(list(appended), log(stamped)).told == []
    found = compare(list(split(marked(build(TEN), LOG_APPEND_TIME))), log(TEN))
    assert found.by_kind == {"changed": 9}
    assert found.told[0] == Difference("changed", 0, 0, "timestamp 1009 became 1000")


@st.composite
def framed(draw: st.DrawFn, records: Sequence[Content]) -> Log:
    """Return a log of these records in batches of any size and codec."""
    cuts = draw(st.sets(st.integers(1, max(1, len(records) - 1))))
    found: Log = []
    for begin, end in pairwise([0, *sorted(cuts - {len(records)}), len(records)]):
        found += split(build(records[begin:end], begin, draw(st.sampled_from(CODECS))))
    return found


records_of = st.lists(contents, min_size=1, max_size=40)


@given(st.data(), records_of, st.sampled_from([IDENTICAL, TRANSLATED]), st.integers(1, 5))
def test_any_two_framings_of_the_same_records_are_equal(
    data: st.DataObject, records: list[Content], terms: PairingTerms, at_once: int
) -> None:
    found = compare(data.draw(framed(records)), data.draw(framed(records)), terms, at_once=at_once)
    assert (found.told, found.counts.records) == ([], len(records))


@given(st.data(), records_of, st.sampled_from([IDENTICAL, TRANSLATED]))
def test_one_changed_value_in_any_framing_is_found_at_its_offset(
    data: st.DataObject, records: list[Content], terms: PairingTerms
) -> None:
    at = data.draw(st.integers(0, len(records) - 1))
    changed = list(records)
    # No other record carries this.
    changed[at] = replace(changed[at], value=b"\xff" * 301)
    found = compare(data.draw(framed(records)), data.draw(framed(changed)), terms)
    assert told(found) == [("changed", at, at)]
    assert found.counts.records == len(records) - 1


few = st.sampled_from([Content(n, b"k%d" % (n % 2), b"v%d" % n) for n in range(4)])


@given(st.data(), st.lists(few, max_size=25), st.lists(few, max_size=25), st.integers(1, 3))
def test_logs_are_called_equal_only_if_they_are(
    data: st.DataObject, ours: list[Content], theirs: list[Content], at_once: int
) -> None:
    """Of records that are there again and again: whatever is found, something is found, and all is looked at."""
    source = data.draw(framed(ours)) if ours else []
    target = data.draw(framed(theirs)) if theirs else []
    found = compare(source, target, IDENTICAL, at_once=at_once)
    # What the copy's end does not reach is not copied yet.
    assert (not found.by_kind) is (theirs == ours[: len(theirs)])
    found = compare(source, target, replace(TRANSLATED, copied_to=len(ours)), at_once=at_once)
    assert (not found.by_kind) is (theirs == ours)
    found = compare(source, target, replace(TRANSLATED, copied_to=len(ours), repeats=True), at_once=at_once)
    if theirs == ours or not set(ours) <= set(theirs):
        assert (not found.by_kind) is (theirs == ours)


# --- the six kinds ----------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("codec", [0, GZIP, ZSTD])
def test_a_flipped_byte(terms: PairingTerms, codec: int) -> None:
    found = compare(log(TEN), log(with_one(6, value=b"value%6"), codec=codec), terms)
    assert only(found) == Difference("changed", 6, 6, "value differs at byte 5 of 7")
    assert found.counts.records == 9


@BOTH
@pytest.mark.parametrize("lost", [0, 4, 8])
def test_a_missing_record(terms: PairingTerms, lost: int) -> None:
    found = compare(log(TEN), log(TEN[:lost], TEN[lost + 1 :]) if lost else log(TEN[1:]), terms)
    one = only(found)
    assert (one.kind, one.source, one.target) == ("missing", lost, lost)
    assert one.what.endswith("; what follows stands 1 offset lower") is (terms is IDENTICAL)
    assert found.counts.records == 9


@BOTH
def test_a_duplicate(terms: PairingTerms) -> None:
    found = compare(log(TEN), log(TEN[:6], TEN[5:]), terms)
    one = only(found)
    assert (one.kind, one.source, one.target) == ("duplicate", 5, 6)
    assert one.what.endswith("; what follows stands 1 offset higher") is (terms is IDENTICAL)
    assert found.counts.records == 10


@BOTH
@pytest.mark.parametrize("at", [0, 3, 8])
def test_a_swapped_pair(terms: PairingTerms, at: int) -> None:
    swapped = [*TEN[:at], TEN[at + 1], TEN[at], *TEN[at + 2 :]]
    found = compare(log(TEN), log(swapped), terms)
    assert only(found) == Difference("order", at, at, "it and the next one have changed places", 2)
    assert found.counts.records == 8


@BOTH
def test_a_changed_timestamp(terms: PairingTerms) -> None:
    found = compare(log(TEN), log(with_one(3, timestamp=5)), terms)
    assert only(found) == Difference("changed", 3, 3, "timestamp 1003 became 5")


@BOTH
def test_a_lost_header(terms: PairingTerms) -> None:
    headers = (("trace", b"1"), ("id", b"2"), ("trace", b"3"))
    source = with_one(9, headers=headers)
    assert only(compare(log(source), log(with_one(9, headers=headers[1:])), terms)).what == "header trace is lost"
    added = only(compare(log(TEN), log(source), terms))
    assert added == Difference("changed", 9, 9, "header id was added, header trace was added")
    other = only(compare(log(source), log(with_one(9, headers=(*headers[:2], ("trace", b"4")))), terms))
    assert other.what == "header trace changed"
    turned = only(compare(log(source), log(with_one(9, headers=headers[::-1])), terms))
    assert turned.what == "headers stand in another order"


@BOTH
def test_several_at_once_each_at_its_place(terms: PairingTerms) -> None:
    source = some(60)
    copy = list(source)
    copy[50] = replace(copy[50], key=None)
    copy[40], copy[41] = copy[41], copy[40]
    copy.insert(31, copy[20])
    del copy[10:13]
    found = compare(log(source[:30], source[30:]), log(copy), terms)
    assert told(found) == [("missing", 10, 10), ("duplicate", 20, 28), ("order", 40, 38), ("changed", 50, 48)]
    assert found.by_kind == {"missing": 3, "duplicate": 1, "order": 2, "changed": 1}
    assert found.told[-1].what == "key is null, and was 6 bytes"
    assert found.counts.records == 60 - 3 - 2 - 1


@BOTH
def test_a_foreign_record(terms: PairingTerms) -> None:
    found = compare(log(TEN), log([*TEN[:4], Content(1, b"x", b"y"), *TEN[4:]]), terms)
    assert told(found) == [("extra", 4, 4)]


@BOTH
def test_one_that_stands_much_later_is_out_of_order(terms: PairingTerms) -> None:
    found = compare(log(some(20)), log([*some(20)[1:15], some(1)[0], *some(20)[15:]]), terms)
    assert told(found) == [("missing", 0, 0), ("order", 15, 14)]


@BOTH
def test_a_block_in_another_order_is_one_difference(terms: PairingTerms) -> None:
    turned = [*TEN[:3], TEN[5], TEN[3], TEN[4], *TEN[6:]]
    found = compare(log(TEN), log(turned), terms)
    assert found.told[0].kind in ("order", "missing", "extra")
    assert sum(found.by_kind.values()) <= 3


@BOTH
def test_logs_that_have_nothing_in_common_are_compared_one_by_one(terms: PairingTerms) -> None:
    other = [replace(one, value=b"other") for one in some(500)]
    found = compare(log(some(500)), log(other), terms)
    assert found.by_kind == {"changed": 500}
    assert len(found.told) == 10
    assert found.counts.records == 0


# --- places -----------------------------------------------------------------------------------------------------------


def test_records_elsewhere_than_they_should_are_told_once() -> None:
    source = [*log(TEN[:5]), *log(TEN[5:], start=5)]
    target = [*log(TEN[:5]), Gap(5, 7), *log(TEN[5:], start=7)]
    found = compare(source, target)
    assert only(found) == Difference(
        "moved", 5, 7, "it stands 2 offsets higher than it should, and so do those behind it"
    )
    assert found.counts.records == 10
    assert compare(source, target, TRANSLATED).told == []


def test_recorded_runs_are_no_difference_and_others_are() -> None:
    source = log(TEN[:5], TEN[5:8], TEN[8:])
    target = [*log(TEN[:5]), Gap(5, 7), *log(TEN[5:8], start=7), *log(TEN[8:], start=10)]
    runs = Runs((Run(5, 2),))
    found = compare(source, target, replace(IDENTICAL, record=shifted(runs)))
    assert (found.told, found.counts.records, found.counts.as_bytes) == ([], 10, 10)
    # It is said to begin inside of the first batch.
    found = compare(source, target, replace(IDENTICAL, record=shifted(Runs((Run(4, 2),)))))
    assert [one.kind for one in found.told] == ["moved", "moved"]


def test_a_healed_run_is_followed() -> None:
    source = [*log(TEN[:4]), Gap(4, 6), *log(TEN[4:], start=6)]
    target = [*log(TEN[:2]), Gap(2, 3), *log(TEN[2:4], start=3), Gap(5, 6), *log(TEN[4:], start=6)]
    terms = replace(IDENTICAL, record=shifted(Runs((Run(2, 1), Run(6, 0)))))
    assert compare(source, target, terms).told == []
    assert compare(source, target).told[0].kind == "moved"


def test_holes_of_both_sides_stand_at_the_same_place() -> None:
    whole = compacted(TEN, {2, 3, 9})
    (source,) = split(whole)
    found = compare([source], [*log(TEN[:2]), Gap(2, 4), *log(TEN[4:9], start=4), Gap(9, 10)])
    assert (found.told, found.counts.records) == ([], 7)
    # Their order alone counts where offsets are translated.
    found = compare([source], log([*TEN[:2], *TEN[4:9]]), TRANSLATED)
    assert (found.told, found.counts.records) == ([], 7)


# --- what is no difference --------------------------------------------------------------------------------------------


def test_what_is_not_copied_yet_is_counted() -> None:
    found = compare(log(TEN[:6], TEN[6:]), log(TEN[:6]))
    assert (found.told, found.counts.records, found.counts.behind) == ([], 6, 4)
    # The copy's end lies within a batch of the original.
    found = compare(log(TEN), log(TEN[:6]))
    assert (found.told, found.counts.records, found.counts.behind) == ([], 6, 4)
    found = compare(log(TEN), log(TEN[:6], start=50), TRANSLATED)
    assert (found.told, found.counts.records, found.counts.behind) == ([], 6, 4)


def test_what_was_committed_as_copied_must_be_there() -> None:
    found = compare(log(TEN), log(TEN[:6]), replace(TRANSLATED, copied_to=8))
    assert only(found) == Difference("missing", 6, 6, "the target does not have it", 2)
    assert found.counts.behind == 2


def test_records_put_aside_are_counted_apart() -> None:
    record = CopyRecord(None, None, aside=((4, 6),))
    for terms, target in (
        (IDENTICAL, [*log(TEN[:4]), Gap(4, 6), *log(TEN[6:], start=6)]),
        (TRANSLATED, log(TEN[:4], TEN[6:])),
    ):
        found = compare(log(TEN), target, replace(terms, record=record))
        assert (found.told, found.counts.aside, found.counts.records) == ([], 2, 8)


@BOTH
def test_a_source_compacted_later_is_no_difference(terms: PairingTerms) -> None:
    keyed = [Content(n, b"k%d" % (n % 3), b"v%d" % n) for n in range(12)]
    (left,) = split(compacted(keyed, set(range(8))))
    found = compare([left], log(keyed[:5], keyed[5:]), replace(terms, source_compacts=True), ends=(12, 12))
    assert (found.told, found.counts.records, found.counts.compacted_source) == ([], 4, 8)
    found = compare([left], log(keyed[:5], keyed[5:]), terms, ends=(12, 12))
    assert found.by_kind == {"extra": 8}


@BOTH
def test_a_compacted_target_may_lack_what_was_replaced_and_nothing_else(terms: PairingTerms) -> None:
    keyed = [Content(n, b"k%d" % (n % 3), b"v%d" % n) for n in range(12)]
    terms = replace(terms, target_compacts=True, copied_to=12)
    (left,) = split(compacted(keyed, set(range(9))))
    found = compare(log(keyed), [left], terms)
    assert (found.told, found.counts.records, found.counts.compacted_target) == ([], 3, 9)
    # The last one of its key has to be there.
    (less,) = split(compacted(keyed, {*range(9), 10}))
    one = only(compare(log(keyed), [less], terms))
    assert (one.kind, one.source) == ("missing", 10)
    # But for a tombstone, which cleaners drop after a while.
    keyed[10] = replace(keyed[10], value=None)
    found = compare(log(keyed), [less], terms)
    assert (found.told, found.counts.records, found.counts.compacted_target) == ([], 2, 10)


def test_repeated_records_are_allowed_where_the_flow_says_so() -> None:
    target = log(TEN[:6], TEN[3:])
    found = compare(log(TEN), target, replace(TRANSLATED, repeats=True))
    assert (found.told, found.counts.repeated, found.counts.records) == ([], 3, 10)
    assert only(compare(log(TEN), target, TRANSLATED)).kind == "duplicate"


@pytest.mark.parametrize("ends", [(3, 6), (1,), (1, 9)], ids=["between batches", "in a batch", "far in a batch"])
def test_what_one_side_deletes_meanwhile_is_no_difference(ends: tuple[int, ...]) -> None:
    for deletes in ("source", "target"):
        framed = [TEN[first:end] for first, end in pairwise((0, *ends, 10))]
        found, batches = Findings(), log(*framed)
        sides = {name: Side(name, 0, 10) for name in ("source", "target")}
        for name, side in sides.items():
            if name == deletes:
                side.jump(6)
                side.add(log(TEN[6:], start=6))
            else:
                side.add(batches)
        one = Comparer(sides["source"], sides["target"], replace(IDENTICAL, source_end=10), found)
        assert one.advance() is None
        assert (found.told, found.counts.records, found.counts.expired) == ([], 4, 6)


# --- what cannot be read ----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("broken", ["source", "target"])
def test_a_damaged_batch_is_left_out_with_what_stands_for_it(terms: PairingTerms, broken: str) -> None:
    whole = log(TEN[:3], TEN[3:6], TEN[6:])
    (bad,) = split(damaged(build(TEN[3:6], 3, LZ4)))
    partly = [whole[0], bad, whole[2]]
    found = compare(partly, whole, terms) if broken == "source" else compare(whole, partly, terms)
    one = only(found)
    assert (one.kind, one.source, one.target, one.records) == ("unreadable", 3, 3, 3)
    assert broken in one.what
    assert "its checksum does not fit" in one.what
    assert (found.counts.records, found.counts.as_bytes) == (7, 7)


def test_counts_add_up() -> None:
    assert Counts(records=1, expired=2) + Counts(records=3, behind=1) == Counts(records=4, expired=2, behind=1)


def test_findings_survive_being_kept() -> None:
    found = compare(log(TEN), log(TEN[:6], TEN[5:]))
    assert Findings.from_json(found.to_json()) == found
