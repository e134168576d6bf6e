"""The five codecs against those of kafka-python, both ways, and bytes that are none of theirs."""

from __future__ import annotations

import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as library

from reconciler.records.codecs import COMPRESSIONS, GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, Codec, pack, unpack
from tests.support.records.batches import CODECS

pytestmark = pytest.mark.slow

ENCODERS = {
    NONE: bytes,
    GZIP: library.gzip_encode,
    SNAPPY: library.snappy_encode,
    LZ4: library.lz4_encode,
    ZSTD: library.zstd_encode,
}
DECODERS = {
    NONE: bytes,
    GZIP: library.gzip_decode,
    SNAPPY: library.snappy_decode,
    LZ4: library.lz4_decode,
    ZSTD: library.zstd_decode,
}
# kafka-python cannot read an empty body in snappy's frame.
data = st.binary(min_size=1, max_size=2_000) | st.binary(min_size=1, max_size=20).map(lambda piece: piece * 5_000)


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@given(plain=data)
@settings(deadline=None)
def test_what_is_packed_is_unpacked_by_both(codec: int, plain: bytes) -> None:
    assert unpack(codec, pack(codec, plain)) == plain
    assert DECODERS[codec](pack(codec, plain)) == plain
    assert unpack(codec, ENCODERS[codec](plain)) == plain


def test_a_declared_codec_is_kafkas_number() -> None:
    assert [name for name, codec in COMPRESSIONS.items() if codec is None] == ["source"]
    assert {name: int(codec) for name, codec in COMPRESSIONS.items() if codec is not None} == dict(
        zip(NAMES, range(5), strict=True)
    )


@pytest.mark.parametrize(("number", "quick", "small"), [(GZIP, 1, 9), (LZ4, 0, 12), (ZSTD, 1, 19)])
def test_a_level_changes_the_size_and_nothing_else(number: int, quick: int, small: int) -> None:
    plain = b"".join(b"%d:" % (value * value) for value in range(100_000))
    sizes = [len(pack(Codec(number, level), plain)) for level in (quick, small)]
    assert sizes[1] < sizes[0] < len(plain)
    for level in (quick, small):
        assert unpack(number, pack(Codec(number, level), plain)) == DECODERS[number](pack(Codec(number, level), plain))
        assert unpack(number, pack(Codec(number, level), plain)) == plain


@pytest.mark.parametrize("codec", CODECS[1:], ids=NAMES[1:])
def test_megabytes_come_back(codec: int) -> None:
    plain = b"".join(b"%d:" % number for number in range(1_000_000))
    assert unpack(codec, pack(codec, plain)) == plain


def test_snappy_without_a_frame_is_read() -> None:
    assert unpack(SNAPPY, snappy.compress(b"value" * 50)) == b"value" * 50


def test_a_zstd_frame_without_its_length_is_read() -> None:
    """As brokers and Java clients write it."""
    maker = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    body = maker.compress(b"value" * 500_000) + maker.flush()
    assert unpack(ZSTD, body) == b"value" * 500_000


@pytest.mark.parametrize("codec", CODECS[1:], ids=NAMES[1:])
@given(noise=st.binary(min_size=1, max_size=60))
@settings(deadline=None)
def test_bytes_that_are_none_are_an_error(codec: int, noise: bytes) -> None:
    try:
        found = unpack(codec, b"\x00\x01" + noise)
    except ValueError as error:
        assert NAMES[codec] in str(error)
    else:
        # Snappy's blocks have no mark.
        assert codec == SNAPPY
        assert isinstance(found, bytes)


@pytest.mark.parametrize("codec", CODECS[1:], ids=NAMES[1:])
def test_half_a_body_is_an_error(codec: int) -> None:
    body = pack(codec, bytes(range(256)) * 4_000)
    with pytest.raises(ValueError, match=NAMES[codec]):
        unpack(codec, body[: len(body) // 2])


def test_a_codec_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ValueError, match="not readable as codec 7"):
        unpack(7, b"body")
