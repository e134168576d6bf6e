"""What a channel gets of an answer: as it was read where that can pass, rewritten where not, without a hole between."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import LARGE, Batch
from reconciler.records.read_committed import Gap
from reconciler.replicator.partition import intake
from reconciler.replicator.partition.intake import BatchForm, CannotPass, items
from reconciler.wire import FetchAnswer
from tests.support.records.batches import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    ZSTD,
    Content,
    build,
    build_old,
    compacted,
    damaged,
    marked,
    resealed,
    some,
    thinned,
)
from tests.support.records.library_records import Record, decode

BASE = 100


def answer(*pieces: bytes) -> FetchAnswer:
    return FetchAnswer("orders", 0, 0, 10**9, 10**9, 0, b"".join(pieces))


def records(found: list[Batch | Gap]) -> list[Record]:
    return [record for one in found if isinstance(one, Batch) for record in decode(one.to_bytes())]


def bounds(found: list[Batch | Gap]) -> list[tuple[int, int, bool]]:
    return [
        (one.base_offset, one.next_offset, True) if isinstance(one, Batch) else (one.first, one.next, False)
        for one in found
    ]


def test_what_can_pass_is_what_was_read() -> None:
    pieces = [build(some(3), BASE, LZ4), build(some(40), BASE + 3), build(some(2), BASE + 43, ZSTD)]
    found = list(items(answer(*pieces), BASE, BatchForm(merge=256 * 1024)))
    assert [one.to_bytes()[16:] for one in found if isinstance(one, Batch)] == [piece[16:] for piece in pieces]


def test_holes_come_out_as_gaps_wherever_they_are() -> None:
    pieces = [
        compacted(some(5), {0, 2, 4}, BASE, GZIP),
        build(some(2), BASE + 7),
        marked(build(some(1), BASE + 9), CONTROL),
    ]
    found = list(items(answer(*pieces), BASE, BatchForm()))
    assert bounds(found) == [
        (100, 101, False),
        (101, 102, True),
        (102, 103, False),
        (103, 104, True),
        (104, 105, False),
        (105, 107, False),
        (107, 109, True),
        (109, 110, False),
    ]


def test_a_batch_that_began_before_is_cut() -> None:
    found = list(items(answer(build(some(5), BASE, LZ4)), BASE + 3, BatchForm()))
    assert bounds(found) == [(103, 105, True)]


@pytest.mark.parametrize("codec", [NONE, GZIP, ZSTD])
def test_every_batch_gets_the_codec_that_is_asked_for(codec: int) -> None:
    contents = [Content(1_000 + n, b"key", b"value" * 100, (("name", b"header"),)) for n in range(4)]
    pieces = [build(contents, BASE + 4 * number, of) for number, of in enumerate((NONE, GZIP, LZ4, ZSTD))]
    pieces.append(marked(build(contents, BASE + 16, LZ4), LOG_APPEND_TIME))
    form = BatchForm(codec=codec)
    found: list[Batch | Gap] = [
        form.coded(one) if isinstance(one, Batch) else one for one in items(answer(*pieces), BASE, form)
    ]
    assert [one.attributes for one in found if isinstance(one, Batch)] == [codec] * 5
    assert all(one.is_intact for one in found if isinstance(one, Batch))
    assert [record.offset for record in records(found)] == list(range(BASE, BASE + 20))
    assert {(record.value, record.headers) for record in records(found)} == {(contents[0].value, contents[0].headers)}


def test_a_batch_that_becomes_too_large_by_its_codec_is_divided() -> None:
    contents = [Content(1, None, b"v" * 500) for _ in range(8)]
    found = list(items(answer(build(contents, BASE, ZSTD)), BASE, BatchForm(largest=1_500, codec=NONE)))
    assert [one.record_count for one in found if isinstance(one, Batch)] == [2, 2, 2, 2]


def test_messages_of_old_formats_come_out_as_batches() -> None:
    pieces = [build_old(0, BASE, some(3), GZIP), build_old(1, BASE + 3, some(2)), build(some(1), BASE + 5)]
    found = list(items(answer(*pieces), BASE, BatchForm()))
    assert bounds(found)[0][0] == BASE
    assert [record.offset for record in records(found)] == list(range(BASE, BASE + 6))


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (damaged(build(some(2), BASE + 3)), "AB216"),
        (damaged(build_old(1, BASE + 3)), "AB201"),
        (thinned(build(some(3), BASE + 3), 1), "AB207"),
    ],
)
def test_all_before_what_cannot_pass_comes_out(bad: bytes, code: str) -> None:
    found: list[Batch | Gap] = []
    with pytest.raises(CannotPass) as caught:
        for one in items(answer(build(some(3), BASE), bad, build(some(1), BASE + 9)), BASE, BatchForm()):
            found.append(one)
    assert bounds(found) == [(100, 103, True)]
    assert caught.value.reason.code == code
    assert str(BASE + 3) in caught.value.reason.text


written = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 63), st.sampled_from([NONE, GZIP]), st.booleans()))


@given(written, st.data())
@settings(deadline=None)
def test_every_record_comes_out_once_at_its_offset(
    shapes: list[tuple[int, int, int, bool]], data: st.DataObject
) -> None:
    pieces, offset, expected = [], BASE, []
    for count, gone, codec, stamped in shapes:
        missing = {number for number in range(count) if gone >> number & 1}
        piece = compacted(some(count), missing, offset, codec)
        pieces.append(marked(piece, LOG_APPEND_TIME) if stamped else piece)
        expected += [offset + number for number in range(count) if number not in missing]
        offset += count + data.draw(st.integers(0, 2))
    first = data.draw(st.integers(BASE, offset))
    form = BatchForm(data.draw(st.sampled_from([0, 4_096])), largest=data.draw(st.integers(70, 500)))
    found = list(items(answer(*pieces), first, form))
    assert [record.offset for record in records(found)] == [at for at in expected if at >= first]
    places = bounds(found)
    assert all(before[1] == after[0] for before, after in pairwise(places))
    assert not places or places[0][0] == first


def test_a_refusal_makes_merged_batches_smaller_before_others() -> None:
    form = BatchForm(merge=1_000)
    form = form.smaller(900)
    assert form == BatchForm(merge=450)
    form = form.smaller(600)
    assert form == BatchForm(merge=450, largest=300)
    assert form.smaller(5_000) == form


def test_a_body_that_cannot_be_decompressed_is_left_to_the_target() -> None:
    (one,) = items(answer(resealed(marked(build(some(2), BASE), ZSTD))), BASE, BatchForm(codec=GZIP))
    assert isinstance(one, Batch)
    assert BatchForm(codec=GZIP).coded(one) == one


def test_a_trouble_that_nobody_foresaw_stops_this_partition_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(intake, "sift", broken)
    with pytest.raises(CannotPass) as caught:
        list(items(answer(build(some(1), BASE)), BASE, BatchForm()))
    assert caught.value.reason.code == "AB200"


LARGE_ONE = build([Content(1_000, b"key", b"v" * LARGE)], BASE)


def test_the_checksum_of_what_is_large_and_passes_as_it_is_is_left_to_the_target() -> None:
    (one,) = items(answer(damaged(LARGE_ONE)), BASE, BatchForm(merge=256 * 1024))
    assert isinstance(one, Batch)
    assert not one.is_intact


@pytest.mark.parametrize(
    "form",
    [
        BatchForm(checked=True),
        BatchForm(codec=GZIP),
        BatchForm(largest=100, codec=LZ4),
        BatchForm(without=frozenset({BASE})),
    ],
)
def test_whatever_does_not_pass_as_it_is_or_was_refused_is_checked_here(form: BatchForm) -> None:
    with pytest.raises(CannotPass, match="its checksum does not fit"):
        list(items(answer(damaged(LARGE_ONE)), BASE, form))


def test_a_large_batch_that_is_cut_is_checked_here() -> None:
    piece = damaged(build([*some(2), Content(1_000, b"key", b"v" * LARGE)], BASE))
    with pytest.raises(CannotPass, match="its checksum does not fit"):
        list(items(answer(piece), BASE + 1, BatchForm()))
