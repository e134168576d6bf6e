"""Reads the source's log ends for partitions that are not fetched: paused and parked ones, whose lag grows.

`task` runs it every few seconds. For partitions that run, each fetch returns the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, ConnectionLost, Wire, stable_ends

_EVERY = 5.0
# While there is no such partition.
_AGAIN = 0.5
_HELD = (PartitionState.PAUSED, PartitionState.PARKED)


class SourceEnds:
    """The ends of a task's idle partitions.

    Args:
        wire: to the source cluster.
        channels: all channels of the task; the list may grow.
    """

    def __init__(self, wire: Wire, channels: Sequence[Channel]) -> None:
        self._wire = wire
        self._channels = channels
        self._next = 0.0
        self._is_looking = False
        # The leaders that were looked up here: newer than the channel's opening, or of a channel without one.
        self._leaders: dict[Place, int] = {}

    def is_due(self, now: float) -> bool:
        """Return whether the next look-up is due."""
        if now < self._next or self._is_looking:
            return False
        self._next = now + _AGAIN
        return bool(self._idle())

    async def look(self, now: float) -> None:
        """Look up the ends at each leader, new ones included; a broker that does not answer changes nothing."""
        self._next = now + _EVERY
        self._is_looking = True
        try:
            untold = await self._ask_leaders(self._idle())
            if untold:
                await self._find_leaders(untold)
                await self._ask_leaders(untold)
        finally:
            self._is_looking = False

    def _idle(self) -> list[Channel]:
        """Return the channels that are not read now, and were open once or are not going to be."""
        idle = (channel for channel in self._channels if channel.state is not PartitionState.RUNNING)
        return [channel for channel in idle if channel.sides is not None or channel.state in _HELD]

    async def _ask_leaders(self, channels: Iterable[Channel]) -> list[Channel]:
        """Look up ends at the known leaders; return the channels without an answer."""
        found: dict[tuple[int, bool], list[Channel]] = {}
        untold: list[Channel] = []
        for channel in channels:
            node = self._leaders.get(channel.place, -1 if channel.sides is None else channel.sides.source.node)
            if node < 0:
                untold.append(channel)
            else:
                found.setdefault((node, channel.reads_committed), []).append(channel)
        for (node, committed), asked in found.items():
            untold += await self._ask(node, committed, asked)
        return untold

    async def _ask(self, node: int, committed: bool, channels: Sequence[Channel]) -> list[Channel]:
        """Look up ends at one broker; return the channels without an answer."""
        places = {(channel.place.topic, channel.place.partition): channel for channel in channels}
        try:
            ends = await stable_ends(self._wire, node, list(places), committed)
        except (ConnectionLost, BrokerError):
            return list(channels)
        for place, end in ends.items():
            # A channel that runs by now has a newer end.
            if places[place].state is not PartitionState.RUNNING:
                places[place].end = end
        return [channel for place, channel in places.items() if place not in ends]

    async def _find_leaders(self, channels: Collection[Channel]) -> None:
        """Look up the current leaders of some partitions."""
        for channel in channels:
            self._leaders.pop(channel.place, None)
        try:
            topics = await self._wire.topics({channel.place.topic for channel in channels})
        except ConnectionLost:
            return
        for channel in channels:
            place = channel.place
            try:
                self._leaders[place] = topics[place.topic].leader_of(place.partition).node
            except (BrokerError, KeyError):
                continue
