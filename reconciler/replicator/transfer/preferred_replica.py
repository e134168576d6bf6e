"""From which broker each channel is read: the source's leader, or a replica near us that the leader names (KIP-392).

All readers of a task share one. A leader that hears our rack answers with the replica to ask instead, and sends no
records as long as it hears it; so when that replica fails, no rack is told for a while. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from reconciler.replicator.partition.channel import Channel

# For how many seconds nobody is told our rack after a replica has failed: about as long as it takes to be given up.
_SHUNNED = 5.0


class _Replica(NamedTuple):
    """A replica that is read: which, in which opening of the channel, and until when (monotonic seconds)."""

    node: int
    opening: int
    until: float


class PreferredReplicas:
    """Who is asked for the records of each channel.

    Args:
        rack: where we are; empty to read from the leaders alone.
        moved: called when a channel is to be read from another broker than before.
        trusted: for how many seconds a replica is read before the leader is asked again.
    """

    def __init__(self, rack: str, moved: Callable[[Channel], None], trusted: float = math.inf) -> None:
        self._rack = rack
        self._trusted = trusted
        self._moved = moved
        self._near: dict[Channel, _Replica] = {}
        self._silent_until = 0.0

    def node(self, channel: Channel) -> int | None:
        """Return the broker that is asked for a channel's records; None while that is not known."""
        if channel.sides is None:
            return None
        if self._near:
            near = self._near.get(channel)
            # A new opening begins at its leader.
            if near is not None and near.opening == channel.opening:
                return near.node
        return channel.sides.source.node

    def rack(self, now: float) -> str:
        """Return the rack to tell brokers at `now` (monotonic seconds)."""
        return self._rack if now >= self._silent_until else ""

    def is_replica(self, channel: Channel) -> bool:
        """Tell whether a channel is read from somebody else than the leader."""
        return channel.sides is not None and self.node(channel) != channel.sides.source.node

    def named(self, channel: Channel, node: int, now: float) -> None:
        """Take note that the leader has named a replica that is nearer."""
        self._near[channel] = _Replica(node, channel.opening, now + self._trusted)
        self._moved(channel)

    def failed(self, channel: Channel, now: float) -> None:
        """Read from the leader again, as the replica did not answer or has not what we want."""
        self._silent_until = now + _SHUNNED
        self._back(channel)

    def look(self, channel: Channel, now: float) -> None:
        """Ask the leader again from time to time: another replica may be better by now."""
        near = self._near.get(channel)
        if near is not None and (now >= near.until or near.opening != channel.opening):
            self._back(channel)

    def _back(self, channel: Channel) -> None:
        del self._near[channel]
        self._moved(channel)
