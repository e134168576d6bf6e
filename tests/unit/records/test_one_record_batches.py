"""Runs of one-record batches read as one: the same records at the same offsets, and nothing hidden by it."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import HEADER_SIZE, Batch, UnreadableBatch
from reconciler.records.merge import take
from reconciler.records.one_record_batches import batches, one_plain
from reconciler.records.split import split
from reconciler.replicator.partition.intake import BatchForm, CannotPass, items
from reconciler.wire import FetchAnswer
from tests.support.records.batches import (
    CODECS,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Content,
    build,
    build_old,
    damaged,
    led,
    marked,
    resealed,
    some,
    thinned,
)
from tests.support.records.contents import contents_since
from tests.support.records.read_batches import records, sizes

pytestmark = pytest.mark.slow

LIMIT = 256 * 1024
LONG = Content(1_000, None, b"value" * 100)

contents = contents_since(-1)
groups = st.lists(st.lists(contents, min_size=1, max_size=3), min_size=1, max_size=12)
codecs = st.sampled_from([NONE, NONE, NONE, LZ4, LZ4, ZSTD, GZIP])


def log(*counts: int, base: int = 0) -> list[bytes]:
    """Return one batch of so many records after the other."""
    found = []
    for count in counts:
        found.append(build(some(count, 1_000 + base), base))
        base += count
    return found


@given(groups, st.integers(0, 2**60), st.lists(codecs, min_size=12, max_size=12), st.integers(100, 2_000), st.data())
@settings(deadline=None)
def test_what_is_read_is_what_stands_there(
    groups: list[list[Content]], base: int, codecs: list[int], limit: int, data: st.DataObject
) -> None:
    pieces = []
    for group, codec in zip(groups, codecs, strict=False):
        base += data.draw(st.sampled_from([0, 0, 0, 5]))
        pieces.append(build(group, base, codec))
        base += len(group)
    whole = b"".join(pieces)
    part = memoryview(whole)[: data.draw(st.integers(0, len(whole)))]
    found, plain = list(batches(part, limit)), list(split(part))
    assert all(one.is_intact for one in found)
    assert records(found) == records(plain)
    assert all(one.size <= limit for one in found if one not in plain)
    newest = {one.next_offset: one.max_timestamp for one in plain}
    assert all(one.max_timestamp >= newest[one.next_offset] for one in found)


def test_a_run_becomes_one_batch_and_its_neighbours_stay() -> None:
    found = list(batches(b"".join(log(3, 1, 1, 1, 2, 1)), LIMIT))
    assert sizes(found) == [3, 3, 2, 1]
    assert [one.base_offset for one in found] == [0, 3, 6, 8]
    assert (found[1].base_timestamp, found[1].max_timestamp) == (1_003, 1_005)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_compressed_ones_become_one_batch_in_their_codec(codec: int) -> None:
    in_codec = [build([LONG], offset, codec) for offset in (0, 1, 2, 5, 6)]
    pieces = [*in_codec[:3], *log(1, 1, base=3), *in_codec[3:]]
    plain = list(split(b"".join(pieces)))
    found = list(batches(b"".join(pieces), LIMIT))
    assert [(one.record_count, one.attributes) for one in found] == [(3, codec), (2, NONE), (2, codec)]
    assert all(one.is_intact for one in found)
    assert records(found) == records(plain)


def test_no_more_is_decompressed_at_once_than_is_bounded() -> None:
    pieces = [build([Content(1_000, None, bytes(8_000))], offset, LZ4) for offset in range(300)]
    found = list(batches(b"".join(pieces), LIMIT))
    assert sizes(found) == [130, 130, 40]
    assert records(found) == records(list(split(b"".join(pieces))))


def test_a_run_ends_at_the_limit() -> None:
    pieces = log(*[1] * 10)
    found = list(batches(b"".join(pieces), 3 * len(pieces[0]) + 5))
    assert sizes(found) == [3, 3, 3, 1]


def test_a_run_ends_at_a_hole() -> None:
    before, behind = log(1, 1), log(1, 1, base=7)
    assert [one.base_offset for one in batches(b"".join(before + behind), LIMIT)] == [0, 7]


def test_a_run_ends_at_what_is_incomplete() -> None:
    pieces = log(1, 1, 1)
    assert sizes(list(batches(b"".join(pieces)[:-1], LIMIT))) == [2]


@pytest.mark.parametrize(
    "other",
    [
        build([LONG], 2, GZIP),
        marked(build(some(1), 2), TRANSACTIONAL),
        marked(build(some(1), 2), CONTROL),
        marked(build(some(1), 2), LOG_APPEND_TIME),
        marked(build(some(1), 2), DELETE_HORIZON),
        damaged(build(some(1), 2)),
    ],
    ids=["compressed", "transactional", "control", "append time", "horizon", "damaged"],
)
@pytest.mark.parametrize("behind", [[], log(1, 1, base=3)], ids=["last", "between"])
def test_what_is_not_plain_stays_as_it_is(other: bytes, behind: list[bytes]) -> None:
    found = list(batches(b"".join([*log(1, 1), other, *behind]), LIMIT))
    assert [one.to_bytes() for one in found[1:2]] == [next(split(other)).to_bytes()]
    assert sizes(found) == [2, 1, *([2] if behind else [])]


def test_a_damaged_first_batch_hides_nothing() -> None:
    first, *rest = log(1, 1, 1)
    found = list(batches(damaged(first) + b"".join(rest), LIMIT))
    assert [(one.is_intact, one.record_count) for one in found] == [(False, 1), (True, 2)]


def test_what_cannot_be_read_is_told_where_it_begins() -> None:
    strange = bytearray(build(some(1), 2))
    strange[16] = 9
    found = batches(b"".join(log(1, 1)) + strange, LIMIT)
    assert next(found).record_count == 2
    with pytest.raises(UnreadableBatch, match="offset 2 has message format v9"):
        next(found)


@given(st.binary(max_size=40))
@settings(deadline=None)
def test_a_record_that_is_none_is_left_to_the_target(noise: bytes) -> None:
    first, second, third = log(1, 1, 1)
    strange = resealed(second[:HEADER_SIZE] + noise)
    plain = [next(split(one)) for one in (first, strange, third)]
    found = list(batches(first + strange + third, LIMIT))
    assert found == plain or records(found) == records(plain)


# --- all of an answer as one batch -----------------------------------------------------------------------------------


def plain(data: bytes, limit: int = LIMIT) -> Batch | None:
    """Return the one batch of a fetch response's records, which stand somewhere in an answer."""
    return one_plain(b"before" + data + b"\x02behind", len(b"before"), len(b"before") + len(data), limit)


