"""Whatever bytes a batch has, reading, merging and rewriting it ends with an error of ours, in little memory."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import Batch, UnreadableBatch
from reconciler.records.codecs import pack
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.records.merge import take
from reconciler.records.one_record_batches import batches, one_plain
from reconciler.records.record import parts
from reconciler.records.renumber import renumbered
from reconciler.records.rewrite import first_at, raw_records
from reconciler.records.split import split
from reconciler.records.varint import signed
from reconciler.replicator.partition.intake import BatchForm, CannotPass, items
from reconciler.replicator.partition.offset_syncs import read_batch
from reconciler.replicator.task.dead_letters import with_headers
from tests.support.records.batches import (
    CODECS,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    Content,
    build,
    build_old,
    marked,
    resealed,
    some,
    thinned,
)
from tests.support.replicator.channels import fetched

pytestmark = pytest.mark.slow

FORMS = (
    BatchForm(),
    BatchForm(merge=4_096),
    BatchForm(codec=ZSTD, largest=50),
    BatchForm(codec=NONE, largest=10**6),
    BatchForm(codec=GZIP),
    BatchForm(dense=True),
    BatchForm(dense=True, codec=LZ4, largest=60),
    BatchForm(without=frozenset({1})),
    BatchForm(largest=80, checked=True),
)
# Where the header has its count of records, and its last offset delta.
_COUNT_AT, _DELTA_AT, _BODY_AT = 57, 23, 61
_HUGE = 2**31 - 1


@contextmanager
def in_little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


@st.composite
def mutated(draw: st.DrawFn, whole: bytes, begin: int = 0) -> bytes:
    """Draw a batch of which some bytes behind `begin` are others, missing or more."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(begin, len(data) - 1))
        match draw(st.sampled_from(["other", "gone", "more"])):
            case "other":
                data[at] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
            case "gone" if at + 6 < len(data) > begin + 8:
                del data[at : at + draw(st.integers(1, 6))]
            case _:
                data[at:at] = draw(st.sampled_from([b"\xff" * 12, b"\xff\xff\xff\xff\x0f"]) | st.binary(max_size=6))
    return bytes(data)


WHOLE = [
    *(build(some(4), 0, codec) for codec in CODECS),
    *(thinned(build(some(5), 0, codec), 2) for codec in (NONE, LZ4)),
    marked(build(some(3), 0, ZSTD), LOG_APPEND_TIME),
    build([Content(5, None, None, (("a", b"b"), ("c", None)))], 0),
]
OLD = [build_old(magic, 0, some(3), codec) for magic in (0, 1) for codec in (NONE, GZIP, SNAPPY, LZ4)]


def everything(data: bytes) -> None:
    """Lead bytes through all that reads batches."""
    for form in FORMS:
        try:
            found = list(items(fetched(data), 0, form))
        except CannotPass as error:
            # AB200 is for what nobody foresaw.
            assert error.reason.code in ("AB201", "AB207", "AB216", "AB235"), error.reason
            continue
        whole = deque(one for one in found if isinstance(one, Batch))
        while whole:
            with suppress(CannotPass):
                form.coded(take(whole, 4_096, 4_096).batch)
    for read in (split(data), batches(data, 4_096)):
        with suppress(UnreadableBatch):
            for one in read:
                for look in (lambda one=one: raw_records(one), lambda one=one: list(read_batch(one))):
                    with suppress(ValueError):
                        look()
                with suppress(UnreadableBatch):
                    first_at(one, 1)
    one_plain(data, 0, len(data), 4_096)


@given(st.sampled_from(WHOLE).flatmap(mutated), st.booleans())
@settings(deadline=None, max_examples=400)
def test_a_batch_with_other_bytes_is_read_or_an_error_of_ours(data: bytes, is_sealed: bool) -> None:
    everything(resealed(data) if is_sealed and len(data) > _BODY_AT and data[16] == 2 else data)


@given(st.sampled_from(WHOLE).flatmap(lambda whole: mutated(whole, _BODY_AT)))
@settings(deadline=None, max_examples=400)
def test_records_with_other_bytes_under_a_checksum_that_fits_are(data: bytes) -> None:
    everything(resealed(data))


@given(st.sampled_from(OLD).flatmap(lambda whole: mutated(whole, 16)))
@settings(deadline=None, max_examples=400)
def test_messages_of_old_formats_are(data: bytes) -> None:
    sealed = data[:8] + struct.pack(">iI", len(data) - 12, zlib.crc32(data[16:])) + data[16:]
    everything(sealed)


