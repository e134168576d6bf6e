"""From which broker each channel is read: the source's leader, or the preferred read replica it names (KIP-392).

All fetchers of a task share one. A leader that gets our rack answers with the replica to read from instead, and sends
no records as long as it gets it; so when that replica fails, no rack is sent for a while. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from reconciler.replicator.partition.channel import Channel

# Seconds for which no rack is sent after a replica has failed: about as long as brokers take to give it up.
_SHUNNED = 5.0


class _Replica(NamedTuple):
    """A replica that is read, in one opening of the channel, until a time (monotonic seconds)."""

    node: int
    opening: int
    until: float


class PreferredReplicas:
    """The broker from which each channel is read.

    Args:
        rack: our rack; empty to read from the leaders alone.
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
        """Return the broker from which a channel is read; None while it is not known."""
        if channel.sides is None:
            return None
        if self._near:
            near = self._near.get(channel)
            # A new opening begins at its leader.
            if near is not None and near.opening == channel.opening:
                return near.node
        return channel.sides.source.node

    def rack(self, now: float) -> str:
        """Return the rack to send in fetches at `now` (monotonic seconds)."""
        return self._rack if now >= self._silent_until else ""

    def is_replica(self, channel: Channel) -> bool:
        """Return whether a channel is read from another broker than the leader."""
        return channel.sides is not None and self.node(channel) != channel.sides.source.node

    def named(self, channel: Channel, node: int, now: float) -> None:
        """Note the replica that the leader has named for a channel."""
        self._near[channel] = _Replica(node, channel.opening, now + self._trusted)
        self._moved(channel)

    def failed(self, channel: Channel, now: float) -> None:
        """Read from the leader again, as the replica did not answer or does not hold the offset."""
        self._silent_until = now + _SHUNNED
        self._back(channel)

    def look(self, channel: Channel, now: float) -> None:
        """Read from the leader again when a replica's time is over: it may name a better one."""
        near = self._near.get(channel)
        if near is not None and (now >= near.until or near.opening != channel.opening):
            self._back(channel)

    def _back(self, channel: Channel) -> None:
        del self._near[channel]
        self._moved(channel)
