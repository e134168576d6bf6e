"""The records that a race is run over."""

from __future__ import annotations

import json

import pytest

from bench.load import SMALLEST, Load, orders


@pytest.mark.parametrize("size", [SMALLEST, 250, 1000])
def test_an_order_has_the_size_asked_for_and_is_json(size: int) -> None:
    pool = orders(size, seed=1)
    assert {len(key) + len(value) for key, value in pool} == {size}
    assert {"customer", "currency", "amount", "status", "reference"} == json.loads(pool[0][1]).keys()


def test_orders_differ_from_each_other_and_between_producers() -> None:
    first, second = orders(250, seed=0), orders(250, seed=1)
    assert len(set(first)) == len(first)
    assert not set(first) & set(second)


def test_every_partition_meets_every_order() -> None:
    count = len(orders(SMALLEST, seed=0))
    for partitions in (2, 3, 8, 12):
        assert {number % count for number in range(1, count * partitions + 1, partitions)} == set(range(count))


def test_a_record_too_small_for_an_order_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 150 bytes, found 20"):
        Load(10, size=20)
