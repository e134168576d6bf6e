"""A queue of batches and gaps: what stands in it is without holes, and what is forgotten is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.records.batch import Batch
from reconciler.records.read_committed import Gap
from reconciler.replicator.partition.send_queue import Item, Queue
from tests.support.records.batches import Content, batch

# Sizes of batches in bytes, and of gaps in offsets, negative.
shapes = st.lists(st.integers(-5, -1) | st.integers(1, 3_000), min_size=1, max_size=20)


def filled(shape: list[int]) -> tuple[Queue, list[int]]:
    """Return a queue and the offset behind each thing that was put into it."""
    queue, at, ends = Queue(), 0, []
    for size in shape:
        item: Item = Gap(at, at - size) if size < 0 else batch(Content(1_000, None, b"x" * size), base_offset=at)
        at = queue.push(item)
        ends.append(at)
    return queue, ends


def ends_of(queue: Queue) -> list[int]:
    return [item.next_offset if isinstance(item, Batch) else item.next for item in queue.items]


def test_adjacent_gaps_are_one() -> None:
    queue = Queue()
    assert [queue.push(gap) for gap in (Gap(0, 3), Gap(3, 4), Gap(4, 9))] == [3, 4, 9]
    assert list(queue.items) == [Gap(0, 9)]
    queue.pass_gap(5)
    assert queue.first == Gap(5, 9)
    queue.pass_gap(9)
    assert not list(queue.items)


@given(shapes)
def test_its_bytes_are_those_of_its_batches(shape: list[int]) -> None:
    queue, ends = filled(shape)
    assert ends_of(queue)[-1] == ends[-1]
    while queue.items:
        assert queue.bytes == sum(item.size for item in queue.items if isinstance(item, Batch))
        if isinstance(gap := queue.first, Gap):
            queue.pass_gap(gap.next)
        else:
            queue.take(0, 0)
    assert queue.bytes == 0


@given(shapes, st.integers(0, 10_000))
def test_what_is_forgotten_is_read_again_from_where_it_began(shape: list[int], limit: int) -> None:
    queue, _ = filled(shape)
    before = list(queue.items)
    goes_on_at = queue.shorten(limit)
    assert list(queue.items) == before[: len(queue.items)]
    assert queue.bytes == sum(item.size for item in queue.items if isinstance(item, Batch))
    assert queue.bytes <= limit or len(queue.items) <= 2
    assert goes_on_at == (None if len(queue.items) == len(before) else ends_of(queue)[-1])
    if len(queue.items) < len(before) and isinstance(lost := before[len(queue.items)], Batch):
        assert queue.bytes + lost.size > limit
