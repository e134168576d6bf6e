"""One-record batches written straight into segments, read back by others than their writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.instruments.segments import LogFacts, TopicLog
from bench.workload.plant import one_record_batch, write_segments
from reconciler.records.split import split
from tests.support.records.batches import LZ4, NONE
from tests.support.records.library_records import decode


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_a_batch_has_one_record_and_the_right_checksum(codec: int) -> None:
    (batch,) = split(one_record_batch(b"k" * 200, b"v" * 70_000, 1_234_567_890_123, codec))
    assert batch.is_intact
    assert (batch.record_count, batch.last_offset_delta, batch.attributes, batch.producer_id) == (1, 0, codec, -1)
    (record,) = decode(batch.to_bytes())
    assert (record.key, record.value, record.headers) == (b"k" * 200, b"v" * 70_000, ())
    assert record.timestamp == 1_234_567_890_123


def test_segments_begin_where_asked_and_go_on_without_a_gap(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    pool = [one_record_batch(b"key", b"value %d" % number, 5) for number in range(3)]
    write_segments(folder, pool, 50_000_000, 10_000)
    (path,) = folder.iterdir()
    assert path.name == "00000000000050000000.log"
    found = list(split(path.read_bytes()))
    assert [batch.base_offset for batch in found] == list(range(50_000_000, 50_010_000))
    assert all(batch.is_intact for batch in found[:9])
    assert TopicLog(tmp_path, "orders", 1).advance() == LogFacts(10_000, 10_000, path.stat().st_size)


def test_an_empty_log_begins_where_asked_too(tmp_path: Path) -> None:
    write_segments(tmp_path, [one_record_batch(b"key", b"value", 5)], 7, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000007.log"]
