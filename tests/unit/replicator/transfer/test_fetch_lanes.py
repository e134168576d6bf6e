"""Which reader of a broker reads which channel."""

from __future__ import annotations

from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.transfer.fetch_lanes import MOST_LANES, NEAR_LANES, FetchKey, FetchLanes

FIRST = FetchKey(1, committed=True)
CHANNELS = [Channel(Place("orders", number, "east.orders")) for number in range(2 * MOST_LANES + 1)]


class _Told:
    """Lanes, and what was said of them."""

    def __init__(self) -> None:
        self.said: list[FetchKey] = []
        self.lanes = FetchLanes(self.said.append)

    def counts(self, node: int = 1) -> list[int]:
        """Return how many channels each lane of a broker has."""
        lanes = [self.lanes.key(node, channel).lane for channel in CHANNELS]
        return [lanes.count(number) for number in range(MOST_LANES)]


def test_a_broker_is_read_over_one_lane_at_first() -> None:
    told = _Told()
    assert told.counts() == [len(CHANNELS), 0, 0, 0]
    assert told.lanes.count(FIRST) == 1
    assert all(told.lanes.reads(FIRST, channel) for channel in CHANNELS)
    assert not told.lanes.reads(FIRST._replace(lane=1), CHANNELS[0])


def test_a_wide_line_has_lanes_with_a_part_of_the_channels_each() -> None:
    told = _Told()
    told.lanes.widen(FIRST, 1.0)
    told.lanes.widen(FIRST._replace(lane=2), 2.0)
    assert (told.said, told.lanes.count(FIRST._replace(lane=3))) == ([FIRST], MOST_LANES)
    assert told.counts() == [3, 2, 2, 2]
    # Another broker, and who reads open transactions from this one, are not concerned.
    assert told.counts(2) == [len(CHANNELS), 0, 0, 0]
    assert told.lanes.count(FetchKey(1, committed=False)) == 1
    for channel in CHANNELS:
        readers = [lane for lane in range(MOST_LANES) if told.lanes.reads(FIRST._replace(lane=lane), channel)]
        assert readers == [told.lanes.key(1, channel).lane]


def test_a_line_that_is_short_again_has_one_lane() -> None:
    told = _Told()
    told.lanes.widen(FIRST, 1.0)
    told.lanes.narrow(FIRST)
    told.lanes.narrow(FIRST)
    assert (told.said, told.counts()) == ([FIRST, FIRST], [len(CHANNELS), 0, 0, 0])
    told.lanes.widen(FIRST, 1.1)
    assert told.lanes.count(FIRST) == MOST_LANES


def test_after_a_lane_has_failed_there_is_one_for_a_while() -> None:
    told = _Told()
    told.lanes.widen(FIRST, 1.0)
    told.lanes.failed(FIRST._replace(lane=2), 5.0)
    assert told.lanes.count(FIRST) == 1
    told.lanes.widen(FIRST, 14.9)
    assert told.lanes.count(FIRST) == 1
    told.lanes.widen(FIRST, 15.0)
    assert told.lanes.count(FIRST) == MOST_LANES


def test_a_near_broker_has_fewer_lanes_and_more_when_it_is_far_after_all() -> None:
    told = _Told()
    told.lanes.widen(FIRST, 1.0, NEAR_LANES)
    told.lanes.widen(FIRST, 2.0, NEAR_LANES)
    assert (told.said, told.lanes.count(FIRST), told.counts()) == ([FIRST], NEAR_LANES, [5, 4, 0, 0])
    told.lanes.widen(FIRST, 3.0)
    assert (told.said, told.lanes.count(FIRST), told.counts()) == ([FIRST] * 2, MOST_LANES, [3, 2, 2, 2])
    told.lanes.widen(FIRST, 4.0, NEAR_LANES)
    assert (told.said, told.counts()) == ([FIRST] * 3, [5, 4, 0, 0])
    told.lanes.narrow(FIRST)
    assert (told.said, told.lanes.count(FIRST), told.counts()) == ([FIRST] * 4, 1, [9, 0, 0, 0])
