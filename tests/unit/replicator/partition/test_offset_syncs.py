"""Offset syncs as bytes: read as they were written, and left out where they are none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.records.codecs import NONE
from reconciler.records.rewrite import RawRecord, packed
from reconciler.records.split import split
from reconciler.records.varint import signed
from reconciler.replicator.partition import offset_syncs as module
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_syncs import (
    OffsetSync,
    Span,
    batch_of,
    portions,
    read_batch,
    syncs,
    with_position,
)
from reconciler.wire.requests.commits import CommittedPosition
from tests.support.records.batches import CODECS, Content, build, compacted, decode

pytestmark = pytest.mark.slow

OFFSETS = st.integers(0, 2**62)
POSITIONS = st.none() | st.builds(CommittedPosition, OFFSETS, st.text(max_size=400))
SMALL = st.integers(0, 2**40)
PARTS = st.lists(st.tuples(st.integers(1, 2**40), SMALL), min_size=1, max_size=6).map(
    lambda pairs: tuple(number for pair in pairs for number in pair)
)


@st.composite
def some_sync(draw: st.DrawFn) -> OffsetSync:
    source = draw(OFFSETS)
    kinds = st.sampled_from([(False, False), (True, False), (True, True)])
    spans = st.none() | st.builds(
        lambda begin, parts, kind: Span(begin, parts, *kind), st.integers(0, source), PARTS, kinds
    )
    return OffsetSync(
        draw(st.text(max_size=249)),
        draw(st.integers(0, 2**31 - 1)),
        source,
        draw(OFFSETS),
        draw(POSITIONS),
        draw(spans),
    )


SYNCS = some_sync()
LOG = "orders", 3
KEY, VALUE = struct.pack(">h6si", 6, b"orders", 3), struct.pack(">qq", 5, 7)
POSITION = CommittedPosition(9, "note")


@given(st.lists(SYNCS, min_size=1, max_size=20))
def test_syncs_are_read_as_they_were_written(written: list[OffsetSync]) -> None:
    assert list(read_batch(batch_of(written, 1_000))) == written


def test_the_key_and_the_value_are_those_of_mirrormaker_whether_a_position_is_said_or_not() -> None:
    written = [OffsetSync("orders", 3, 5, 7), OffsetSync("orders", 3, 5, 7, POSITION)]
    (found,) = decode(batch_of(written, 1_000).to_bytes())
    plain, with_header = found.contents
    assert (plain.key, plain.value, plain.headers) == (KEY, VALUE, ())
    assert (with_header.key, with_header.value) == (KEY, VALUE)
    assert [name for name, _ in with_header.headers] == ["anabranch-position"]


@pytest.mark.parametrize("codec", CODECS)
def test_what_others_wrote_in_batches_of_any_kind_is_read_and_what_is_no_sync_is_left_out(codec: int) -> None:
    fine = Content(1, KEY, VALUE, (("theirs", None), ("more", b"x")))
    wrong = [
        Content(1, None, None),
        Content(1, KEY, None),
        Content(1, None, VALUE),
        Content(1, KEY, VALUE + b"x"),
        Content(1, KEY, VALUE[:-1]),
        Content(1, KEY[:-1], VALUE),
        Content(1, KEY + b"x", VALUE),
        Content(1, b"", b""),
        Content(1, struct.pack(">hi", -1, 0), VALUE),
        Content(1, struct.pack(">h2si", 2, b"\xff\xff", 0), VALUE),
        Content(1, KEY, VALUE, (("anabranch-position", b"short"),)),
        Content(1, KEY, VALUE, (("anabranch-position", b"\x00" * 8 + b"\xff"),)),
    ]
    records = [fine, *wrong, fine]
    expected = OffsetSync("orders", 3, 5, 7)
    (whole,) = split(build(records, 40, codec))
    assert list(read_batch(whole)) == [expected, expected]
    (holed,) = split(compacted(records, {0, 2}, 40, codec))
    assert list(read_batch(holed)) == [expected]


@given(st.binary(max_size=60))
def test_no_bytes_of_others_stop_the_reading(rest: bytes) -> None:
    assert len(list(read_batch(packed([RawRecord(0, 1, rest)], NONE)))) <= 1
    headers = signed(1) + rest
    record = b"".join((signed(len(KEY)), KEY, signed(len(VALUE)), VALUE, headers))
    assert len(list(read_batch(packed([RawRecord(0, 1, record)], NONE)))) <= 1


def sent_batch(base_offset: int, next_offset: int, landing: int, records: int) -> InFlightBatch:
    return InFlightBatch(1, base_offset, next_offset, landing, records, 0, 0, 0, b"", b"")


def test_a_sync_says_which_records_it_speaks_of_where_some_are_missing() -> None:
    """The batch was read up to 7, and has four records: compaction, or what was put aside, took the others."""
    one = sent_batch(0, 7, 100, 4)._replace(parts=(1, 2, 3, 1))
    (last,) = with_position(syncs(LOG, [one], 0, 9), CommittedPosition(9, "note"))
    assert (last.source, last.target, last.position) == (0, 100, CommittedPosition(9, "note"))
    assert last.span == Span(0, (1, 2, 3, 3))
    assert last.span.records == 4


def test_the_last_sync_of_a_partition_says_the_position() -> None:
    written = [sent_batch(0, 5, 100, 5), sent_batch(6, 9, 105, 3)]
    found = with_position(syncs(LOG, written, 0, 9), POSITION)
    assert found == [
        OffsetSync("orders", 3, 0, 100, None, Span(0, (5, 1))),
        OffsetSync("orders", 3, 6, 105, POSITION, Span(6, (3, 0))),
    ]
    assert with_position([], POSITION) == []


def test_what_follows_on_both_sides_is_one_run_and_what_does_not_is_another() -> None:
    written = [
        sent_batch(3, 5, 100, 2),
        sent_batch(5, 9, 102, 3)._replace(parts=(1, 1, 2, 0)),
        sent_batch(9, 10, 105, 1),
        # As many offsets are skipped on both sides: the distance is the same, and yet something may lie between.
        sent_batch(12, 14, 108, 2),
        sent_batch(14, 20, 110, 1)._replace(parts=(1, 5)),
        sent_batch(20, 21, 111, 1),
    ]
    found = list(syncs(LOG, written, 1, 30, repeats=True))
    assert found == [
        OffsetSync("orders", 3, 3, 100, None, Span(1, (3, 1, 3, 2), True)),
        OffsetSync("orders", 3, 12, 108, None, Span(12, (3, 5), True)),
        OffsetSync("orders", 3, 20, 111, None, Span(20, (1, 9), True)),
    ]


def test_the_first_sync_says_from_where_on_the_source_has_other_records() -> None:
    written = [sent_batch(7, 9, 100, 2), sent_batch(12, 14, 108, 2)]
    found = list(syncs(LOG, written, 6, 14, repeats=True, anew_from=4))
    assert [one.span for one in found] == [Span(4, (2, 3), True, True), Span(12, (2, 0), True)]


def test_what_would_be_too_much_for_one_sync_is_told_by_several(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = [sent_batch(7 * number, 7 * number + 7, 4 * number, 4)._replace(parts=(2, 3, 2, 0)) for number in range(6)]
    (whole,) = syncs(LOG, joined, 0, 42)
    monkeypatch.setattr(module, "_MOST_PARTS", 8)
    several = list(syncs(LOG, joined, 0, 42))
    assert [(one.source, one.target) for one in several] == [(0, 0), (14, 8), (28, 16)]
    spans = [one.span for one in several if one.span is not None]
    assert [span.begin for span in spans] == [0, 14, 28]
    assert whole.span is not None
    assert sum(span.records for span in spans) == whole.span.records == 24
    assert sum(map(sum, (span.parts for span in spans))) == sum(whole.span.parts) == 42


@given(st.lists(SYNCS, max_size=30), st.integers(1, 5), st.integers(200, 2_000))
def test_portions_are_as_large_as_a_topic_takes_and_leave_nothing_out(
    written: list[OffsetSync], most: int, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_BYTES", size)
        found = [list(portion) for portion in portions(written, most)]
    assert [sync for portion in found for sync in portion] == written
    assert all(0 < len(portion) <= most for portion in found)


def test_a_batch_of_many_long_spans_fits_into_what_topics_take() -> None:
    span = Span(0, (1, 1) * 25_000)
    written = [OffsetSync("orders", number, 0, 0, POSITION, span) for number in range(20)]
    sizes = [batch_of(portion, 1_000).size for portion in portions(written, 1_000)]
    assert len(sizes) > 1
    assert max(sizes) < 1_000_000


@given(st.binary(max_size=30))
def test_a_header_that_tells_of_no_records_says_nothing(value: bytes) -> None:
    headers = signed(1) + b"".join(signed(len(one)) + one for one in (b"anabranch-span", value))
    record = b"".join((signed(len(KEY)), KEY, signed(len(VALUE)), VALUE, headers))
    (found,) = read_batch(packed([RawRecord(0, 1, record)], NONE))
    assert (found.source, found.target) == (5, 7)
    assert found.span is None or found.span.records > 0
