"""What a dead letter keeps of its record, and when there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.batch import Batch
from reconciler.records.read_committed import Gap
from reconciler.records.rewrite import RawRecord, packed, raw_records
from reconciler.records.split import split
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.intake import BatchForm, items
from reconciler.replicator.task.dead_letters import with_headers
from reconciler.wire import FetchAnswer, ProduceAnswer
from tests.support.records.batches import CODECS, Content, build, some
from tests.support.records.contents import contents
from tests.support.records.library_records import Record, decode

WHY = Reason("AB212", "too large")


@given(contents, st.dictionaries(st.text(max_size=9), st.text(max_size=200), max_size=5))
def test_headers_are_added_behind_those_that_are_there(content: Content, more: dict[str, str]) -> None:
    (one,) = split(build([content], 7))
    (record,) = raw_records(one)
    (letter,) = decode(packed([RawRecord(0, 5, with_headers(record.rest, more))], 0).to_bytes())
    assert (letter.key, letter.value, letter.timestamp) == (content.key, content.value, 5)
    assert list(letter.headers) == [*content.headers, *((name, text.encode()) for name, text in more.items())]


@given(st.binary(max_size=20))
def test_what_is_no_record_is_an_error_or_has_headers_behind_it(rest: bytes) -> None:
    try:
        made = with_headers(rest, {"a": "b"})
    except ValueError:
        return
    assert made.endswith(b"\x02a\x02b")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("aside", [{12}, {10, 11}, {14}, {10, 12, 14}, {10, 11, 12, 13, 14}, {9, 15}])
def test_what_was_put_aside_is_left_out_and_nothing_else(codec: int, dense: bool, aside: set[int]) -> None:
    answer = FetchAnswer("t", 0, 0, 20, 20, 0, memoryview(build(some(5), 10, codec)), ())
    found = list(items(answer, 10, BatchForm(dense=dense, without=frozenset(aside))))
    assert found[-1].next_offset if isinstance(found[-1], Batch) else found[-1].next == 15
    values = [one.value for batch in found if isinstance(batch, Batch) for one in as_sent(batch)]
    assert values == [b"value-%d" % (n - 10) for n in range(10, 15) if n not in aside]
    if not dense:
        gone = {n for gap in found if isinstance(gap, Gap) for n in range(gap.first, gap.next)}
        assert gone == {n for n in aside if 10 <= n < 15}


def as_sent(batch: Batch) -> list[Record]:
    return list(decode(batch.rewritten(1, 0, 0)))


def test_what_was_put_aside_is_remembered_in_ranges_the_newest_thousand_of_them() -> None:
    record = CopyRecord("a", "b")
    for offset in (5, 6, 9, 7, 5):
        record = record.without(offset)
    assert record.aside == ((5, 8), (9, 10))
    assert [record.behind_aside(offset) for offset in (4, 5, 7, 8, 9, 10)] == [4, 8, 8, 8, 10, 10]
    assert record.aside_from(6) == {6, 7, 9}
    for offset in range(0, 3_000, 2):
        record = record.without(offset)
    assert (len(record.aside), record.aside[0], record.aside[-1]) == (1_000, (1_000, 1_001), (2_998, 2_999))
    # However many follow each other, they are one.
    for offset in range(3_000, 8_000):
        record = record.without(offset)
    assert record.aside[-2:] == ((2_998, 2_999), (3_000, 8_000))


@pytest.mark.parametrize(
    ("code", "state", "expected"),
    [
        (10, PartitionState.PARKED, "AB229"),
        (87, PartitionState.PARKED, "AB229"),
        (29, PartitionState.PARKED, "AB213"),
        (6, PartitionState.OPENING, "AB220"),
    ],
)
def test_a_letter_that_is_not_taken_says_so(code: int, state: PartitionState, expected: str) -> None:
    verdict = reasons.why_no_letter("dead", WHY, 2_000, ProduceAnswer("dead", 0, code, -1, None))
    assert verdict is not None
    assert (verdict[0], verdict[1].code) == (state, expected)
    assert "dead" in verdict[1].text
    assert reasons.why_no_letter("dead", WHY, 2_000, ProduceAnswer("dead", 0, 0, 4, None)) is None
