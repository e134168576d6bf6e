"""Which of several readers of one broker reads a channel: one fetch after the other leaves line and broker idle.

A fetch asks for what comes next, which nobody knows before the answer to the last one is there: one reader gets no more
than one answer in a round trip, and a near broker waits while it is taken in. Further ones with connections of their
own, lanes, take a part of the broker's channels each. All readers of a task share one. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reconciler.replicator.partition.channel import Channel

MOST_LANES = 4
# Of a near broker: while one answer is taken in the next one is made.
NEAR_LANES = 2
# For how many seconds a broker is read over one lane after another one has failed.
_NARROW = 10.0


class FetchKey(NamedTuple):
    """What one reader reads: of one broker, for the channels that want committed records alone, or for the others.

    There may be more than one lane for that, and this is one of them.
    """

    node: int
    committed: bool
    lane: int = 0


class _Spread(NamedTuple):
    """Over how many lanes something is read, and the numbers of its channels."""

    lanes: int
    numbers: dict[Channel, int]

    def lane(self, channel: Channel) -> int:
        return self.numbers.setdefault(channel, len(self.numbers)) % self.lanes


class FetchLanes:
    """Over how many lanes each broker is read, and which channel goes over which.

    Args:
        changed: called with what is read over more lanes from now on, or over fewer.
        most: how many there may be for one broker.
    """

    def __init__(self, changed: Callable[[FetchKey], None], most: int = MOST_LANES) -> None:
        self._changed = changed
        self._most = most
        # What is read over many.
        self._many: dict[FetchKey, _Spread] = {}
        self._narrow_until: dict[FetchKey, float] = {}

    def key(self, node: int, channel: Channel) -> FetchKey:
        """Return who reads a channel that is read from a broker."""
        first = FetchKey(node, channel.reads_committed)
        spread = self._many.get(first)
        return first if spread is None else first._replace(lane=spread.lane(channel))

    def reads(self, key: FetchKey, channel: Channel) -> bool:
        """Tell whether a channel is read over a lane; it must be one that is read from that broker."""
        if not self._many or (spread := self._many.get(key._replace(lane=0) if key.lane else key)) is None:
            return key.lane == 0
        return spread.lane(channel) == key.lane

    def count(self, key: FetchKey) -> int:
        """Return how many lanes there are for what is read over one of them."""
        spread = self._many.get(key._replace(lane=0)) if self._many else None
        return 1 if spread is None else spread.lanes

    def widen(self, key: FetchKey, now: float, count: int = MOST_LANES) -> None:
        """Read a broker over several lanes from `now` on (monotonic seconds), unless one has failed."""
        first, count = key._replace(lane=0), min(count, self._most)
        if count > 1 and self.count(first) != count and now >= self._narrow_until.get(first, now):
            self._many[first] = _Spread(count, {})
            self._changed(first)

    def narrow(self, key: FetchKey) -> None:
        """Read a broker over one lane."""
        if not self._many:
            return
        first = key._replace(lane=0)
        if self._many.pop(first, None) is not None:
            self._changed(first)

    def failed(self, key: FetchKey, now: float) -> None:
        """Take note that a lane has failed: for a while there is but one."""
        self._narrow_until[key._replace(lane=0)] = now + _NARROW
        self.narrow(key)
