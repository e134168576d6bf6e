"""Finds partitions whose source holds records back behind a transaction that nobody ends.

Readers of committed records stop at the last stable offset, so such a partition seems to have nothing more to copy: it
runs, and its lag is 0. What a broker forgets to end, or an application with a very long time-out leaves open, is named
with its producer and the way to abort it, as `kafka-transactions.sh find-hanging` finds it (KIP-664). Nothing is ended
here: whose transaction it is, only its owner knows.

`task` starts a look twice a minute; where ends of logs move, it asks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from reconciler.model.status import PartitionState, Reason
from reconciler.replicator.channel import Channel
from reconciler.replicator.place import Place
from reconciler.replicator.wire import ConnectionLost, ErrorCode, ProducerState, Wire, stable_ends

CODE = "AB234"
EVERY = 30.0
# Kafka's default of transaction.max.timeout.ms, in seconds: by then a broker has ended what it has not forgotten,
# unless it was set higher.
LONGEST_OPEN = 900.0


class Stood(NamedTuple):
    """Where the last stable offset of a partition stands, and since when (monotonic seconds)."""

    end: int
    since: float


class Standstill:
    """The standstills of a task's partitions.

    Args:
        wire: to the source cluster.
        channels: all channels of the task; the list may grow.
        stood: what earlier rounds have seen, which is shorter than a transaction may be open; it is kept up to date.
    """

    def __init__(self, wire: Wire, channels: Sequence[Channel], stood: dict[Place, Stood]) -> None:
        self._wire = wire
        self._channels = channels
        self._stood = stood
        self._next = 0.0

    def is_due(self, now: float) -> bool:
        """Tell whether it is time to look again: never while somebody looks."""
        if now < self._next:
            return False
        self._next = math.inf
        return True

    async def look(self, now: float) -> None:
        """Say of each partition whether it stands still; who does not answer changes nothing.

        Args:
            now: monotonic seconds.
        """
        asked: dict[int, list[Channel]] = {}
        for channel in self._channels:
            if channel.sides is not None and self._has_stood(channel, now):
                asked.setdefault(channel.sides.source.node, []).append(channel)
        try:
            for node, channels in asked.items():
                await self._ask(node, channels, now)
        finally:
            self._next = now + EVERY

    def _has_stood(self, channel: Channel, now: float) -> bool:
        """Tell whether all that is stable was copied long ago, and take note of where that ends."""
        stood = self._stood.get(channel.place)
        if stood is None or stood.end != channel.end:
            self._stood[channel.place] = Stood(channel.end, now)
            _say(channel, None)
            return False
        waits = channel.reads_committed and channel.position == channel.end
        return waits and channel.state is PartitionState.RUNNING and now - stood.since >= LONGEST_OPEN

    async def _ask(self, node: int, channels: Sequence[Channel], now: float) -> None:
        """Ask a broker whether there is more in its partitions, and whose transaction holds it back."""
        places = {(channel.place.topic, channel.place.partition): channel for channel in channels}
        try:
            ends = await stable_ends(self._wire, node, list(places), committed=False)
        except (ConnectionLost, ErrorCode):
            return
        for (topic, partition), end in ends.items():
            channel = places[topic, partition]
            if channel.end >= end:
                # Nothing was written: it is not looked at again for as long as a transaction may be open.
                self._stood[channel.place] = Stood(channel.end, now)
                _say(channel, None)
                continue
            opened = await self._opened(node, topic, partition)
            minutes = int((now - self._stood[channel.place].since) // 60)
            _say(channel, why(topic, partition, (channel.end, end), minutes, opened))

    async def _opened(self, node: int, topic: str, partition: int) -> ProducerState | None:
        """Return the producer whose transaction begins first; None where the broker does not say."""
        try:
            producers = await self._wire.producers(node, topic, partition)
        except (ConnectionLost, ErrorCode):
            # Brokers before 2.8 cannot say.
            return None
        return min((one for one in producers if one.open_transaction), key=lambda one: one.opened_at, default=None)


def _say(channel: Channel, reason: Reason | None) -> None:
    """Say why a partition stands still, or take that back; any other reason, and any other state, is left alone."""
    is_ours = channel.reason is None or channel.reason.code == CODE
    if is_ours and channel.state is PartitionState.RUNNING:
        channel.reason = reason


def why(topic: str, partition: int, held: tuple[int, int], minutes: int, opened: ProducerState | None) -> Reason:
    """Return what is said of a partition that stands still.

    Args:
        topic: the original.
        partition: its number.
        held: the last stable offset, and the end of what stands behind it.
        minutes: for how long at least.
        opened: whose transaction it is, where that is known.
    """
    stable, end = held
    whose = "which producer's the broker does not say"
    begins = f"`kafka-transactions.sh find-hanging --topic {topic}` looks for it"
    if opened is not None:
        whose = f"producer {opened.producer_id}'s, epoch {opened.epoch}"
        command = (
            f"kafka-transactions.sh abort --topic {topic} --partition {partition} --start-offset {opened.opened_at}"
        )
        begins = f"if its application is gone, `{command}` ends it"
    text = (
        f"{end - stable:,} offsets of {topic}/{partition} from {stable} on are held back at the source by a "
        f"transaction that has been open for {minutes} minutes or more ({whose}): they are copied once it ends; "
        f"{begins}"
    )
    return Reason(CODE, text)
