"""Fetches one broker over several connections: one fetch after the other leaves the line and the broker idle.

The offset of the next fetch is known only when the last answer is there: one fetcher gets at most one answer in a round
trip, and a near broker waits while the answer is processed. Further fetchers with connections of their own, lanes, take
a part of the broker's channels each. All fetchers of a task share one `FetchLanes`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reconciler.replicator.partition.channel import Channel

MOST_LANES = 4
# For a near broker: it makes one answer while the other is processed.
NEAR_LANES = 2
# Seconds for which a broker is fetched over one lane after another lane has failed.
_NARROW = 10.0


class FetchKey(NamedTuple):
    """What one fetcher reads: the channels of one broker with one isolation level, over one of its lanes."""

    node: int
    committed: bool
    lane: int = 0


class _Spread(NamedTuple):
    """The number of lanes, and a running number for each channel."""

    lanes: int
    numbers: dict[Channel, int]

    def lane(self, channel: Channel) -> int:
        return self.numbers.setdefault(channel, len(self.numbers)) % self.lanes


class FetchLanes:
    """How many lanes each broker has, and which channel uses which.

    Args:
        changed: called with the first lane of a broker whose number of lanes has changed.
        most: the maximum for one broker.
    """

    def __init__(self, changed: Callable[[FetchKey], None], most: int = MOST_LANES) -> None:
        self._changed = changed
        self._most = most
        # By first lane, where there are several.
        self._many: dict[FetchKey, _Spread] = {}
        self._narrow_until: dict[FetchKey, float] = {}

    def key(self, node: int, channel: Channel) -> FetchKey:
        """Return the fetcher of a channel that is read from a broker."""
        first = FetchKey(node, channel.reads_committed)
        spread = self._many.get(first)
        return first if spread is None else first._replace(lane=spread.lane(channel))

    def reads(self, key: FetchKey, channel: Channel) -> bool:
        """Return whether a channel is read over a lane; the channel must be one that is read from that broker."""
        if not self._many or (spread := self._many.get(key._replace(lane=0) if key.lane else key)) is None:
            return key.lane == 0
        return spread.lane(channel) == key.lane

    def count(self, key: FetchKey) -> int:
        """Return the number of lanes beside one of them, itself included."""
        spread = self._many.get(key._replace(lane=0)) if self._many else None
        return 1 if spread is None else spread.lanes

    def widen(self, key: FetchKey, now: float, count: int = MOST_LANES) -> None:
        """Fetch a broker over several lanes from `now` on (monotonic seconds), unless a lane failed shortly before."""
        first, count = key._replace(lane=0), min(count, self._most)
        if count > 1 and self.count(first) != count and now >= self._narrow_until.get(first, now):
            self._many[first] = _Spread(count, {})
            self._changed(first)

    def narrow(self, key: FetchKey) -> None:
        """Fetch a broker over one lane."""
        if not self._many:
            return
        first = key._replace(lane=0)
        if self._many.pop(first, None) is not None:
            self._changed(first)

    def failed(self, key: FetchKey, now: float) -> None:
        """Note that a lane has failed: for `_NARROW` seconds there is only one."""
        self._narrow_until[key._replace(lane=0)] = now + _NARROW
        self.narrow(key)
