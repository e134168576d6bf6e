"""The comparer where windows show less than they were asked for, and where what went by is far away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.offsets.runs import Run, Runs
from reconciler.model.offsets.verification import Findings
from reconciler.records.batch import HEADER_SIZE, Batch
from reconciler.records.rewrite import raw_records
from reconciler.records.split import split
from reconciler.verify.comparison import comparer, past, side
from reconciler.verify.comparison.comparer import Comparer
from reconciler.verify.comparison.side import Side
from tests.support.commands.verifying import IDENTICAL, TRANSLATED, Log, compare, log, shifted
from tests.support.records.batches import Content, batch, build, some

REPEATS = replace(TRANSLATED, repeats=True)


def cut(records: Sequence[Content], count: int) -> Log:
    """Return a log with so many records in each batch."""
    return log(*[records[at : at + count] for at in range(0, len(records), count)])


@pytest.mark.parametrize("length", [40, 200])
def test_what_is_repeated_may_be_longer_than_any_window(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(comparer, "WINDOWS", (16, 64, 128))
    records = some(600)
    copies = [*records[:400], *records[400 - length :]]
    found = compare(cut(records, 50), cut(copies, 30), replace(REPEATS, copied_to=600), at_once=8)
    assert (found.told, found.counts.records, found.counts.repeated) == ([], 600, length)


@pytest.mark.parametrize("repeated_from", [0, 130], ids=["from the first", "from the middle"])
@pytest.mark.parametrize("upto", [300, 600], ids=["and more follows", "at the end"])
def test_what_is_repeated_may_have_gone_by_long_ago(
    monkeypatch: pytest.MonkeyPatch, repeated_from: int, upto: int
) -> None:
    monkeypatch.setattr(past, "_RECORDS", 20)
    monkeypatch.setattr(comparer, "WINDOWS", (8, 16, 32))
    records = some(600)
    copies = [*records[:upto], *records[repeated_from:]]
    found = compare(cut(records, 10), cut(copies, 30), replace(REPEATS, copied_to=600), at_once=8)
    assert (found.told, found.counts.records, found.counts.repeated) == ([], 600, upto - repeated_from)
    # One after the other, and a foreign record in between, as far as a window shows.
    copies = [*records[:upto], records[50], *records[50:90], Content(1, b"x", b"foreign"), *records[upto - 20 :]]
    found = compare(cut(records, 10), cut(copies, 30), replace(REPEATS, copied_to=600), at_once=8)
    assert (found.by_kind, found.counts.records, found.counts.repeated) == ({"extra": 1}, 600, 1 + 40 + 20)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 20), st.data())
def test_what_went_by_is_known_with_its_last_place(
    values: list[int], size: int, bound: int, data: st.DataObject
) -> None:
    """Whatever is asked in between, and however much is decoded ahead."""
    rows = [Content(1, b"k", b"%d" % value) for value in values]
    batches = [one for one in cut(rows, size) if isinstance(one, Batch)]
    wanted = {value: raw_records(batch(Content(1, b"k", b"%d" % value)))[0] for value in range(10)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past, "_RECORDS", bound)
        known, taken = past.Past(), 0
        for one in batches:
            known.add(one, taken)
            taken = data.draw(st.integers(taken, one.next_offset))
            for value in data.draw(st.lists(st.integers(0, 9), max_size=3)):
                at = known.find(wanted[value], taken)
                assert at is None or (at < taken and values[at] == value)
                near = [place for place in range(max(0, taken - bound + size), taken) if values[place] == value]
                assert not near or (at is not None and at >= near[-1] - size)


def test_what_is_decoded_ahead_does_not_hide_what_went_by(monkeypatch: pytest.MonkeyPatch) -> None:
    records = some(900)
    monkeypatch.setattr(past, "_BYTES", len(build(records[:10])))
    copies = [*records[:305], records[300], *records[305:]]
    terms = replace(TRANSLATED, copied_to=900, source_compacts=True)
    found = compare(cut(records, 10), cut(copies, 10), terms, at_once=60)
    assert found.by_kind == {"duplicate": 1}
    assert (found.counts.records, found.counts.compacted_source) == (900, 0)


@pytest.mark.parametrize("both", [False, True], ids=["target", "both"])
def test_a_window_of_few_large_records_is_not_the_end(monkeypatch: pytest.MonkeyPatch, *, both: bool) -> None:
    """Cleaning took more than it shows: all of what is left is the same."""
    # The same keys again and again, of which the target has kept the last ones.
    keys = some(20)
    records = [replace(keys[at % 20], value=b"%06d" % at) for at in range(1_200)] + [
        replace(one, key=b"%d" % at) for at, one in enumerate(some(600))
    ]
    monkeypatch.setattr(side, "_WINDOW_BYTES", 4_000)
    terms = replace(TRANSLATED, copied_to=1_800, target_compacts=True, source_compacts=both)
    found = compare(cut(records, 20), cut(records[1_180:], 20), terms, at_once=20)
    assert (found.told, found.counts.records) == ([], 620)


def test_what_expires_behind_the_other_sides_end_ends() -> None:
    records, found = some(40), Findings()
    source, target = Side("source", 0, 10), Side("target", 0, 20)
    source.add(log(records[:10]))
    target.jump(15)
    target.add(log(records[15:20], start=15))
    one = Comparer(source, target, replace(IDENTICAL, source_end=10), found)
    assert one.advance() is None
    assert (found.counts.records, found.counts.expired) == (0, 10)


def test_what_expires_counts_as_far_as_the_copy_goes() -> None:
    records, found = some(30), Findings()
    source, target = Side("source", 0, 30), Side("target", 0, 10)
    source.add(cut(records, 5))
    target.jump(25)
    one = Comparer(source, target, replace(IDENTICAL, source_end=30), found)
    assert one.advance() is None
    assert (found.told, found.counts.expired, found.counts.behind) == ([], 10, 20)


def test_what_expires_before_a_shifted_run_takes_nothing_of_it_along() -> None:
    records, found = some(20), Findings()
    source, target = Side("source", 0, 20), Side("target", 0, 25)
    source.add(cut(records, 10))
    # From source offset 10 on everything stands five offsets higher.
    target.jump(17)
    target.add(log(records[12:], start=17))
    terms = replace(IDENTICAL, record=shifted(Runs((Run(10, 5),))), source_end=20)
    one = Comparer(source, target, terms, found)
    assert one.advance() is None
    assert (found.told, found.counts.records, found.counts.expired) == ([], 8, 12)


def test_of_a_damaged_batch_counts_what_is_compared() -> None:
    """Reading begins inside of it: what stands before has nothing on the other side."""
    records = some(12)
    whole = bytearray(build(records[2:7], 2))
    whole[HEADER_SIZE + 3] ^= 1
    found = Findings()
    source, target = Side("source", 5, 12), Side("target", 0, 7)
    source.add([*split(bytes(whole)), *log(records[7:], start=7)])
    target.add(log(records[5:9], records[9:]))
    one = Comparer(source, target, replace(TRANSLATED, source_end=12, copied_to=12), found)
    assert one.advance() is None
    assert (found.by_kind, found.counts.records) == ({"unreadable": 5}, 5)
