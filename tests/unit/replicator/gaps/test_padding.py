"""Padding's batches, read by kafka-python."""

from __future__ import annotations

import pytest
import zstandard

from reconciler.records.split import split
from reconciler.replicator.gaps.padding import _batch, _is_ours, empty_records
from reconciler.replicator.partition.place import LogEnd
from tests.support.records.batches import ZSTD, Content, build, decode

PRODUCER = LogEnd(0, 900, 3, 0)


@pytest.mark.parametrize("count", [1, 2, 64, 65, 8_192, 8_193, 20_000])
def test_a_batch_is_as_many_empty_records(count: int) -> None:
    (found,) = decode(_batch(0, count, PRODUCER))
    assert found.crc_is_valid
    assert found.offset_deltas == tuple(range(count))
    assert set(found.contents) == {Content(0, b"", None)}
    assert (found.first_timestamp, found.max_timestamp, found.attributes & ~7) == (0, 0, 0)


@pytest.mark.parametrize(
    ("offset", "sequence"), [(0, 0), (5, 5), (2**31 - 1, 2**31 - 1), (2**31, 0), (10**10, 1_410_065_408)]
)
def test_its_sequence_is_its_offset(offset: int, sequence: int) -> None:
    (found,) = decode(_batch(offset, 3, PRODUCER))
    assert found.producer == (900, 3, sequence)


def test_it_is_known_again_and_nothing_else_is_taken_for_it() -> None:
    (ours,) = split(_batch(0, 300, PRODUCER))
    assert _is_ours(ours)
    like_ours = [Content(0, b"", None)] * 299
    for other in (Content(0, b"k", None), Content(0, b"", b""), Content(5, b"", None)):
        (batch,) = split(build([*like_ours, other], codec=ZSTD))
        assert not _is_ours(batch)
    # Packed by another release of the library it is still ours.
    repacked = ours._replace(body=zstandard.ZstdCompressor(level=19).compress(empty_records(300)))
    assert repacked.body != ours.body
    assert _is_ours(repacked)