def long_way(data: bytes, expected: int, limit: int) -> Batch | None:
    """Return what a channel sends of a fetch response's records where that is one batch, and nothing else."""
    try:
        found = list(items(FetchAnswer("orders", 0, 0, 2**62, 2**62, 0, data), expected, BatchForm(merge=limit)))
    except CannotPass:
        return None
    if not found or not all(isinstance(item, Batch) for item in found):
        return None
    queue = deque(found)
    one, _ = take(queue, limit)
    return None if queue else one


def unowned(one: Batch) -> Batch:
    """Return a batch without what becomes another header anyway: its producer's numbers and the checksum over them."""
    return one._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1, crc=0)


def counting(data: bytes, count: int) -> bytes:
    """Return a batch that says that it holds so many records, without holes."""
    changed = bytearray(data)
    changed[23:27] = (count - 1).to_bytes(4, "big", signed=True)
    changed[57:61] = count.to_bytes(4, "big", signed=True)
    return resealed(changed)


producers = st.sampled_from([(-1, -1, -1), (7, 1, 12)])


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """Return a fetch response's records: mostly what passes as one batch, and now and then something else."""
    base, pieces = draw(st.integers(0, 2**60)), []
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2) | st.lists(st.just(1), min_size=1, max_size=8))
    for count in counts:
        group = draw(st.lists(contents | st.just(LONG), min_size=count, max_size=count))
        piece = build(group, base, draw(st.sampled_from([NONE, NONE, *CODECS])), draw(producers))
        if not draw(st.integers(0, 5)):
            piece = marked(piece, draw(st.sampled_from([TRANSACTIONAL, CONTROL, LOG_APPEND_TIME, DELETE_HORIZON])))
        if not draw(st.integers(0, 5)):
            changed = bytearray(piece)
            changed[draw(st.integers(0, len(piece) - 1))] = draw(st.integers(0, 255))
            piece = resealed(changed) if draw(st.booleans()) else bytes(changed)
        pieces.append(led(piece, draw(st.integers(-1, 9))))
        base += count + draw(st.sampled_from([0, 0, 0, 0, 2]))
    whole = b"".join(pieces)
    return whole[: draw(st.just(len(whole)) | st.integers(0, len(whole)))]


