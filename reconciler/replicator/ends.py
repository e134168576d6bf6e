"""Looks where the source ends for partitions that nobody reads: paused and parked ones, whose lag grows meanwhile.

`task` starts a look every few seconds. For partitions that run, each fetch tells the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.status import PartitionState
from reconciler.replicator.channel import Channel
from reconciler.replicator.wire import ConnectionLost, ErrorCode, Wire, stable_ends

_EVERY = 5.0
# While there is nobody to ask for.
_AGAIN = 0.5


class Ends:
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

    def is_due(self, now: float) -> bool:
        """Tell whether it is time to look again."""
        if now < self._next or self._is_looking:
            return False
        self._next = now + _AGAIN
        return bool(self._idle())

    async def look(self, now: float) -> None:
        """Ask each broker once; one that does not answer changes nothing."""
        self._next = now + _EVERY
        self._is_looking = True
        try:
            for node, channels in self._idle().items():
                await self._ask(node, channels)
        finally:
            self._is_looking = False

    def _idle(self) -> dict[int, list[Channel]]:
        """Return, by broker, the channels that were open once and are not read now."""
        found: dict[int, list[Channel]] = {}
        for channel in self._channels:
            if channel.state is not PartitionState.RUNNING and channel.sides is not None:
                found.setdefault(channel.sides.source.node, []).append(channel)
        return found

    async def _ask(self, node: int, channels: Sequence[Channel]) -> None:
        places = {(channel.place.topic, channel.place.partition): channel for channel in channels}
        try:
            ends = await stable_ends(self._wire, node, list(places))
        except (ConnectionLost, ErrorCode):
            return
        for place, end in ends.items():
            # Whoever began to read meanwhile knows better.
            if places[place].state is not PartitionState.RUNNING:
                places[place].end = end
