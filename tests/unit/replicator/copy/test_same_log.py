"""Same log or not: two batches compared at the offsets that both hold, whatever their bounds and codecs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.records.batch import Batch
from reconciler.records.rewrite import RawRecord, packed
from reconciler.records.split import split
from reconciler.records.varint import signed
from reconciler.replicator.copy.same_log import first_difference, share_records
from tests.support.records.batches import (
    CODECS,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    Content,
    build,
    compacted,
    damaged,
    marked,
    some,
)

RECORDS = some(6)


def batch(first: int, last: int, codec: int = 0, records: tuple[Content, ...] = RECORDS) -> Batch:
    """Return a batch that holds the offsets `first` to `last` of one log."""
    (one,) = split(build(records[first : last + 1], first, codec))
    return one


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.sampled_from(CODECS))
def test_other_bounds_and_codecs_are_the_same_log(a: int, b: int, c: int, d: int, codec: int) -> None:
    assert first_difference(batch(min(a, b), max(a, b)), batch(min(c, d), max(c, d), codec)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("timestamp", 99), ("key", b"other"), ("value", None), ("headers", (("added", b""),))],
)
def test_a_record_that_differs_is_named(field: str, value: object) -> None:
    changed = replace(RECORDS[4], **{field: value})  # type: ignore[arg-type]
    theirs = batch(0, 5, GZIP, (*RECORDS[:4], changed, RECORDS[5]))
    found = first_difference(theirs, batch(3, 5, LZ4))
    assert found is not None
    assert (found.offset, found.what) == (4, field)


def test_a_difference_beyond_the_common_offsets_is_not_seen() -> None:
    theirs = batch(0, 2, 0, (replace(RECORDS[0], key=b"other"), *RECORDS[1:]))
    assert first_difference(theirs, batch(1, 5)) is None


def test_equal_records_with_a_brokers_clock_differ() -> None:
    theirs, ours = build(RECORDS), build(RECORDS)
    stamped = bytearray(theirs)
    stamped[35:43] = (5_000_000).to_bytes(8, "big")
    (one,), (two,) = split(marked(bytes(stamped), LOG_APPEND_TIME)), split(ours)
    found = first_difference(one, two)
    assert found is not None
    assert (found.offset, found.what) == (0, "timestamp")


def named(name: bytes, value: bytes = b"x") -> RawRecord:
    """Return a record with one header."""
    rest = signed(-1) + signed(1) + b"v" + signed(1) + signed(len(name)) + name + signed(len(value)) + value
    return RawRecord(10, 1_000, rest)


def test_a_header_whose_name_is_no_utf_8_is_compared_as_bytes() -> None:
    """Producers of other languages may name them so, and brokers take it."""
    theirs, ours = packed([named("ü".encode("latin-1"))], 0), packed([named("ü".encode("latin-1"))], GZIP)
    assert first_difference(theirs, ours) is None
    assert share_records(theirs, ours)
    found = first_difference(theirs, packed([named("ä".encode("latin-1"))], 0))
    assert found is not None
    assert (found.offset, found.what) == (10, "headers")


def test_records_that_are_written_in_another_way_are_the_same() -> None:
    """A number may have more bytes than it needs."""
    theirs, ours = named(b"n"), named(b"n")
    longer = theirs.rest.replace(signed(1) + b"v", b"\x82\x00v", 1)
    assert longer != ours.rest
    assert first_difference(packed([theirs._replace(rest=longer)], 0), packed([ours], 0)) is None


def test_what_is_cut_off_is_an_error() -> None:
    cut = named(b"name")
    broken = packed([cut._replace(rest=cut.rest[:-1])], 0)
    with pytest.raises(ValueError, match="ends within a field"):
        first_difference(broken, packed([cut], 0))


def test_what_cannot_be_decoded_is_an_error() -> None:
    (broken,) = split(damaged(build([Content(1_000, None, b"value" * 100)], codec=GZIP)))
    with pytest.raises(ValueError, match="not readable as gzip"):
        first_difference(broken, batch(0, 0))


def test_batches_that_lost_each_others_records_share_none() -> None:
    theirs, ours = split(compacted(RECORDS, {0, 1, 2}, 0)), split(build(RECORDS[:2], 0))
    (one,), (two,) = theirs, ours
    assert first_difference(one, two) is None
    assert not share_records(one, two)
    assert share_records(one, batch(2, 3))
    assert share_records(one, batch(0, 1), 2) is False
    (three,) = split(build(RECORDS[3:5], 13))
    assert share_records(one, three, 10)


def test_what_was_written_as_it_was_read_is_shared_even_if_nobody_can_decode_it() -> None:
    (broken,) = split(damaged(build([Content(1_000, None, b"value" * 100)], codec=GZIP)))
    assert first_difference(broken, broken) is None
    assert share_records(broken, broken)
