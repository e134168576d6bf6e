"""The ledger: parcels that continue each other are one run, whatever breaks between them is another."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.spark.ledger_schema import COLUMNS
from reconciler.replicator.task.ledger import Ledger, LedgerRow

PLACE = Place("orders", 1, "east.orders")


def sent_batch(base: int, count: int, newest: int = 0, size: int = 100) -> InFlightBatch:
    return InFlightBatch(0, base, base + count, base, count, newest, newest, size, b"", b"")


def test_nothing_copied_is_no_row() -> None:
    assert Ledger("east-west").take() == []


def test_parcels_that_continue_each_other_are_one_run() -> None:
    ledger = Ledger("east-west")
    for one, latency in ((sent_batch(10, 5, 300), 20), (sent_batch(15, 1, 900), 5), (sent_batch(16, 4, 200), 90)):
        ledger.note(PLACE, one, latency)
    assert ledger.take() == [
        LedgerRow(
            *("east-west", "orders", 1, "east.orders"),
            *(10, 19, 10, 19, 0),
            records=10,
            bytes=300,
            fills=0,
            newest_timestamp=900,
            latency_avg=round((5 * 20 + 1 * 5 + 4 * 90) / 10),
            latency_max=90,
        )
    ]


def test_records_without_timestamps_have_no_latency() -> None:
    ledger = Ledger("east-west")
    ledger.note(PLACE, sent_batch(0, 2, newest=-1), None)
    (row,) = ledger.take()
    assert (row.newest_timestamp, row.latency_avg, row.latency_max) == (-1, None, None)
    ledger.note(PLACE, sent_batch(2, 2, newest=-1), None)
    ledger.note(PLACE, sent_batch(4, 1), 40)
    (row,) = ledger.take()
    assert (row.records, row.latency_avg, row.latency_max) == (3, 40, 40)


def test_each_round_takes_what_was_copied_since_the_one_before() -> None:
    ledger = Ledger("east-west")
    ledger.note(PLACE, sent_batch(0, 2), filled=3)
    assert [(row.first_offset, row.last_offset, row.fills) for row in ledger.take()] == [(0, 1, 3)]
    assert ledger.take() == []
    ledger.note(PLACE, sent_batch(2, 1), filled=4)
    assert [(row.first_offset, row.last_offset, row.fills) for row in ledger.take()] == [(2, 2, 1)]


def test_what_was_filled_stands_with_the_run_behind_it() -> None:
    ledger = Ledger("east-west")
    for one, filled in ((sent_batch(0, 2), 0), (sent_batch(3, 1), 1), (sent_batch(4, 1), 1), (sent_batch(9, 1), 5)):
        ledger.note(PLACE, one, None, filled)
    assert [(row.first_offset, row.records, row.fills) for row in ledger.take()] == [(0, 2, 0), (3, 2, 1), (9, 1, 4)]


def test_a_batch_with_holes_is_a_run_by_itself() -> None:
    ledger = Ledger("east-west")
    batches = [(0, 10, 50, 10), (10, 20, 60, 5), (20, 30, 65, 10), (30, 40, 75, 10)]
    for base, behind, landing, records in batches:
        ledger.note(PLACE, sent_batch(base, records)._replace(next_offset=behind, landing=landing))
    assert [(row.first_offset, row.last_offset, row.shift, row.records) for row in ledger.take()] == [
        (0, 9, 50, 10),
        (10, 19, 50, 5),
        (20, 39, 45, 20),
    ]


def test_a_shift_begins_a_new_run() -> None:
    ledger = Ledger("east-west")
    ledger.note(PLACE, sent_batch(0, 2))
    ledger.note(PLACE, sent_batch(2, 3)._replace(landing=4))
    ledger.note(PLACE, sent_batch(5, 1)._replace(landing=7))
    found = [(row.first_offset, row.first_target_offset, row.last_target_offset, row.shift) for row in ledger.take()]
    assert found == [(0, 0, 1, 0), (2, 4, 7, 2)]


def test_a_jump_begins_a_new_run() -> None:
    ledger = Ledger("east-west")
    for one in (sent_batch(0, 2), sent_batch(3, 1), sent_batch(2, 1)):
        ledger.note(PLACE, one)
    assert [(row.first_offset, row.last_offset) for row in ledger.take()] == [(0, 1), (3, 3), (2, 2)]


def test_rows_are_in_the_order_of_topics_and_partitions() -> None:
    ledger = Ledger("east-west")
    for topic, partition in (("b", 0), ("a", 10), ("a", 2)):
        ledger.note(Place(topic, partition, f"east.{topic}"), sent_batch(0, 1))
    assert [(row.topic, row.partition) for row in ledger.take()] == [("a", 2), ("a", 10), ("b", 0)]


def test_a_row_has_the_schemas_columns_in_its_order() -> None:
    assert tuple(COLUMNS) == LedgerRow._fields


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(0, 10**13)), max_size=30))
def test_runs_account_for_every_record_and_never_touch(steps: list[tuple[int, int, int]]) -> None:
    ledger, at = Ledger("f"), 0
    for gap, count, newest in steps:
        ledger.note(PLACE, sent_batch(at + gap, count, newest, size=count))
        at += gap + count
    rows = ledger.take()
    assert sum(row.records for row in rows) == sum(count for _, count, _ in steps)
    assert sum(row.bytes for row in rows) == sum(count for _, count, _ in steps)
    assert all(row.last_offset - row.first_offset + 1 == row.records for row in rows)
    assert all(row.first_target_offset == row.first_offset for row in rows)
    assert all(after.first_offset > before.last_offset + 1 for before, after in itertools.pairwise(rows))
    assert max((row.newest_timestamp for row in rows), default=0) == max((newest for *_, newest in steps), default=0)
