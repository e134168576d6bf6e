"""For how long a broker wants to be left alone, as a produce answer says, whatever else stands in it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.wire.protocol.compact import uvarint
from reconciler.wire.protocol.producing import throttle
from tests.support.wire.direct_ends import COPY, Landed, produce_answer

NAME = uvarint(len(b"orders") + 1) + b"orders"
NOT_LEADER = 6


def moved(topic: bytes, told: int) -> bytes:
    """Return an answer as brokers give it where leaders have moved: KIP-951's tags with the new ones' addresses."""
    leader = b"\x01\x00\x09" + struct.pack(">ii", 2, 5) + b"\x00"
    partition = struct.pack(">ihqqq", 0, NOT_LEADER, -1, -1, -1) + uvarint(1) + b"\x00" + leader
    topics = uvarint(2) + topic + uvarint(2) + partition + b"\x00"
    host = b"127.0.0.1"
    endpoint = struct.pack(">i", 2) + uvarint(len(host) + 1) + host + struct.pack(">i", 29013) + b"\x00\x00"
    endpoints = uvarint(2) + endpoint
    return topics + struct.pack(">i", told) + b"\x01\x00" + uvarint(len(endpoints)) + endpoints


@pytest.mark.parametrize(("topic", "by_id"), [(COPY.bytes, True), (NAME, False)])
@pytest.mark.parametrize("told", [0, 250])
def test_addresses_behind_it_are_no_part_of_it(topic: bytes, by_id: bool, told: int) -> None:
    # Its last bytes would be a port's: two hours.
    assert throttle(memoryview(moved(topic, told)), by_id) == told


@given(
    st.lists(st.builds(Landed, st.integers(0, 9), st.integers(-1, 9), st.sampled_from([0, 2]), st.none() | st.text())),
    st.integers(0, 2**31 - 1),
)
def test_it_is_told_of_any_answer(partitions: list[Landed], told: int) -> None:
    assert throttle(memoryview(produce_answer(*partitions, throttle=told)), by_id=True) == told
    assert throttle(memoryview(produce_answer(*partitions, topic=NAME, throttle=told)), by_id=False) == told


@pytest.mark.parametrize("count", [126, 127, 128, 200])
def test_of_many_partitions_as_well(count: int) -> None:
    answer = produce_answer(*(Landed(number, 1) for number in range(count)), throttle=7)
    assert throttle(memoryview(answer), by_id=True) == 7


def test_what_cannot_be_read_asks_for_nothing() -> None:
    answer = produce_answer(Landed(0, 1), Landed(1, 2, 6, "it has gone"), throttle=9)
    for size in (0, 1, 17, 18, 40, len(answer) - 4):
        assert throttle(memoryview(answer)[:size], by_id=True) == 0
