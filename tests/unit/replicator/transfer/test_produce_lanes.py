"""Over which lane a channel is sent: never over another one than what of it is in flight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.transfer.produce_lanes import FIRST, SECOND, LaneRequest, ProduceLanes

MUCH = 2**20


def channels(count: int) -> list[Channel]:
    return [Channel(Place("orders", number, "east.orders")) for number in range(count)]


SEVERAL = channels(2)


def sent_batch() -> InFlightBatch:
    """Return something that is in flight."""
    return InFlightBatch(1, 0, 1, 0, 1, 0, 0, 61, b"", b"", ())


def test_there_is_one_lane_to_begin_with() -> None:
    lanes = ProduceLanes()
    assert [lanes.lane(channel) for channel in channels(3)] == [FIRST] * 3
    assert not lanes.are_two


def test_two_lanes_share_the_channels() -> None:
    lanes, several = ProduceLanes(), channels(4)
    lanes.widen()
    assert [lanes.lane(channel) for channel in several] == [FIRST, SECOND, FIRST, SECOND]
    assert [lanes.lane(channel) for channel in reversed(several)] == [SECOND, FIRST, SECOND, FIRST]


def test_what_is_in_flight_is_answered_first() -> None:
    lanes, (stays, moves) = ProduceLanes(), channels(2)
    for channel in (stays, moves):
        assert lanes.lane(channel) == FIRST
        channel.in_flight.append(sent_batch())
    lanes.widen()
    assert [lanes.lane(stays), lanes.lane(moves)] == [FIRST, None]
    moves.in_flight.clear()
    assert lanes.lane(moves) == SECOND
    moves.in_flight.append(sent_batch())
    assert lanes.lane(moves) == SECOND


def test_it_is_narrow_again_when_nothing_is_under_way_over_the_second() -> None:
    lanes, (_, moved) = ProduceLanes(), (several := channels(2))
    lanes.widen()
    assert [lanes.lane(channel) for channel in several] == [FIRST, SECOND]
    moved.in_flight.append(sent_batch())
    lanes.under_way[SECOND] += 1
    lanes.narrow()
    assert (lanes.are_two, lanes.lane(moved)) == (True, None)
    moved.in_flight.clear()
    lanes.ended(LaneRequest(SECOND, 0))
    assert (lanes.are_two, lanes.lane(moved), lanes.under_way) == (False, FIRST, [0, 0])


def test_a_second_lane_is_worth_it_behind_much() -> None:
    lanes = ProduceLanes()
    assert not lanes.is_worth_more(MUCH, SEVERAL, 0.0)
    lanes.under_way[FIRST] = 3
    assert lanes.is_worth_more(MUCH, SEVERAL, 0.0)
    assert not lanes.is_worth_more(1_000, SEVERAL, 0.0)
    assert lanes.is_worth_more(MUCH, SEVERAL[1:], 0.0)
    assert not lanes.is_worth_more(MUCH, SEVERAL[1:], 0.0)
    lanes.widen()
    assert not lanes.is_worth_more(MUCH, SEVERAL, 0.0)


def test_two_lanes_are_there_for_as_long_as_there_is_much() -> None:
    lanes = ProduceLanes()
    lanes.widen()
    lanes.is_worth_more(MUCH, SEVERAL, 100.0)
    lanes.look(100.5)
    assert lanes.are_two
    lanes.is_worth_more(1_000, SEVERAL, 100.5)
    lanes.look(100.6)
    assert not lanes.are_two


def test_after_a_failure_the_first_is_alone_for_a_while() -> None:
    lanes = ProduceLanes()
    lanes.widen()
    lanes.under_way = [3, 1]
    lanes.ended(LaneRequest(SECOND, 0))
    lanes.failed(100.0)
    assert not lanes.are_two
    assert not lanes.is_worth_more(MUCH, SEVERAL, 109.0)
    assert lanes.is_worth_more(MUCH, SEVERAL, 110.0)


def test_two_lanes_hold_hardly_more_bytes_than_one_with_large_requests() -> None:
    lanes = ProduceLanes()
    ways = [lanes.left(FIRST, 5 * MUCH) for _ in range(4)]
    assert lanes.has_room(FIRST)
    lanes.widen()
    # Whatever the first holds, the second is never kept from sending: one request beyond the bound.
    assert [lanes.has_room(FIRST), lanes.has_room(SECOND)] == [False, True]
    beyond = lanes.left(SECOND, 5 * MUCH)
    assert [lanes.has_room(FIRST), lanes.has_room(SECOND)] == [False, False]
    lanes.ended(beyond)
    lanes.ended(ways[0])
    assert [lanes.has_room(FIRST), lanes.has_room(SECOND)] == [True, True]
    for _ in range(5):
        lanes.left(SECOND, 10)
    assert [lanes.has_room(FIRST), lanes.has_room(SECOND)] == [True, False]


@given(
    st.lists(
        st.tuples(st.sampled_from(("send", "ask", "ride", "answer", "widen", "narrow", "fail")), st.integers(0, 4))
    )
)
def test_whatever_happens_a_channel_is_in_flight_over_one_lane_alone(steps: list[tuple[str, int]]) -> None:
    lanes, several = ProduceLanes(), channels(5)
    over: dict[Channel, list[int]] = {channel: [] for channel in several}
    for what, number in steps:
        channel = several[number]
        if what == "send" and (lane := lanes.lane(channel)) is not None:
            over[channel].append(lane)
            channel.in_flight.append(sent_batch())
            lanes.under_way[lane] += 1
        elif what == "ask":
            # As where a channel is looked at and not sent.
            lanes.lane(channel)
        elif what == "ride" and not lanes.are_two:
            over[channel].append(FIRST)
            channel.in_flight.append(sent_batch())
            lanes.under_way[FIRST] += 1
        elif what == "answer" and over[channel]:
            lane = over[channel].pop(0)
            lanes.ended(LaneRequest(lane, 0))
            channel.in_flight.popleft()
        elif what == "widen":
            lanes.widen()
        elif what == "narrow":
            lanes.narrow()
        elif what == "fail":
            lanes.failed(0.0)
        assert all(len(set(found)) <= 1 for found in over.values())
        assert lanes.under_way == [sum(found.count(lane) for found in over.values()) for lane in (FIRST, SECOND)]
        assert lanes.are_two or not lanes.under_way[SECOND]
    for channel in several:
        for lane in over[channel]:
            lanes.ended(LaneRequest(lane, 0))
        channel.in_flight.clear()
    lanes.narrow()
    assert [lanes.lane(channel) for channel in several] == [FIRST] * 5
