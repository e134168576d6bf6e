"""Runs of one-record batches read as one: the same records at the same offsets, and nothing hidden by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.replicator.batch import HEADER_SIZE, Batch, UnreadableBatch
from reconciler.replicator.singles import batches
from reconciler.replicator.split import split
from reconciler.replicator.wire import Record, decode
from tests.support.batches import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    TRANSACTIONAL,
    Content,
    build,
    damaged,
    marked,
    resealed,
    some,
)
from tests.support.contents import contents_since

LIMIT = 256 * 1024

contents = contents_since(-1)
groups = st.lists(st.lists(contents, min_size=1, max_size=3), min_size=1, max_size=12)
codecs = st.sampled_from([NONE, NONE, NONE, LZ4])


def log(*counts: int, base: int = 0) -> list[bytes]:
    """Return one batch of so many records after the other."""
    found = []
    for count in counts:
        found.append(build(some(count, 1_000 + base), base))
        base += count
    return found


def records(found: list[Batch]) -> list[Record]:
    return [record for one in found for record in decode(one.to_bytes())]


def sizes(found: list[Batch]) -> list[int]:
    return [one.record_count for one in found]


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
        build([Content(1_000, None, b"value" * 100)], 2, GZIP),
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
