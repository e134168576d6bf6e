"""Which of two connections to a target broker a channel's batches use, and how many requests are in flight.

A broker serves the requests of one connection in turn: it receives the next one when the last was written. With two
connections, lanes, it receives one while it writes the other. Order within a partition holds on one connection alone,
so a channel changes lanes only while nothing of it is in flight. `sender` uses it. No I/O.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from reconciler.replicator.partition.channel import Channel

FIRST, SECOND = 0, 1
# So many requests may be in flight over a lane: more of them only wait in its socket.
_REQUESTS = 5
# Over two lanes no more bytes may be in flight than over one with large requests: they take memory.
_BYTES = 20 * 2**20
# The second lane is worth it behind so many requests, when one carries so many bytes, of several partitions.
_BEHIND, _MUCH = 3, 256 * 1024
# For so many seconds without such a request there are two lanes.
_QUIET = 0.5
# For how many seconds the first one is alone after the second one has failed.
_NARROW = 10.0


class LaneRequest(NamedTuple):
    """A request in flight.

    Attributes:
        lane: the lane it was sent over.
        size: the bytes that count against the limit.
    """

    lane: int
    size: int


class ProduceLanes:
    """The lanes to one broker. The second one is there from `widen` on until `narrow`, or until it fails.

    Attributes:
        under_way: requests in flight, by lane.
        are_two: whether the second lane may be used, or still has requests in flight.
    """

    def __init__(self) -> None:
        self.under_way = [0, 0]
        self._bytes = 0
        # They differ while the second lane is given up, and its requests in flight are still to be answered.
        self.are_two = self._is_wide = False
        self._much_at = -math.inf
        self._lately: Channel | None = None
        # By channel, while there are two: its number, and over which lane it was sent last.
        self._numbers: dict[Channel, int] = {}
        self._last: dict[Channel, int] = {}
        self._narrow_until = -math.inf

    def has_room(self, lane: int) -> bool:
        """Return whether one more request may be sent over a lane."""
        # A lane with nothing in flight always has room: else the other, asked first, would take all the room for large
        # batches.
        fits = self._bytes < _BYTES or not self.are_two or not self.under_way[lane]
        return self.under_way[lane] < _REQUESTS and fits

    def left(self, lane: int, size: int) -> LaneRequest:
        """Note that a request of `size` bytes is sent over a lane; return it for `ended`."""
        self.under_way[lane] += 1
        self._bytes += size
        return LaneRequest(lane, size)

    def lane(self, channel: Channel) -> int | None:
        """Return the lane over which a channel is sent next; None where what is in flight must be answered first."""
        if not self.are_two:
            return FIRST
        wanted = FIRST
        if self._is_wide:
            wanted = self._numbers.setdefault(channel, len(self._numbers)) % 2
        if channel.in_flight and self._last.get(channel, FIRST) != wanted:
            return None
        self._last[channel] = wanted
        return wanted

    def is_worth_more(self, size: int, channels: Sequence[Channel], now: float) -> bool:
        """Return whether a second lane would help, given the request that is about to be sent.

        Args:
            size: its bytes.
            channels: the channels in it.
            now: monotonic seconds.
        """
        if size < _MUCH:
            return False
        is_alone = len(channels) == 1 and channels[0] is self._lately
        self._much_at, self._lately = now, channels[0]
        if self._is_wide or is_alone:
            return False
        return self.under_way[FIRST] >= _BEHIND and now >= self._narrow_until

    def widen(self) -> None:
        """Have two lanes from now on."""
        self.are_two = self._is_wide = True

    def failed(self, now: float) -> None:
        """Note that the second lane has failed: for `_NARROW` seconds there is only one."""
        self._narrow_until = now + _NARROW
        self.narrow()

    def look(self, now: float) -> None:
        """Go back to one lane if there was little to send for a while."""
        if self._is_wide and now - self._much_at > _QUIET:
            self.narrow()

    def narrow(self) -> None:
        """Go back to one lane, as soon as nothing is in flight over the second one."""
        self._is_wide = False
        self._forget()

    def ended(self, way: LaneRequest) -> None:
        """Note that a request was answered or lost."""
        self.under_way[way.lane] -= 1
        self._bytes -= way.size
        if way.lane and not self._is_wide:
            self._forget()

    def _forget(self) -> None:
        if self.are_two and not self.under_way[SECOND]:
            self.are_two = False
            self._numbers.clear()
            self._last.clear()
