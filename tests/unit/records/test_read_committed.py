"""What readers of committed records see of a log, and which offsets are gaps to them."""

from __future__ import annotations

import struct

import pytest

from reconciler.records.batch import Batch
from reconciler.records.read_committed import Gap, sift
from reconciler.records.split import split
from tests.support.records.batches import CONTROL, TRANSACTIONAL, build, damaged, marked, some, thinned

ABORT, COMMIT = 0, 1
Seen = list[tuple[int, int] | Gap]


def data(base: int, count: int, producer: int | None = None) -> bytes:
    if producer is None:
        return build(some(count), base)
    return build(some(count), base, producer=(producer, 0, 0), transactional=True)


def marker(base: int, producer: int, kind: int) -> bytes:
    """A control batch as brokers write it: one record, key version and kind, value version and coordinator epoch."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 7)
    record = bytes([0, 0, 0, len(key) * 2]) + key + bytes([len(value) * 2]) + value + b"\x00"
    plain = build(some(1), base, producer=(producer, 0, 0), transactional=True)
    body = bytes([len(record) * 2]) + record
    head = bytearray(plain[:61])
    head[8:12] = struct.pack(">i", 61 - 12 + len(body))
    return marked(bytes(head) + body, CONTROL)


def seen(log: bytes, expected: int = 0, *aborted: tuple[int, int]) -> Seen:
    return [
        (item.base_offset, item.next_offset) if isinstance(item, Batch) else item
        for item in sift(split(log), expected, aborted)
    ]


def test_a_plain_log_is_seen_whole() -> None:
    assert seen(data(0, 2) + data(2, 3)) == [(0, 2), (2, 5)]


def test_what_was_read_before_is_passed_over_and_a_batch_in_the_middle_is_handed_on() -> None:
    assert seen(data(0, 2) + data(2, 3) + data(5, 1), 3) == [(2, 5), (5, 6)]


def test_missing_offsets_are_a_gap() -> None:
    assert seen(data(4, 1) + data(9, 1), 2) == [Gap(2, 4), (4, 5), Gap(5, 9), (9, 10)]


def test_a_committed_transaction_is_seen_and_its_marker_is_a_gap() -> None:
    log = data(0, 2, producer=5) + marker(2, 5, COMMIT) + data(3, 1)
    assert seen(log) == [(0, 2), Gap(2, 3), (3, 4)]


def test_an_aborted_transaction_is_hidden_up_to_its_marker_and_no_further() -> None:
    log = data(0, 2, 5) + data(2, 1, 6) + marker(3, 5, ABORT) + data(4, 1, 5) + marker(5, 6, COMMIT)
    assert seen(log, 0, (5, 0)) == [Gap(0, 2), (2, 3), Gap(3, 4), (4, 5), Gap(5, 6)]


def test_one_producer_commits_first_and_aborts_later() -> None:
    log = data(0, 1, 5) + marker(1, 5, COMMIT) + data(2, 1, 5) + marker(3, 5, ABORT) + data(4, 1, 5)
    assert seen(log, 0, (5, 2)) == [(0, 1), Gap(1, 2), Gap(2, 3), Gap(3, 4), (4, 5)]


def test_a_commit_marker_does_not_end_the_abort_of_a_later_transaction() -> None:
    """The list names a transaction that begins behind the marker: until then its producer's data is seen."""
    log = data(0, 1, 5) + marker(1, 5, COMMIT) + data(2, 2, 5) + marker(4, 5, ABORT)
    assert seen(log, 0, (5, 2)) == [(0, 1), Gap(1, 2), Gap(2, 4), Gap(4, 5)]


def test_plain_batches_of_an_aborting_producer_are_seen() -> None:
    assert seen(build(some(2), 0, producer=(5, 0, 0)), 0, (5, 0)) == [(0, 2)]


def test_two_aborted_transactions_of_two_producers_interleave() -> None:
    log = data(0, 1, 5) + data(1, 1, 6) + data(2, 1) + marker(3, 6, ABORT) + marker(4, 5, ABORT)
    assert seen(log, 0, (6, 1), (5, 0)) == [Gap(0, 1), Gap(1, 2), (2, 3), Gap(3, 4), Gap(4, 5)]


def test_a_batch_that_the_cleaner_emptied_is_a_gap() -> None:
    assert seen(thinned(data(0, 2), 2) + data(2, 1)) == [Gap(0, 2), (2, 3)]


@pytest.mark.parametrize("bit", [CONTROL, TRANSACTIONAL])
def test_a_damaged_header_never_makes_records_vanish(bit: int) -> None:
    log = damaged(marked(build(some(2), 0, producer=(5, 0, 0)), bit)) + data(2, 1)
    assert seen(log, 0, (5, 0)) == [(0, 2)]


def test_the_gap_in_front_of_a_marker_is_one_with_it_in_size() -> None:
    gaps = [item for item in sift(split(marker(7, 5, COMMIT)), 4, ()) if isinstance(item, Gap)]
    assert sum(gap.size for gap in gaps) == 4
    assert (gaps[0].first, gaps[-1].next) == (4, 8)
