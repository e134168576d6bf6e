"""A slow line is asked for less and less, and for more again when it answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.replicator.transfer.pace import (
    FetchRest,
    FetchSize,
    FetchWait,
    PartitionFetchSize,
    Quota,
    RequestSize,
    RoundTrip,
)


def test_it_halves_after_each_silence_but_never_to_nothing() -> None:
    size = RequestSize(1_000_000)
    size.shrink()
    assert size.bytes == 500_000
    for _ in range(50):
        size.shrink()
    assert size.bytes == 64 * 1024


def test_it_grows_back_and_never_beyond_its_limit() -> None:
    size = RequestSize(1_000_000)
    for _ in range(10):
        size.shrink()
    before = size.bytes
    size.grow()
    assert before < size.bytes < 2 * before
    for _ in range(100):
        size.grow()
    assert size.bytes == 1_000_000


def test_batches_are_worth_merging_where_a_window_of_them_lasts_no_round_trip() -> None:
    trip = RoundTrip()
    assert trip.small == 0
    trip.took(0.1, 100.0)
    # Five of so many bytes in each round trip are 10 MB in a second.
    assert trip.small == 200_000


def test_a_busy_target_is_not_a_far_one() -> None:
    trip = RoundTrip()
    for tenths in range(200):
        trip.took(0.001 if tenths % 30 == 0 else 0.05, 100.0 + tenths / 10)
        assert trip.small == 2_000


def test_a_target_that_moves_away_is_noticed() -> None:
    trip = RoundTrip()
    trip.took(0.001, 100.0)
    for tenths in range(1, 110):
        trip.took(0.02, 100.0 + tenths / 10)
    assert trip.small == 40_000
    trip.took(0.001, 112.0)
    assert trip.small == 2_000


def test_a_rest_is_as_long_as_its_turn_was_dear() -> None:
    rest = FetchRest(0.005, 10.0)
    assert rest.seconds(10.0002) == pytest.approx(0.0048)
    # Each turn is counted from the one before.
    assert rest.seconds(10.0004) == pytest.approx(0.0048)
    assert rest.seconds(10.00041) == 0.001
    assert rest.seconds(11.0) == 0.005
    assert FetchRest(0.0, 10.0).seconds(11.0) == 0.0


@pytest.mark.parametrize(("usual", "quiet"), [(500, 2_000), (10, 40), (1_250, 5_000), (3_000, 5_000), (5_000, 5_000)])
def test_a_broker_may_wait_longer_once_nothing_has_come_for_a_while(usual: int, quiet: int) -> None:
    wait = FetchWait(usual, 100.0)
    assert [wait.ms(now) for now in (100.0, 104.9, 105.0, 1_000.0)] == [usual, usual, quiet, quiet]
    wait.came(1_000.0)
    assert [wait.ms(now) for now in (1_000.0, 1_004.9, 1_005.0)] == [usual, usual, quiet]


def test_a_line_is_long_by_its_quickest_answers() -> None:
    trip = RoundTrip()
    assert not trip.is_far
    trip.took(0.1, 100.0)
    assert trip.is_far
    trip.took(0.004, 101.0)
    trip.took(2.0, 102.0)
    assert not trip.is_far
    # After some seconds a quick one is forgotten.
    trip.took(0.1, 106.0)
    trip.took(0.1, 112.0)
    assert trip.is_far


def test_without_a_quota_nothing_waits() -> None:
    quota = Quota(None)
    quota.spend(10**12)
    assert quota.pause(0.0) == 0.0
    assert (quota.request_bytes(4_000_000), quota.ahead(48_000_000)) == (4_000_000, 48_000_000)


def test_what_was_sent_too_early_is_paid_off() -> None:
    quota = Quota(1_000_000)
    assert quota.pause(10.0) == 0.0
    quota.spend(500_000)
    assert quota.pause(10.0) == pytest.approx(0.5)
    assert quota.pause(10.4) == pytest.approx(0.1)
    assert quota.pause(10.6) == 0.0


def test_with_a_quota_requests_and_what_is_read_in_advance_are_small() -> None:
    quota = Quota(1_000_000)
    assert quota.request_bytes(4_000_000) < 500_000
    assert quota.ahead(48_000_000) < 5_000_000
    # But never so small that nothing gets on.
    assert Quota(1).request_bytes(4_000_000) == Quota(1).ahead(48_000_000) == 64 * 1024


@given(
    st.floats(1_000, 1e9),
    st.lists(st.tuples(st.integers(1, 10_000_000), st.floats(0, 5)), min_size=1, max_size=50),
)
def test_a_quota_is_honoured_whatever_is_sent(rate: float, story: list[tuple[int, float]]) -> None:
    quota, now, sent = Quota(rate), 100.0, 0
    began = now
    for size, idle in story:
        now += idle
        now += quota.pause(now)
        assert quota.pause(now) <= 1e-3
        quota.spend(size)
        sent += size
        # One request may be ahead, and a fifth of a second may be made up for.
        assert sent - size <= rate * (now - began + 0.2) * 1.001 + 1


def fetched(size: FetchSize, trip: float, rate: float, answers: int, start: float = 0.0) -> int:
    """Let a line answer in full, again and again; return what is asked for in the end."""
    for number in range(answers):
        size.answered(size.bytes, trip, trip + size.bytes / rate, start + number)
    return size.bytes


def test_a_short_line_is_asked_for_no_more_than_usual() -> None:
    assert fetched(FetchSize(4_000_000, 24_000_000), 0.0005, 2e9, 100) == 4_000_000


@pytest.mark.parametrize(("rate", "expected"), [(1e9, 24_000_000), (50e6, 20_000_000), (5e6, 4_000_000)])
def test_a_long_line_is_asked_for_what_it_carries_in_a_few_round_trips(rate: float, expected: int) -> None:
    size = FetchSize(4_000_000, 24_000_000)
    assert fetched(size, 0.1, rate, 100) == pytest.approx(expected, rel=0.01)
    size.shrink()
    assert size.bytes == pytest.approx(expected / 2, rel=0.01)
    # A replica nearby is read instead.
    assert fetched(size, 0.0005, 2e9, 100, 1_000.0) == 4_000_000


def test_a_long_line_is_asked_for_more_soon_but_with_care_after_a_loss() -> None:
    size = FetchSize(4_000_000, 24_000_000)
    assert fetched(size, 0.1, 1e9, 3) == 24_000_000
    size.shrink()
    assert 12_000_000 < fetched(size, 0.1, 1e9, 3) < 24_000_000


def test_brokers_that_wait_for_records_are_not_far() -> None:
    size = FetchSize(4_000_000, 24_000_000)
    for number in range(100):
        size.answered(10_000, 0.4, 0.4001, float(number))
    assert size.bytes == 4_000_000
    # Nobody can tell when old brokers' answers began.
    for number in range(100):
        size.answered(4_000_000, 0.0, 0.2, 100.0 + number)
    assert size.bytes == 4_000_000


def test_a_quota_bounds_what_a_long_line_is_asked_for() -> None:
    assert fetched(FetchSize(100_000, 100_000), 0.1, 1e9, 100) == 100_000


def test_several_fetches_at_once_are_worth_it_on_a_long_line_that_carries_much() -> None:
    size = FetchSize(4_000_000, 24_000_000)
    fetched(size, 0.1, 20e6, 3)
    assert not size.is_wide
    fetched(size, 0.1, 40e6, 3, 10.0)
    assert size.is_wide
    # Each of four gets a part of it; that alone changes nothing.
    fetched(size, 0.1, 10e6, 3, 20.0)
    assert size.is_wide
    fetched(size, 0.1, 4e6, 1, 30.0)
    assert not size.is_wide


def test_several_fetches_at_once_end_when_there_is_only_a_trickle() -> None:
    size = FetchSize(4_000_000, 24_000_000)
    fetched(size, 0.1, 1e9, 3, 10.0)
    for now in (12.5, 15.0, 17.0):
        size.answered(1_000, 0.5, 0.5, now)
        assert size.is_wide
    size.answered(0, 0.5, 0.5, 17.1)
    assert not size.is_wide


def test_several_fetches_at_once_end_with_a_loss_and_with_a_short_line() -> None:
    size = FetchSize(4_000_000, 24_000_000)
    fetched(size, 0.1, 1e9, 3)
    assert size.is_wide
    size.shrink()
    assert not size.is_wide
    fetched(size, 0.1, 1e9, 3, 10.0)
    assert size.is_wide
    fetched(size, 0.0005, 2e9, 100, 100.0)
    assert not size.is_wide


def test_a_partition_is_asked_for_what_can_be_worked_through_soon() -> None:
    effort = PartitionFetchSize(250_000, 24_000_000)
    assert not effort.was_long(2_000_000, 0.01)
    assert effort.bytes == 24_000_000
    assert effort.was_long(2_000_000, 0.04)
    assert effort.bytes == 1_000_000
    assert effort.was_long(1_000_000, 1.0)
    assert effort.bytes == 250_000


def test_one_slow_moment_is_forgotten_soon() -> None:
    effort = PartitionFetchSize(250_000, 24_000_000)
    effort.was_long(12_000_000, 0.5)
    assert effort.bytes == 480_000
    # What is little, or takes its time, says nothing.
    effort.was_long(100_000, 0.001)
    effort.was_long(480_000, 0.015)
    assert effort.bytes == 480_000
    for _ in range(6):
        assert not effort.was_long(effort.bytes, 0.005)
    assert effort.bytes == 24_000_000


def test_who_was_slow_with_little_is_not_asked_for_less() -> None:
    effort = PartitionFetchSize(250_000, 24_000_000)
    assert effort.was_long(1_000, 0.5)
    assert effort.bytes == 24_000_000
