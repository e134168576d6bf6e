"""Rewritten batches against kafka-python's decoder: the same records at the same offsets, nothing in the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import HEADER_SIZE, Batch, UnreadableBatch
from reconciler.records.read_committed import Gap
from reconciler.records.rewrite import UNLIMITED, RawRecord, first_at, packed, raw_records, rewritten
from reconciler.records.split import split
from tests.support.records.batches import (
    CODECS,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    NONE,
    TRANSACTIONAL,
    ZSTD,
    Content,
    build,
    compacted,
    marked,
    resealed,
    some,
)
from tests.support.records.contents import contents
from tests.support.records.library_records import Record, decode

codecs = st.sampled_from(CODECS)
BASE = 1_000


def read(data: bytes) -> Batch:
    (one,) = split(data)
    return one


def records(found: list[Batch | Gap]) -> list[Record]:
    return [record for one in found if isinstance(one, Batch) for record in decode(one.to_bytes())]


def check(found: list[Batch | Gap], first: int, end: int) -> None:
    """Assert that items follow each other from `first` to `end`, and that a broker would take each batch."""
    for one in found:
        if isinstance(one, Batch):
            assert one.is_intact
            assert one.record_count == one.last_offset_delta + 1 > 0
            assert not one.attributes & (LOG_APPEND_TIME | DELETE_HORIZON | TRANSACTIONAL)
            assert one.max_timestamp == max(record.timestamp or 0 for record in decode(one.to_bytes()))
            assert one.base_offset == first
            first = one.next_offset
        else:
            assert one.first == first < one.next
            first = one.next
    assert first == end


@given(st.lists(contents, min_size=1, max_size=12), codecs, st.data())
@settings(deadline=None)
def test_holes_become_gaps_between_the_same_records(written: list[Content], codec: int, data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.integers(0, len(written) - 1)))
    first = data.draw(st.integers(0, len(written) - 1))
    limit = data.draw(st.integers(60, 1_000) | st.just(UNLIMITED))
    one = read(compacted(written, gone, BASE, codec))
    found = list(rewritten(one, BASE + first, limit))
    check(found, BASE + first, BASE + len(written))
    assert records(found) == [
        Record(BASE + number, content.timestamp, content.key, content.value, content.headers)
        for number, content in enumerate(written)
        if number not in gone and number >= first
    ]
    for piece in found:
        assert isinstance(piece, Gap) or piece.size <= limit or piece.record_count == 1


@pytest.mark.parametrize("codec", CODECS)
def test_records_get_the_time_at_which_they_were_appended(codec: int) -> None:
    stamped = bytearray(build(some(5), BASE, codec))
    stamped[35:43] = (5_000_000).to_bytes(8, "big")
    (found,) = rewritten(read(marked(bytes(stamped), LOG_APPEND_TIME)), BASE, UNLIMITED)
    check([found], BASE, BASE + 5)
    assert [record.timestamp for record in records([found])] == [5_000_000] * 5
    assert [record.value for record in records([found])] == [content.value for content in some(5)]


def test_times_before_the_cleaners_horizon_stay() -> None:
    """There the base timestamp is the horizon, and the deltas are relative to it."""
    horizon = 9_000
    one = read(marked(build(some(3, horizon), BASE), DELETE_HORIZON))
    (found,) = rewritten(one, BASE, UNLIMITED)
    assert [record.timestamp for record in records([found])] == [horizon, horizon + 1, horizon + 2]
    (shorter,) = rewritten(one, BASE + 1, UNLIMITED)
    assert [record.timestamp for record in records([shorter])] == [horizon + 1, horizon + 2]


def test_a_large_batch_is_divided_and_a_large_record_stays_whole() -> None:
    written = [Content(1, None, b"v" * size) for size in (100, 100, 5_000, 100, 100)]
    found = list(rewritten(read(build(written, BASE)), BASE, 400))
    check(found, BASE, BASE + 5)
    assert [one.record_count for one in found if isinstance(one, Batch)] == [2, 1, 2]


def test_compression_stays_where_it_helps() -> None:
    written = [Content(1, None, b"value" * 200), Content(2, None, b"gone"), Content(3, None, b"x")]
    large, _, small = rewritten(read(compacted(written, {1}, BASE, GZIP)), BASE, UNLIMITED)
    assert isinstance(large, Batch)
    assert isinstance(small, Batch)
    assert (large.attributes, small.attributes) == (GZIP, NONE)
    assert large.size < 200


def shorter(body: bytes) -> bytes:
    return body[:-1]


def longer(body: bytes) -> bytes:
    return body + b"\x00"


def noise(body: bytes) -> bytes:
    return b"\xff" * len(body)


def nothing(_body: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("spoil", [shorter, longer, noise, nothing])
@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_what_is_not_laid_out_as_the_header_says_is_an_error(spoil: Callable[[bytes], bytes], codec: int) -> None:
    whole = build([Content(1, None, b"value" * 50)] * 3, BASE, codec)
    broken = resealed(whole[:HEADER_SIZE] + spoil(whole[HEADER_SIZE:]))
    with pytest.raises(ValueError, match=r"offset 1000|not readable as zstd"):
        list(rewritten(read(broken), BASE, UNLIMITED))


def test_counts_that_are_wrong_are_an_error() -> None:
    one = read(build(some(3), BASE))
    for count in (2, 4):
        with pytest.raises(ValueError, match="do not match its header"):
            raw_records(one._replace(record_count=count))


def test_times_that_do_not_fit_wrap_as_javas_do() -> None:
    """A first record without a time, -1, and one at the end of time: the difference wraps, and so does the sum."""
    written = [RawRecord(BASE, -1, b""), RawRecord(BASE + 1, 2**63 - 1, b""), RawRecord(BASE + 2, 2**62, b"")]
    one = packed(written, NONE)
    assert raw_records(one) == written
    assert one.is_intact


def test_the_first_record_behind_an_offset_is_found_beyond_holes() -> None:
    one = read(compacted(some(6), {0, 2, 3, 5}, BASE))
    assert [first_at(one, BASE + at) for at in range(6)] == [BASE + 1, BASE + 1, BASE + 4, BASE + 4, BASE + 4, None]
    with pytest.raises(UnreadableBatch, match="its checksum does not fit"):
        first_at(one._replace(crc=one.crc ^ 1), BASE)
    whole = read(build(some(3), BASE))
    assert [first_at(whole, at) for at in (0, BASE + 1, BASE + 3)] == [BASE, BASE + 1, None]
