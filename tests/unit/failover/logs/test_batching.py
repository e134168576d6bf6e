"""Thousands of partitions are asked about side by side: one after the other they would take an hour."""

from __future__ import annotations

import pytest

from reconciler.failover.logs.batching import in_portions
from reconciler.wire import Loop


def asked(count: int, together: int, failing: frozenset[int] = frozenset()) -> list[int]:
    """Ask about so many items, each of which is answered when so many of its portion have been asked about."""
    loop, begun, answered = Loop(), list[int](), list[int]()

    async def ask(item: int) -> None:
        begun.append(item)
        portion = item // together
        while sum(one // together == portion for one in begun) < min(together, count - portion * together):
            await loop.sleep(0.001)
        answered.append(item)
        if item in failing:
            raise ValueError(item)

    async def ask_all() -> None:
        await in_portions(loop, range(count), ask)

    try:
        loop.run(ask_all)
    finally:
        loop.close()
    return answered


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1200])
def test_all_of_a_portion_are_asked_about_at_the_same_time(count: int) -> None:
    assert sorted(asked(count, 500)) == list(range(count))


def test_what_one_has_raised_is_raised() -> None:
    with pytest.raises(ValueError, match=r"^3$"):
        asked(10, 10, frozenset({3, 7}))
