"""Merged batches against kafka-python's decoder: the same records at the same offsets, in fewer batches."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import CODEC_BITS, HEADER_SIZE, LARGE, Batch
from reconciler.records.codecs import pack
from reconciler.records.merge import FEW_RECORDS, merged, take
from reconciler.records.read_committed import Gap
from reconciler.records.split import split
from tests.support.records.batches import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Content,
    batch,
    build,
    damaged,
    in_a_row,
    marked,
    some,
    thinned,
)
from tests.support.records.contents import contents
from tests.support.records.library_records import Record, decode

pytestmark = pytest.mark.slow

LIMIT = 256 * 1024

groups = st.lists(st.lists(contents, min_size=1, max_size=4), min_size=1, max_size=8)
bases = st.integers(0, 2**60)


def records(*batches: Batch) -> list[Record]:
    """Return what the library reads out of the batches as a producer would send them."""
    return [record for one in batches for record in decode(sealed(one))]


def sealed(one: Batch) -> bytes:
    data = bytearray(one.rewritten(1, 0, 0))
    data[:8] = one.base_offset.to_bytes(8, "big")
    return bytes(data)


@given(groups, bases)
@settings(deadline=None)
def test_a_merged_batch_holds_the_same_records(groups: list[list[Content]], base: int) -> None:
    originals = in_a_row(groups, base)
    one = merged(originals)
    assert records(one) == records(*originals)
    assert next(split(sealed(one))).is_intact
    assert (one.base_offset, one.next_offset) == (originals[0].base_offset, originals[-1].next_offset)
    assert one.record_count == one.last_offset_delta + 1 == sum(map(len, groups))
    stamps = [content.timestamp for group in groups for content in group]
    assert (one.base_timestamp, one.max_timestamp) == (stamps[0], max(stamps))


@given(groups, bases)
@settings(deadline=None)
def test_merging_twice_is_merging_once(groups: list[list[Content]], base: int) -> None:
    originals = in_a_row(groups, base)
    middle = len(originals) // 2
    halves = [merged(part) for part in (originals[:middle], originals[middle:]) if part]
    assert merged(halves) == merged(originals)


def test_a_batch_with_a_delete_horizon_keeps_its_times() -> None:
    # Its base is the horizon, and its first record's delta is not 0.
    one = build(some(3, timestamp=5_000), 10)
    moved = bytearray(marked(one, DELETE_HORIZON))
    (first,) = split(bytes(moved))
    first = first._replace(base_timestamp=4_000)
    other = batch(*some(2, timestamp=9_000), base_offset=13)
    assert [record.timestamp for record in records(merged([first, other]))] == [4_000, 4_001, 4_002, 9_000, 9_001]
    assert [record.timestamp for record in records(merged([other, first._replace(base_offset=15)]))] == [
        9_000,
        9_001,
        4_000,
        4_001,
        4_002,
    ]


def test_times_that_do_not_exist_survive() -> None:
    originals = [batch(Content(9, b"k", b"v"), base_offset=0), batch(Content(8, b"k", b"v"), base_offset=1)]
    originals = [one._replace(base_timestamp=-1, max_timestamp=-1) for one in originals]
    assert [record.timestamp for record in records(merged(originals))] == [-1, -1]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.integers(0, 4_000), st.data())
@settings(deadline=None)
def test_what_is_taken_is_what_was_queued(counts: list[int], limit: int, data: st.DataObject) -> None:
    queue: deque[Batch | Gap] = deque()
    base = 7
    for count in counts:
        if data.draw(st.booleans()):
            queue.append(Gap(base, base + 2))
            base += 2
        codec = data.draw(st.sampled_from([0, 0, 0, LZ4]))
        queue.append(batch(*some(count), base_offset=base, codec=codec))
        base += count
    expected = records(*(item for item in queue if isinstance(item, Batch)))
    found, end = [], 7
    while queue:
        first = queue[0]
        if isinstance(first, Gap):
            queue.popleft()
            end = first.next
            continue
        before = list(queue)
        one, size = take(queue, limit)
        gone = before[: len(before) - len(queue)]
        assert size == sum(item.size for item in gone)
        assert one.base_offset == end
        end = one.next_offset
        assert one.record_count == one.last_offset_delta + 1
        # Deltas may take a few bytes more than they did, never many.
        assert one.size <= max(first.size, limit + 6 * one.record_count)
        found.append(one)
    assert records(*found) == expected


def test_one_record_batches_travel_together_up_to_the_limit() -> None:
    one = batch(*some(1)).size - HEADER_SIZE
    queue: deque[Batch] = deque(batch(*some(1), base_offset=n) for n in range(10))
    assert take(queue, HEADER_SIZE + 4 * one).batch.record_count == 4
    assert take(queue, LIMIT).batch.record_count == 6
    assert not queue


@pytest.mark.parametrize("limit", [0, 50])
def test_nothing_is_merged_without_room(limit: int) -> None:
    queue = deque(in_a_row([list(some(1))] * 3, 0))
    first = queue[0]
    assert take(queue, limit) == (first, first.size)
    assert len(queue) == 2


@pytest.mark.parametrize(
    "other",
    [
        build([Content(1_000, None, b"v" * 500)] * 2, 2, LZ4),
        marked(build(some(2), 2), LOG_APPEND_TIME),
        marked(build(some(2), 2), CONTROL),
        build(some(2), 3),
        thinned(build(some(3), 2), 1),
        build(some(FEW_RECORDS + 1), 2),
    ],
    ids=["another codec", "append time", "control", "hole between", "hole inside", "many records"],
)
def test_what_cannot_be_merged_stays_alone(other: bytes) -> None:
    (second,) = split(other)
    for queue in (deque([*in_a_row([list(some(2))], 0), second]), deque([second, batch(*some(2), base_offset=4)])):
        first = queue[0]
        assert take(queue, LIMIT).batch is first


def test_a_transactional_batch_is_a_plain_one_at_the_target() -> None:
    (first,) = split(marked(build(some(1), 0), TRANSACTIONAL))
    one = take(deque([first, batch(*some(1), base_offset=1)]), LIMIT).batch
    assert (one.record_count, one.is_transactional) == (2, False)


def test_many_records_are_merged_where_that_is_wanted() -> None:
    queue = deque(in_a_row([list(some(100))] * 3, 0))
    assert take(queue, LIMIT, small=LIMIT).batch.record_count == 300


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@given(groups, bases)
@settings(deadline=None, max_examples=20)
def test_compressed_batches_of_one_codec_are_one_in_that_codec(
    codec: int, groups: list[list[Content]], base: int
) -> None:
    originals = []
    for one in in_a_row(groups, base):
        originals.append(one._replace(attributes=codec, body=pack(codec, one.body)).sealed())
    queue: deque[Batch | Gap] = deque(originals)
    one, size = take(queue, LIMIT)
    assert not queue
    assert size == sum(original.size for original in originals)
    assert (one.attributes & CODEC_BITS, records(one)) == (codec, records(*originals))
    assert (one.base_offset, one.next_offset) == (originals[0].base_offset, originals[-1].next_offset)


@pytest.mark.parametrize(("codec", "together"), [(GZIP, 100), (SNAPPY, 300), (LZ4, 300), (ZSTD, 300)])
def test_many_compressed_records_are_merged_where_that_is_worth_it_and_quick(codec: int, together: int) -> None:
    queue = deque(batch(*some(100), base_offset=100 * number, codec=codec) for number in range(3))
    first = queue[0]
    assert take(deque(queue), LIMIT).batch is first
    assert take(queue, LIMIT, small=LIMIT).batch.record_count == together


def test_so_many_records_are_merged_as_are_quickly_compressed() -> None:
    contents = [Content(1_000, None, b"v" * 2**18)]
    queue = deque(batch(*contents, base_offset=number, codec=ZSTD) for number in range(9))
    assert [take(queue, LIMIT).batch.record_count for _ in range(3)] == [3, 3, 3]
    huge = deque(batch(Content(1_000, None, b"v" * 2**21), base_offset=number, codec=ZSTD) for number in range(2))
    first = huge[0]
    assert take(huge, LIMIT).batch is first
    assert len(huge) == 1


def test_what_compressing_makes_too_large_is_halved() -> None:
    contents = [Content(1_000, None, random.Random(number).randbytes(3_000)) for number in range(4)]
    queue = deque(batch(one, base_offset=number, codec=LZ4) for number, one in enumerate(contents))
    limit = sum(len(one.body) for one in queue) + HEADER_SIZE - 40
    found = []
    while queue:
        found.append(take(queue, limit).batch)
    assert len(found) > 1
    assert all(one.size <= limit for one in found)
    assert found[-1].next_offset == 4


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_a_compressed_one_that_cannot_be_read_is_left_to_the_target(codec: int) -> None:
    good = batch(*some(2), base_offset=0, codec=codec)
    bad = batch(*some(2), base_offset=2, codec=codec)._replace(body=b"nothing of that kind")
    queue = deque([good, bad])
    assert take(queue, LIMIT).batch is good
    assert take(queue, LIMIT).batch is bad
    large = batch(Content(1_000, None, random.Random(7).randbytes(LARGE)), base_offset=2, codec=codec)
    queue = deque([good, large._replace(crc=large.crc ^ 1)])
    assert take(queue, LIMIT).batch is good


@given(st.binary(max_size=40), st.integers(1, 3))
@settings(deadline=None)
def test_records_that_are_none_are_left_to_the_target(noise: bytes, count: int) -> None:
    good, bad = batch(*some(1), base_offset=0), batch(*some(count), base_offset=1)._replace(body=noise)
    queue = deque([good, bad])
    one = take(queue, LIMIT).batch
    if one is good:
        assert list(queue) == [bad]
    else:
        assert one.record_count == 1 + count


def test_a_large_one_that_is_damaged_stays_alone() -> None:
    pieces = [build(some(1), 7), build([Content(1_000, None, b"v" * LARGE)], 8)]
    whole = deque(list(split(b"".join(pieces))))
    assert take(whole, LIMIT).batch.record_count == 2
    queue = deque(list(split(pieces[0] + damaged(pieces[1]))))
    first, second = take(queue, LIMIT).batch, take(queue, LIMIT).batch
    assert [(one.base_offset, one.record_count, one.is_intact) for one in (first, second)] == [
        (7, 1, True),
        (8, 1, False),
    ]
