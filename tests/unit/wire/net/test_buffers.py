"""Buffers of frames are used again when nobody looks at them, and are never more than they may be."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.wire.net.buffers import Buffers

MB = 2**20
MOST = 32 * MB


def pages(view: memoryview) -> int:
    """Return which buffer a view looks at."""
    return id(view.obj)


def test_a_buffer_is_used_again_when_nobody_looks_at_it() -> None:
    buffers = Buffers()
    first = buffers.room(4 * MB)
    assert first is not None
    seen, part = pages(first), first[100:200].toreadonly()
    del first
    second = buffers.room(4 * MB)
    assert second is not None
    assert pages(second) != seen
    del part
    third = buffers.room(3 * MB)
    assert third is not None
    assert (pages(third), len(third)) == (seen, 3 * MB)


def test_there_is_no_room_while_all_are_looked_at() -> None:
    buffers = Buffers()
    held = [buffers.room(4 * MB) for _ in range(9)]
    assert [one is None for one in held] == [False] * 8 + [True]
    held.pop(3)
    assert buffers.room(4 * MB) is not None


def test_small_ones_make_room_for_a_large_one() -> None:
    buffers = Buffers()
    held = [buffers.room(4 * MB) for _ in range(8)]
    assert buffers.room(9 * MB) is None
    del held[2:5]
    assert buffers.room(12 * MB) is not None
    assert buffers.room(MOST + 1) is None


@given(st.lists(st.tuples(st.integers(1, 9 * MB), st.integers(0, 12)), max_size=40))
@settings(deadline=None, max_examples=30)
def test_nobody_is_given_what_another_looks_at(asked: list[tuple[int, int]]) -> None:
    buffers = Buffers()
    held: list[memoryview] = []
    for size, left in asked:
        room = buffers.room(size)
        if room is not None:
            assert len(room) == size
            assert pages(room) not in {pages(one) for one in held}
            held.append(room[size // 2 :].toreadonly())
        assert sum(memoryview(one.obj).nbytes for one in held) <= MOST
        del room, held[left:]
