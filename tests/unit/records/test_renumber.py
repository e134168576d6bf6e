"""Batches whose deltas are counted anew, against kafka-python's decoder: the same records, at places of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import Batch
from reconciler.records.renumber import renumbered
from reconciler.records.rewrite import UNLIMITED, dense
from reconciler.records.split import split
from reconciler.records.varint import signed
from tests.support.records.batches import CODECS, DELETE_HORIZON, NONE, Content, compacted, marked, some
from tests.support.records.contents import contents
from tests.support.records.library_records import Record, decode

BASE = 1_000


def read(data: bytes) -> Batch:
    (one,) = split(data)
    return one


def as_sent(one: Batch) -> list[Record]:
    """Return what a broker decodes that puts the batch at its first offset."""
    (sent,) = split(one.rewritten(7, 0, 0))
    assert sent.is_intact
    assert sent.record_count == sent.last_offset_delta + 1
    return decode(sent._replace(base_offset=one.base_offset).to_bytes())


def left(written: list[Content], gone: set[int], first: int = 0) -> list[Record]:
    return [
        Record(BASE + number, content.timestamp, content.key, content.value, content.headers)
        for number, content in enumerate(written)
        if number not in gone and number >= first
    ]


def check(found: list[Batch], wanted: list[Record], end: int) -> None:
    """Assert that batches hold the records in order, each from its first one up to where the next begins."""
    got = [record for one in found for record in as_sent(one)]
    assert [replace(record, offset=0) for record in got] == [replace(record, offset=0) for record in wanted]
    starts = [one.base_offset for one in found]
    at = 0
    for one, behind in zip(found, [*starts[1:], end][: len(found)], strict=True):
        assert one.base_offset == wanted[at].offset
        assert one.next_offset == behind
        assert [record.offset for record in as_sent(one)] == [one.base_offset + n for n in range(one.record_count)]
        at += one.record_count


@given(st.lists(contents, min_size=1, max_size=12), st.sampled_from(CODECS), st.sampled_from(CODECS), st.data())
@settings(deadline=None)
def test_what_compaction_left_is_counted_anew(
    written: list[Content], codec: int, wanted: int, data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(written) - 1), max_size=len(written) - 1))
    first = data.draw(st.just(0) | st.integers(0, len(written) - 1))
    limit = data.draw(st.just(UNLIMITED) | st.integers(60, 1_000))
    one = read(compacted(written, gone, BASE, codec))
    found = list(dense(one, BASE + first, limit, wanted))
    wanted_records = left(written, gone, first)
    check(found, wanted_records, BASE + len(written))
    assert [offset for piece in found for offset in places(piece)] == [record.offset for record in wanted_records]
    for piece in found:
        assert piece.size <= limit or piece.record_count == 1


def places(one: Batch) -> list[int]:
    """Return the offsets that the records of a batch had, as its parts tell them."""
    parts = one.parts or (one.record_count, 0)
    assert sum(parts) == one.last_offset_delta + 1
    found: list[int] = []
    at = one.base_offset
    for count, missing in zip(parts[::2], parts[1::2], strict=True):
        found += range(at, at + count)
        at += count + missing
    return found


@pytest.mark.parametrize("many", [150, 9_000])
@pytest.mark.parametrize("every", [2, 64, 149])
@pytest.mark.parametrize("last", [0, 56, 57, 58, 8_182, 8_183, 8_184, 2**20])
def test_deltas_and_lengths_that_take_fewer_bytes_than_before(many: int, every: int, last: int) -> None:
    # Deltas from 64 on have two bytes, from 8,192 on three; so have lengths.
    written = [Content(1_000 + number, None, b"v" * (number % 60)) for number in range(many - 1)]
    written.append(Content(2_000, None, b"w" * last))
    gone = {number for number in range(many - 1) if number % every}
    one = read(compacted(written, gone, BASE, NONE))
    (found,) = dense(one, BASE, UNLIMITED)
    check([found], left(written, gone), BASE + many)


def test_deltas_stay_relative_to_the_horizon_that_the_cleaner_put_in_the_base_timestamps_place() -> None:
    written = some(5)
    one = read(marked(compacted(written, {0, 3}, BASE, NONE), DELETE_HORIZON))
    (found,) = dense(one, BASE, UNLIMITED)
    assert [record.timestamp for record in as_sent(found)] == [written[n].timestamp for n in (1, 2, 4)]


def test_nothing_is_read_twice_or_left_out_when_a_batch_is_not_laid_out_as_it_says() -> None:
    one = read(compacted(some(6), {1}, BASE, NONE))
    with pytest.raises(ValueError, match="do not match"):
        list(dense(one._replace(record_count=4).sealed(), BASE, UNLIMITED))
    with pytest.raises(ValueError, match="do not match"):
        list(dense(one._replace(body=one.body[:-1]).sealed(), BASE, UNLIMITED))
    with pytest.raises(ValueError, match="do not match"):
        list(dense(one._replace(last_offset_delta=4).sealed(), BASE, UNLIMITED))


@given(st.binary(max_size=60), st.integers(0, 5), st.integers(0, 70))
def test_any_bytes_are_records_or_an_error(body: bytes, count: int, span: int) -> None:
    try:
        made, parts = renumbered(body, count, span)
    except (ValueError, IndexError):
        return
    assert len(made) <= len(body)
    assert sum(parts[::2]) == count
    assert all(0 <= part < max(span, 1) for part in parts[1::2])
    assert sum(parts) <= span


def test_offsets_that_do_not_rise_are_no_batch() -> None:
    def record(delta: int) -> bytes:
        inner = b"\x00" + signed(0) + signed(delta) + signed(-1) + signed(-1) + signed(0)
        return signed(len(inner)) + inner

    assert renumbered(record(3) + record(5), 2, 6) == (record(0) + record(1), (1, 1, 1, 0))
    assert renumbered(record(0) + record(1), 2, 5) == (record(0) + record(1), (2, 3))
    with pytest.raises(ValueError, match="do not match"):
        renumbered(record(3) + record(3), 2, 6)
    with pytest.raises(ValueError, match="do not match"):
        renumbered(record(3) + record(5), 2, 5)


def test_a_length_that_leads_back_to_itself_ends_at_once() -> None:
    with pytest.raises(ValueError, match="do not match"):
        renumbered(bytes([0x85, 0x80, 0, 0, 0, 0, 0, 0]), 2**60, 2**60)
