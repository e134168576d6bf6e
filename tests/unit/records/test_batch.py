"""Record batches against kafka-python's own builder and reader: what goes through keeps every byte that counts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import HEADER_SIZE, LARGE, SEQUENCE_MODULUS, Batch, UnreadableBatch, next_sequence
from reconciler.records.split import split
from tests.support.records.batches import (
    CODECS,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    TRANSACTIONAL,
    Content,
    batch,
    build,
    damaged,
    decode,
    marked,
    some,
)

pytestmark = pytest.mark.slow

LATEST_MS = 2**42
# What the checksum covers begins behind base offset, length, leader epoch, magic and the checksum itself.
CHECKED_FROM = 21

# The library leaves a batch uncompressed when its codec gains nothing, so some values must be worth packing.
bodies = st.none() | st.binary(max_size=60) | st.binary(min_size=1, max_size=4).map(lambda piece: piece * 200)
headers = st.lists(st.tuples(st.sampled_from(["trace", "trace", "", "id"]), bodies), max_size=3).map(tuple)
contents = st.lists(
    st.builds(Content, st.integers(0, LATEST_MS), bodies, bodies, headers), min_size=1, max_size=12
).map(tuple)
offsets = st.integers(0, 2**62)
producers = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))


@given(contents, offsets, st.sampled_from(CODECS))
@settings(deadline=None)
def test_what_split_sees_is_what_the_library_wrote(records: tuple[Content, ...], base: int, codec: int) -> None:
    (one,) = split(build(records, base, codec))
    times = [record.timestamp for record in records]
    assert (one.base_offset, one.next_offset) == (base, base + len(records))
    assert (one.record_count, one.last_offset_delta) == (len(records), len(records) - 1)
    assert (one.base_timestamp, one.max_timestamp) == (times[0], max(times))
    assert (one.producer_id, one.producer_epoch, one.base_sequence) == (-1, -1, -1)
    assert one.is_intact
    assert not (one.is_control or one.is_transactional or one.is_log_append_time)


@given(contents, offsets, st.sampled_from(CODECS), producers)
@settings(deadline=None)
def test_a_rewritten_batch_carries_the_same_records_under_a_new_header(
    records: tuple[Content, ...], base: int, codec: int, producer: tuple[int, int, int]
) -> None:
    original = build(records, base, codec)
    (one,) = split(original)
    (before,), (after,) = decode(original), decode(one.rewritten(*producer))
    assert after.crc_is_valid
    assert (after.base_offset, after.producer, after.attributes) == (0, producer, before.codec)
    assert after.contents == before.contents == records
    assert after.offset_deltas == before.offset_deltas == tuple(range(len(records)))
    assert (after.first_timestamp, after.max_timestamp) == (before.first_timestamp, before.max_timestamp)


@given(contents, offsets, st.sampled_from(CODECS), producers)
@settings(deadline=None)
def test_bytes_round_trip(records: tuple[Content, ...], base: int, codec: int, producer: tuple[int, int, int]) -> None:
    original = build(records, base, codec, producer)
    (one,) = split(original)
    assert one.to_bytes() == original
    assert list(split(one.to_bytes())) == [one]
    assert one.size == len(original)


@pytest.mark.parametrize("bit", [LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON])
def test_only_the_codec_survives_of_the_attributes(bit: int) -> None:
    (one,) = split(marked(build([Content(1_000, None, b"value" * 100)], codec=LZ4), bit))
    assert one.is_intact
    found = (one.is_log_append_time, one.is_transactional, one.is_control)
    assert found == (bit == LOG_APPEND_TIME, bit == TRANSACTIONAL, bit == CONTROL)
    (after,) = decode(one.rewritten(7, 0, 0))
    assert (after.attributes, after.crc_is_valid) == (LZ4, True)


@given(st.data())
@settings(deadline=None)
def test_a_flipped_bit_in_the_checked_part_is_noticed(data: st.DataObject) -> None:
    original = build([*some(5), Content(9_000, b"key", b"value" * 100)], 40, data.draw(st.sampled_from(CODECS)))
    at = data.draw(st.integers(CHECKED_FROM, len(original) - 1))
    flipped = bytearray(original)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    (one,) = split(bytes(flipped))
    assert not one.is_intact


def test_a_flipped_checksum_is_noticed() -> None:
    flipped = bytearray(build(some(5)))
    flipped[CHECKED_FROM - 1] ^= 1
    (one,) = split(bytes(flipped))
    assert not one.is_intact


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_a_cut_last_batch_is_left_out(counts: list[int], data: st.DataObject) -> None:
    pieces, base = [], 100
    for count in counts:
        pieces.append(build(some(count), base))
        base += count
    cut = data.draw(st.integers(1, len(pieces[-1])))
    found = list(split(memoryview(b"".join(pieces))[: sum(map(len, pieces)) - cut]))
    assert [one.to_bytes()[16:] for one in found] == [piece[16:] for piece in pieces[:-1]]


@given(st.binary(max_size=200), st.integers(0, 2**31 - 1) | st.integers(-(2**31), HEADER_SIZE))
@settings(deadline=None)
def test_nonsense_is_refused_or_ends(noise: bytes, length: int) -> None:
    data = bytearray(build(some(1)) + noise)
    data[8:12] = length.to_bytes(4, "big", signed=True)
    found: list[Batch] = []
    try:
        for one in split(bytes(data)):
            found.append(one)
            assert len(found) <= len(data) // HEADER_SIZE, "the same bytes are read again and again"
    except UnreadableBatch:
        return
    assert sum(one.size for one in found) <= len(data)


@given(st.integers(0, SEQUENCE_MODULUS - 1), st.integers(0, 1_000_000))
def test_sequences_wrap(sequence: int, count: int) -> None:
    found = next_sequence(sequence, count)
    assert 0 <= found < SEQUENCE_MODULUS
    assert (found - sequence - count) % SEQUENCE_MODULUS == 0


def test_sequences_wrap_to_zero_after_the_last() -> None:
    assert next_sequence(SEQUENCE_MODULUS - 1, 1) == 0
    assert next_sequence(SEQUENCE_MODULUS - 3, 5) == 2


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_really_used_here(codec: int) -> None:
    records = (Content(1_000, b"key", b"value" * 100, (("name", b"a"), ("name", None))),)
    (found,) = decode(batch(*records, codec=codec).rewritten(1, 0, 0))
    assert (found.codec, found.contents) == (codec, records)


def test_size_counts_header_and_records() -> None:
    one = batch(*some(2), codec=GZIP)
    assert one.size == HEADER_SIZE + len(one.body) == len(one.to_bytes())


@given(st.sampled_from(CODECS), producers, st.integers(LARGE - 200, LARGE + 200), st.booleans())
@settings(deadline=None, max_examples=40)
def test_a_large_batch_gets_its_checksum_without_being_read(
    codec: int, producer: tuple[int, int, int], size: int, transactional: bool
) -> None:
    content = Content(1_000, b"key", random.Random(size).randbytes(size))
    original = build([content], 40, codec, (3, 4, 5), transactional=True)
    (one,) = split(original, in_place=True)
    assert isinstance(one.body, memoryview) is (len(one.body) >= LARGE)
    assert one.is_intact
    (after,) = decode(b"".join((one.header(*producer, transactional), one.body)))
    assert (after.crc_is_valid, after.producer, after.contents) == (True, producer, (content,))
    assert one.header(*producer) == one._replace(body=bytes(one.body)).header(*producer)


def test_a_large_batch_that_is_damaged_stays_damaged() -> None:
    data = damaged(build([Content(1_000, b"key", b"v" * LARGE)], 40))
    (one,) = split(data, in_place=True)
    assert not one.is_intact
    (after,) = split(one.rewritten(7, 0, 0))
    assert not after.is_intact


def test_only_what_may_stay_is_left_in_place() -> None:
    data = build([Content(1_000, None, b"v" * LARGE)], 40) + build(some(1), 41)
    cases: list[tuple[bytes | memoryview, bool, list[type]]] = [
        (data, False, [bytes, bytes]),
        (data, True, [memoryview, bytes]),
        (memoryview(bytearray(data)), True, [bytes, bytes]),
        (memoryview(bytearray(data)).toreadonly(), True, [memoryview, bytes]),
    ]
    for records, in_place, kinds in cases:
        found = list(split(records, in_place=in_place))
        assert [type(one.body) for one in found] == kinds
        assert b"".join(one.to_bytes() for one in found) == data
