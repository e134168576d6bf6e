"""Messages of the formats v0 and v1, as brokers before 0.11 kept them, read as batches of today."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import Batch, UnreadableBatch
from reconciler.records.one_record_batches import batches
from reconciler.records.split import split
from tests.support.records.batches import GZIP, LZ4, NONE, SNAPPY, Content, build, build_old, some
from tests.support.records.library_records import Record, decode

pytestmark = pytest.mark.slow

NO_TIME = -1
# Written by hand from the protocol's description: offset 7, size, checksum, magic, attributes, [time], key, value.
V0 = bytes.fromhex("0000000000000007 00000016 5b49a2bd 00 00 00000003 6b6579 00000005 76616c7565".replace(" ", ""))
V1 = bytes.fromhex(
    "0000000000000008 0000001e 3f2a3e65 01 00 00000166e7e1f800 00000003 6b6579 00000005 76616c7565".replace(" ", "")
)

bodies = st.none() | st.binary(max_size=200)
contents = st.lists(st.builds(Content, st.integers(0, 2**42), bodies, bodies), min_size=1, max_size=6)


def sealed(data: bytes) -> bytes:
    """Return a message with the checksum that fits it."""
    return data[:12] + zlib.crc32(data[16:]).to_bytes(4, "big") + data[16:]


def records(found: list[Batch]) -> list[Record]:
    return [record for one in found for record in decode(one.to_bytes())]


@pytest.mark.parametrize(("data", "offset", "time"), [(V0, 7, NO_TIME), (V1, 8, 1_541_488_637_952)])
def test_bytes_from_the_description_are_read(data: bytes, offset: int, time: int) -> None:
    (found,) = split(sealed(data))
    assert records([found]) == [Record(offset, time, b"key", b"value", ())]
    assert (found.is_intact, found.attributes, found.max_timestamp) == (True, 0, time)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4])
@given(found=contents, base=st.integers(0, 2**40))
@settings(deadline=None)
def test_every_message_comes_out_with_its_offset_and_time(
    magic: int, codec: int, found: list[Content], base: int
) -> None:
    data = build_old(magic, base, found, codec)
    expected = [
        Record(base + number, one.timestamp if magic else NO_TIME, one.key, one.value, ())
        for number, one in enumerate(found)
    ]
    for read in (split(data), batches(data, 4_096)):
        pieces = list(read)
        assert records(pieces) == expected
        assert all(one.is_intact and one.record_count == one.last_offset_delta + 1 for one in pieces)
        assert {one.attributes for one in pieces} <= {NONE, codec}


@pytest.mark.parametrize("magic", [0, 1])
def test_old_and_new_stand_in_one_log(magic: int) -> None:
    data = build(some(1), 4) + build_old(magic, 5) + build_old(magic, 6) + build(some(2), 7)
    assert [one.base_offset for one in split(data)] == [4, 5, 6, 7]
    assert [one.base_offset for one in split(data[:-1])] == [4, 5, 6]


def test_a_message_shorter_than_todays_header_is_read() -> None:
    data = sealed(struct.pack(">qiIbbii", 3, 14, 0, 0, 0, -1, -1))
    (found,) = split(data)
    assert records([found]) == [Record(3, NO_TIME, None, None, ())]
    assert list(split(data[:-1])) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_a_damaged_message_is_told_where_it_is(magic: int) -> None:
    data = bytearray(build_old(magic, 5))
    data[-1] ^= 1
    with pytest.raises(UnreadableBatch, match=f"offset 5 has message format v{magic}: its checksum does not fit"):
        list(split(bytes(data)))


def test_a_message_that_cannot_be_decoded_is_told_where_it_is() -> None:
    data = bytearray(build_old(1, 0, [Content(1_000, None, b"v" * 500)], GZIP))
    data[-20:] = b"\x00" * 20
    with pytest.raises(UnreadableBatch, match="offset 0 has message format v1: not readable as gzip"):
        list(split(sealed(bytes(data))))


@pytest.mark.parametrize("magic", [3, 127])
def test_a_format_of_the_future_is_refused(magic: int) -> None:
    data = bytearray(build(some(1), 5))
    data[16] = magic
    with pytest.raises(UnreadableBatch, match=f"offset 5 has message format v{magic}: this format is not known"):
        list(split(bytes(data)))


@given(st.binary(max_size=60), st.sampled_from([0, 1]), st.integers(-(2**31), 2**31 - 1) | st.integers(0, 60))
@settings(deadline=None)
def test_nonsense_is_refused_or_ends(noise: bytes, magic: int, size: int) -> None:
    data = build(some(1)) + struct.pack(">qiIb", 1, size, 0, magic) + noise
    try:
        assert len(list(split(data))) == 1
    except UnreadableBatch as error:
        assert error.offset == 1


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_what_was_compressed_stays_so(magic: int, codec: int) -> None:
    (found,) = split(build_old(magic, 5, [Content(1_000, b"key", b"value" * 100)] * 3, codec))
    assert (found.attributes, found.record_count) == (codec, 3)
    assert found.size < 300
