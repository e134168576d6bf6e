"""What a target refuses is sent again in less, whatever is merged, divided or compressed.

Only where a batch may have been merged it may come once more: what it was merged of is tried first.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.records.batch import Batch
from reconciler.records.split import split
from reconciler.replicator.partition.intake import BatchForm, _passing
from reconciler.replicator.partition.send_queue import Queue
from tests.support.records.batches import CODECS, NONE, ZSTD, Content, build

pytestmark = pytest.mark.slow

MERGE = 256 * 1024


def batches(sizes: list[list[int]], codec: int, spread: int) -> list[Batch]:
    """Return batches that follow each other, with records of so many bytes."""
    found, base = [], 0
    for group in sizes:
        contents = [
            # Values that do not become much less when they are compressed.
            Content(1_000 + number * spread, None, bytes((number * 7 + at * 131) % 251 for at in range(size)))
            for number, size in enumerate(group)
        ]
        (batch,) = split(build(contents, base, codec))
        found.append(batch)
        base += len(group)
    return found


def tried(source: list[Batch], form: BatchForm, small: int) -> Iterator[Batch]:
    """Yield what is sent first, again and again, as the target refuses each try of several records."""
    while True:
        queue = Queue()
        for batch in source:
            for one in _passing(batch, 0, form):
                queue.push(one)
        first = form.coded(queue.take(form.merge, small)[0])
        yield first
        if first.record_count == 1:
            return
        form = form.smaller(first.size)


groups = st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=40), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    groups,
    st.sampled_from(CODECS),
    st.none() | st.sampled_from(CODECS),
    st.sampled_from([0, 16, 640, 4_096, 10**6]),
    st.sampled_from([0, 300, 4_000, MERGE]),
    st.sampled_from([0, 1, 5_000]),
)
def test_tries_become_smaller_until_one_record_is_left(
    sizes: list[list[int]], codec: int, wanted: int | None, small: int, merge: int, spread: int
) -> None:
    source = batches(sizes, codec, spread)
    said: list[tuple[int, int]] = []
    for one in tried(source, BatchForm(merge, codec=wanted), small):
        assert one.base_offset == 0
        said.append((one.record_count, one.size))
        assert said[-1] <= min(said)
        assert said.count(said[-1]) <= 2
        assert len(said) < 60


@pytest.mark.parametrize("small", [0, 300, 640, 1_000, 4_096, 100_000])
@pytest.mark.parametrize("codec", [NONE, ZSTD])
@pytest.mark.parametrize("count", [100, 200, 333, 1_000])
def test_a_long_line_does_not_put_together_what_was_divided(small: int, codec: int, count: int) -> None:
    """Records of a few bytes, as a table's keys are: their deltas grow when pieces are put together."""
    source = list(split(build([Content(1_700_000_000_000 + n, None, b"v%d" % n) for n in range(count)], 0, codec)))
    counts = []
    for one in tried(source, BatchForm(MERGE), small):
        counts.append(one.record_count)
        assert len(counts) < 30, counts
    assert counts[-1] == 1
    assert counts == sorted(counts, reverse=True)
