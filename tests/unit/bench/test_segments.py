"""Counting records in log segments, as a broker leaves them on disk."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.instruments.segments import LogFacts, TopicLog
from reconciler.records.batch import HEADER

TRANSACTIONAL, CONTROL = 0x10, 0x20
COMMIT, ABORT = 1, 0

Append = Callable[..., None]


def batch(records: int, attributes: int = 0, producer: int = -1, body: bytes = b"r" * 40) -> bytes:
    size = HEADER.size + len(body) - 12
    return HEADER.pack(0, size, 0, 2, 0, attributes, records - 1, 0, 0, producer, 0, 0, records) + body


def marker(producer: int, kind: int) -> bytes:
    # As brokers write them: length, attributes, two deltas and the key's length, then version and type, then a value.
    body = bytes([16, 0, 0, 0, 8]) + struct.pack(">hh", 0, kind) + bytes(8)
    return batch(1, TRANSACTIONAL | CONTROL, producer, body)


@pytest.fixture
def append(tmp_path: Path) -> Append:
    def write(*pieces: bytes, partition: int = 0, segment: int = 0) -> None:
        folder = tmp_path / f"orders-{partition}"
        folder.mkdir(exist_ok=True)
        with (folder / f"{segment:020d}.log").open("ab") as file:
            file.write(b"".join(pieces))

    return write


def test_a_topic_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert TopicLog(tmp_path, "orders", 4).advance() == LogFacts(0, 0, 0)


def test_batches_of_all_partitions_are_counted_once(tmp_path: Path, append: Append) -> None:
    log = TopicLog(tmp_path, "orders", 2)
    append(batch(10), batch(5))
    append(batch(7), partition=1)
    assert log.advance() == LogFacts(3, 22, 303)
    append(batch(1))
    assert log.advance() == LogFacts(4, 23, 404)
    assert log.advance() == LogFacts(4, 23, 404)


def test_another_topic_whose_name_begins_alike_is_not_counted(tmp_path: Path, append: Append) -> None:
    append(batch(3))
    (tmp_path / "orders-0-0").mkdir()
    (tmp_path / "orders-0-0" / f"{0:020d}.log").write_bytes(batch(9))
    assert TopicLog(tmp_path, "orders", 1).advance().records == 3


@pytest.mark.parametrize("cut", [1, 60, 61, 100])
def test_a_batch_that_is_still_being_written_waits(tmp_path: Path, append: Append, cut: int) -> None:
    whole = batch(6)
    log = TopicLog(tmp_path, "orders", 1)
    append(batch(2), whole[:cut])
    assert log.advance().records == 2
    append(whole[cut:])
    assert log.advance().records == 8


def test_segments_are_read_in_order_and_to_their_ends(tmp_path: Path, append: Append) -> None:
    log = TopicLog(tmp_path, "orders", 1)
    append(batch(4))
    assert log.advance().records == 4
    append(batch(5))
    append(batch(6), segment=9)
    append(batch(7), segment=15)
    assert log.advance().records == 22
    append(batch(8), segment=15)
    assert log.advance().records == 30


def test_records_of_a_transaction_count_when_it_is_committed(tmp_path: Path, append: Append) -> None:
    log = TopicLog(tmp_path, "orders", 1)
    append(batch(4, TRANSACTIONAL, 70), batch(5, TRANSACTIONAL, 70), batch(3, TRANSACTIONAL, 71), batch(2))
    assert log.advance().records == 2
    append(marker(70, COMMIT))
    assert log.advance() == LogFacts(3, 11, 303)
    append(marker(71, ABORT), marker(72, COMMIT), batch(1, TRANSACTIONAL, 71), marker(71, COMMIT))
    assert log.advance().records == 12


def test_averages_of_batches(tmp_path: Path, append: Append) -> None:
    append(batch(10), batch(20, body=b"r" * 140))
    facts = TopicLog(tmp_path, "orders", 1).advance()
    assert (facts.batch_records, facts.batch_bytes) == (15, 151)
    assert LogFacts(0, 0, 0).batch_bytes == 0


def test_many_small_batches_are_read_together_and_counted_alike(tmp_path: Path, append: Append) -> None:
    small, large = batch(1, body=b"r" * 20), batch(50, body=b"r" * 9000)
    log = TopicLog(tmp_path, "orders", 1)
    append(*[small] * 9000, large, marker(5, COMMIT), *[small] * 7000, batch(3, TRANSACTIONAL, 6), small[:61])
    assert log.advance() == LogFacts(16_001, 16_050, 16_000 * len(small) + len(large))
    append(small[61:], marker(6, ABORT), large)
    assert log.advance().records == 16_101
