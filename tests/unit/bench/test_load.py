"""The records that a race is run over."""

from __future__ import annotations

import json

import pytest

from bench.workload.load import SMALLEST, Load, oddly, orders


@pytest.mark.parametrize("size", [SMALLEST, 100, 149, 150, 250, 1000])
def test_an_order_has_the_size_asked_for_and_is_json(size: int) -> None:
    pool = orders(size, seed=1)
    assert {len(key) + len(value) for key, value in pool} == {size}
    short, whole = {"amount", "reference"}, {"customer", "currency", "amount", "status", "reference"}
    assert json.loads(pool[0][1]).keys() == (short if size < 150 else whole)


def test_orders_differ_from_each_other_and_between_producers() -> None:
    first, second = orders(250, seed=0), orders(250, seed=1)
    assert len(set(first)) == len(first)
    assert not set(first) & set(second)


def test_every_partition_meets_every_order() -> None:
    count = len(orders(SMALLEST, seed=0))
    for partitions in (2, 3, 8, 12):
        assert {number % count for number in range(1, count * partitions + 1, partitions)} == set(range(count))


def test_a_record_too_small_for_an_order_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 80 bytes, found 20"):
        Load(10, size=20)


def test_records_that_are_planted_are_not_odd() -> None:
    with pytest.raises(ValueError, match="are planted, each with key and value"):
        Load(10, alone=True, odd=True)


def test_odd_records_lack_a_key_or_a_value_or_have_one_header_name_twice() -> None:
    made = [oddly(number, b"k", b"v") for number in range(14)]
    assert [key for key, _, _ in made].count(None) == 2
    assert [value for _, value, _ in made].count(None) == 2
    names = [[name for name, _ in headers] for _, _, headers in made if headers]
    assert names == [["trace", "empty", "trace"]] * 2