@given(answers(), st.sampled_from([0, 300, LIMIT]))
@settings(deadline=None, max_examples=300)
def test_one_batch_is_what_the_long_way_gives_or_none(data: bytes, limit: int) -> None:
    one = plain(data, limit)
    if one is not None:
        expected = long_way(data, one.base_offset, limit)
        assert expected is not None
        assert unowned(one) == unowned(expected)
        assert one.rewritten(8, 2, 40) == expected.rewritten(8, 2, 40)


@given(st.lists(contents, min_size=1, max_size=5), st.sampled_from(CODECS), producers, st.integers(-1, 9))
@settings(deadline=None)
def test_a_whole_batch_passes_as_it_is(
    group: list[Content], codec: int, producer: tuple[int, int, int], epoch: int
) -> None:
    # The library compresses only what becomes smaller by it.
    data = led(build([*group, LONG], 2**40, codec, producer), epoch)
    assert next(split(data)).attributes == codec
    for limit in (0, LIMIT):
        one = plain(data, limit)
        assert one is not None
        assert (unowned(one), one.leader_epoch) == (unowned(next(split(data))), epoch)


@given(st.lists(contents, min_size=2, max_size=12), st.integers(0, 2**60), producers)
@settings(deadline=None)
def test_a_run_that_is_all_there_is_passes_as_one_batch(
    run: list[Content], base: int, producer: tuple[int, int, int]
) -> None:
    data = b"".join(build([one], base + place, NONE, producer) for place, one in enumerate(run))
    one = plain(data)
    assert one is not None
    one = one.sealed()
    assert (one, records([one])) == (long_way(data, base, LIMIT), records(list(split(data))))


NOT_PLAIN = {
    "empty": b"",
    "damaged": damaged(build(some(3))),
    "damaged, compressed": damaged(led(build([LONG], 0, LZ4), 4)),
    "hole inside": thinned(build(some(3)), 1),
    "no record": counting(build(some(3)), 0),
    "fewer than none": counting(build(some(3)), -2),
    "transactional": marked(build(some(2)), TRANSACTIONAL),
    "control": marked(build(some(1)), CONTROL),
    "append time": marked(build(some(2)), LOG_APPEND_TIME),
    "horizon": marked(build(some(2)), DELETE_HORIZON),
    "format v0": build_old(0, 0),
    "format v1": build_old(1, 0, some(3)),
    "format v3": build(some(1))[:16] + b"\x03" + build(some(1))[17:],
    "cut": build(some(3))[:-1],
    "cut behind the header": build(some(3))[:HEADER_SIZE],
    "cut in the header": build(some(1))[:20],
    "another cut behind it": build(some(3)) + b"\0",
    "several records, then one": b"".join(log(2, 1)),
    "one, then several": b"".join(log(1, 2)),
    "several twice": b"".join(log(2, 2)),
    "compressed, then not": build([LONG], 0, LZ4) + build([LONG], 1),
    "in two codecs": build([LONG], 0, LZ4) + build([LONG], 1, ZSTD),
    "run that is cut": b"".join(log(1, 1, 1))[:-1],
    "run with a damaged one": b"".join(log(1, 1)) + damaged(build(some(1), 2)),
    "run with a hole": b"".join(log(1, 1)) + build(some(1), 3),
    "run with a transactional one": b"".join(log(1, 1)) + marked(build(some(1), 2), TRANSACTIONAL),
    "run with format v1": b"".join(log(1, 1)) + build_old(1, 2),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_what_is_not_one_plain_batch_is_none(name: str) -> None:
    assert plain(NOT_PLAIN[name]) is None


def test_a_run_beyond_the_limit_is_none() -> None:
    pieces = log(1, 1, 1)
    whole = b"".join(pieces)
    assert plain(whole, len(whole)) is not None
    assert plain(whole, len(whole) - 1) is None
    assert plain(whole, 0) is None
