"""Runs of one-record batches in lz4, which are decompressed together: the same records, and nothing hidden by it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import lz4.frame
import pytest

from reconciler.records.batch import HEADER_SIZE
from reconciler.records.one_record_batches import batches
from reconciler.records.split import split
from tests.support.records.batches import LZ4, Content, build, resealed
from tests.support.records.read_batches import records, sizes

pytestmark = pytest.mark.slow

LIMIT = 256 * 1024
LONG = Content(1_000, None, b"value" * 100)


@pytest.mark.parametrize(
    "options",
    [
        {"store_size": False},
        {"store_size": True},
        {"store_size": False, "content_checksum": True},
        {"store_size": False, "block_checksum": True},
        {"store_size": False, "block_size": lz4.frame.BLOCKSIZE_MAX4MB},
        {"store_size": False, "block_linked": True},
        {"store_size": False, "compression_level": 9},
    ],
)
@pytest.mark.parametrize("value", [b"", b"x", bytes(100), bytes(8_000), Random(1).randbytes(100), b"ab" * 4_000])
def test_lz4_frames_of_all_producers_are_read(options: dict[str, Any], value: bytes) -> None:
    content = [Content(1_000, b"key", value)]
    pieces = []
    for offset in range(3):
        one = next(split(build(content, offset)))
        body = lz4.frame.compress(bytes(one.body), **({"block_linked": False} | options))
        pieces.append(one._replace(attributes=LZ4, body=body, crc=-1).sealed().to_bytes())
    # Some that take more space than is kept, and some that the codec makes larger.
    found = list(batches(b"".join(pieces), LIMIT))
    assert records(found) == records(list(split(b"".join(pieces))))
    assert sizes(found) == [3]


def in_lz4(contents: Iterable[Content], base: int = 0) -> list[bytes]:
    """Return a batch for each record, as a producer writes it without `linger` in lz4."""
    found = []
    for offset, content in enumerate(contents, base):
        one = next(split(build([content], offset)))
        body = lz4.frame.compress(bytes(one.body), block_linked=False, store_size=False)
        found.append(one._replace(attributes=LZ4, body=body, crc=-1).sealed().to_bytes())
    return found


def test_many_lz4_frames_are_read_as_one() -> None:
    dice = Random(2)
    times = [1_000, 1_000, 900, 1_000 + 5_000, *(1_000 + number // 3 for number in range(600))]
    contents = [Content(time, b"key", dice.randbytes(dice.randrange(400))) for time in times]
    pieces = in_lz4(contents, 2**40)
    (one,) = batches(b"".join(pieces), LIMIT)
    assert (one.record_count, one.base_offset, one.max_timestamp, one.attributes) == (604, 2**40, 6_000, LZ4)
    assert records([one]) == records(list(split(b"".join(pieces))))
    assert one.is_intact


@pytest.mark.parametrize("odd", [0, 1, 20, 21, 399])
@pytest.mark.parametrize("value", [bytes(30_000), Random(3).randbytes(9_000)], ids=["expands", "long"])
def test_an_lz4_frame_of_another_size_among_many_changes_no_record(odd: int, value: bytes) -> None:
    contents = [Content(1_000, b"key", b"value" * 40)] * 400
    contents[odd] = Content(1_000, b"key", value)
    whole = b"".join(in_lz4(contents))
    found = list(batches(whole, LIMIT))
    assert records(found) == records(list(split(whole)))
    assert all(one.is_intact for one in found)
    assert len(found) <= 5


def test_lz4_frames_that_expand_are_merged_up_to_what_is_quickly_compressed() -> None:
    whole = b"".join(in_lz4([Content(1_000, None, bytes(60_000))] * 100))
    found = list(batches(whole, LIMIT))
    assert records(found) == records(list(split(whole)))
    assert max(sizes(found)) * 60_000 <= 2**20


@pytest.mark.parametrize("blocks", [[(0, 40), (40, None)], [(0, 3), (3, 3 + 40), (43, None)]])
def test_a_frame_of_several_blocks_is_read(blocks: list[tuple[int, int | None]]) -> None:
    pieces = in_lz4([LONG] * 5)
    plain = bytes(next(split(build([LONG], 2))).body)
    frames = [lz4.frame.compress(plain[a:b], block_linked=False, store_size=False) for a, b in blocks]
    body = frames[0][:7] + b"".join(frame[7:-4] for frame in frames) + frames[0][-4:]
    pieces[2] = next(split(pieces[2]))._replace(body=body, crc=-1).sealed().to_bytes()
    found = list(batches(b"".join(pieces), LIMIT))
    assert records(found) == records(list(split(b"".join(pieces))))


@pytest.mark.parametrize("moved", [-1, 1])
def test_a_record_that_reaches_into_the_next_batch_is_no_record(moved: int) -> None:
    """Its frame holds fewer bytes than its length says, or more; the next one's are not taken for it."""
    pieces = in_lz4([LONG] * 4)
    plain = bytes(next(split(build([LONG], 1))).body)
    plain = plain[:-1] if moved < 0 else plain + b"x"
    body = lz4.frame.compress(plain, block_linked=False, store_size=False)
    pieces[1] = next(split(pieces[1]))._replace(body=body, crc=-1).sealed().to_bytes()
    found = list(batches(b"".join(pieces), LIMIT))
    assert pieces[1] in [one.to_bytes() for one in found]


@pytest.mark.parametrize("place", [0, 4, 5, 6, 7, 8, 10, -1, -4])
def test_a_damaged_lz4_frame_is_left_to_the_target(place: int) -> None:
    first, second, third, fourth = (build([LONG], offset, LZ4) for offset in range(4))
    body = bytearray(second[HEADER_SIZE:])
    body[place] ^= 0x55
    strange = resealed(second[:HEADER_SIZE] + bytes(body))
    found = list(batches(first + strange + third + fourth, LIMIT))
    assert sizes(found) == [1, 1, 2]
    assert found[1].to_bytes() == strange


def test_an_empty_lz4_frame_is_left_to_the_target() -> None:
    first, second, third, fourth = (build([LONG], offset, LZ4) for offset in range(4))
    for body in (b"", bytes.fromhex("04224d1860408200000000"), lz4.frame.compress(b"", block_linked=False)):
        strange = resealed(second[:HEADER_SIZE] + body)
        found = list(batches(first + strange + third + fourth, LIMIT))
        assert sizes(found) == [1, 1, 2]
        assert found[1].to_bytes() == strange