@given(st.sampled_from([GZIP, SNAPPY, LZ4]), st.sampled_from([0, 1]), st.binary(max_size=80))
@settings(deadline=None, max_examples=300)
def test_messages_of_old_formats_that_hold_anything_are(codec: int, magic: int, inside: bytes) -> None:
    value = bytes(pack(codec, inside))
    times = struct.pack(">q", 5) if magic else b""
    behind = struct.pack(">bb", magic, codec) + times + struct.pack(">ii", -1, len(value)) + value
    everything(struct.pack(">qiI", 0, 4 + len(behind), zlib.crc32(behind)) + behind)


@given(st.sampled_from(CODECS), st.binary(max_size=60), st.integers(-(2**31), 2**31 - 1), st.integers(0, 9))
@settings(deadline=None, max_examples=300)
def test_bodies_that_are_anything_are(codec: int, plain: bytes, count: int, delta: int) -> None:
    data = bytearray(build(some(1), 0, NONE)[:_BODY_AT])
    data[22] = codec
    data[_COUNT_AT:_BODY_AT] = struct.pack(">i", count)
    data[_DELTA_AT : _DELTA_AT + 4] = struct.pack(">i", delta)
    everything(resealed(data + pack(codec, plain)))


# --- counts and lengths that lie --------------------------------------------------------------------------------------


def lying(count: int = 1, delta: int = 0, record: bytes | None = None, codec: int = NONE) -> bytes:
    """Return a batch whose header, or whose only record, says more than there is; its checksum fits."""
    data = bytearray(build(some(1), 0, NONE))
    body = bytes(data[_BODY_AT:]) if record is None else record
    data[22] |= codec
    data[_COUNT_AT:_BODY_AT] = struct.pack(">i", count)
    data[_DELTA_AT : _DELTA_AT + 4] = struct.pack(">i", delta)
    return resealed(data[:_BODY_AT] + pack(codec, body))


def with_length(body: bytes) -> bytes:
    return signed(len(body)) + body


LIES: dict[str, Callable[[], bytes]] = {
    "records": lambda: lying(_HUGE, _HUGE - 1),
    "records, and holes": lambda: lying(_HUGE - 5, _HUGE - 1),
    "no records": lambda: lying(0, 5),
    "negative records": lambda: lying(-1, 5),
    "records, compressed": lambda: lying(_HUGE, _HUGE - 1, codec=ZSTD),
    "a record's length": lambda: lying(2, 3, signed(2**31) + b"\0\0\0"),
    "a negative length": lambda: lying(2, 3, signed(-5) + b"\0\0\0" * 9),
    "an endless length": lambda: lying(2, 3, b"\xff" * 500),
    "an endless delta": lambda: lying(2, 3, b"\x40\0" + b"\xff" * 500),
    "a key's length": lambda: lying(2, 3, with_length(b"\0\0\0" + signed(2**40) + b"key")),
    "headers": lambda: lying(2, 3, with_length(b"\0\0\0" + signed(-1) + signed(-1) + signed(2**62))),
}


@pytest.mark.parametrize("lie", LIES)
def test_counts_and_lengths_that_lie_end_early(lie: str) -> None:
    data = LIES[lie]()
    with in_little_memory():
        everything(data)


@pytest.mark.parametrize("codec", [NONE, ZSTD])
@pytest.mark.parametrize(
    "form", [BatchForm(dense=True, largest=10), BatchForm(largest=10), BatchForm(codec=GZIP, largest=10)]
)
def test_a_count_of_records_that_lies_is_told(codec: int, form: BatchForm) -> None:
    with pytest.raises(CannotPass) as told, in_little_memory():
        list(items(fetched(lying(_HUGE, _HUGE - 1, codec=codec)), 0, form))
    assert told.value.reason.code == "AB207"
    assert "do not match its header" in told.value.reason.text


@given(st.binary(max_size=60))
def test_a_record_that_is_anything_is_taken_apart_or_an_error(rest: bytes) -> None:
    with suppress(ValueError):
        parts(rest)
    with suppress(ValueError):
        with_headers(rest, {"a": "b"})
    with suppress(ValueError, IndexError):
        renumbered(rest, 3, 9)


@pytest.mark.parametrize("rest", [signed(2**40), signed(-1) * 2 + signed(2**62), b"\xff" * 4_000])
def test_a_record_that_lies_is_an_error(rest: bytes) -> None:
    with in_little_memory(), pytest.raises(ValueError, match=r"ends within|ten bytes"):
        parts(rest)


def test_what_holds_too_much_is_a_kind_of_what_cannot_be_read() -> None:
    assert issubclass(DecompressedTooLarge, ValueError)
