"""Finds partitions whose records the source holds back behind a transaction that is not ended.

`read_committed` fetches stop at the last stable offset, so such a partition seems to have nothing more to copy: it
runs, and its lag is 0. A hanging transaction, or one that an application with a very long time-out leaves open, is
reported with its producer and the command to abort it, as `kafka-transactions.sh find-hanging` finds it (KIP-664).
Nothing is aborted here: only the application's owner can decide whether it is gone.

While the last stable offset stays the same, the same transaction holds it: what counts is for how long that offset was
seen with more behind it. `task` runs a check twice a minute; where the ends of logs move, it sends no request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, ConnectionLost, Loop, ProducerState, Wire, stable_ends

CODE = "AB234"
EVERY = 30.0
# Kafka's default of transaction.max.timeout.ms, in seconds: by then a broker has aborted every transaction that is not
# hanging, unless it was set higher.
LONGEST_OPEN = 900.0
# Seconds between checks of an idle partition: thousands may have no traffic.
ASK_IDLE_EVERY = 300.0


class StableEnd(NamedTuple):
    """A partition that is copied up to its last stable offset; times in monotonic seconds.

    Attributes:
        end: that offset.
        at: when it was first seen there, or last checked for more behind it.
        held_since: since when there is more behind it; None while there is nothing.
    """

    end: int
    at: float
    held_since: float | None = None


# By run and flow, as rounds are shorter than a transaction may be open, and a worker may run another flow in between.
_SEEN: dict[tuple[str, str], dict[Place, StableEnd]] = {}


def remembered(run: str, flow: str) -> dict[Place, StableEnd]:
    """Return what this process has seen of a flow's partitions; callers update it."""
    return _SEEN.setdefault((run, flow), {})


class OpenTransactions:
    """Finds which of a task's partitions are held back.

    Args:
        loop: the task's loop.
        wire: to the source cluster.
        bootstrap: its addresses, for the command that is proposed.
        channels: all channels of the task; the list may grow.
        seen: what earlier rounds have found.
    """

    def __init__(
        self,
        loop: Loop,
        wire: Wire,
        bootstrap: Sequence[str],
        channels: Sequence[Channel],
        seen: dict[Place, StableEnd],
    ) -> None:
        self._loop = loop
        self._wire = wire
        self._tool = f"kafka-transactions.sh --bootstrap-server {','.join(bootstrap)}"
        self._channels = channels
        self._seen = seen
        self._next = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether the next check is due; never while one runs."""
        if now < self._next:
            return False
        self._next = math.inf
        return True

    async def look(self, now: float) -> None:
        """Set the reason of each partition that is held back; a broker that does not answer changes nothing.

        Args:
            now: monotonic seconds.
        """
        asked: dict[int, list[Channel]] = {}
        for channel in self._channels:
            if channel.sides is not None and self._is_to_ask(channel, now):
                asked.setdefault(channel.sides.source.node, []).append(channel)
        try:
            await self._loop.together(partial(self._ask, node, channels, now) for node, channels in asked.items())
        finally:
            self._next = now + EVERY

    def _is_to_ask(self, channel: Channel, now: float) -> bool:
        """Return whether a partition's log end is to be checked, and note where it stands now."""
        if channel.state is not PartitionState.RUNNING or not channel.reads_committed:
            return False
        seen = self._seen.get(channel.place)
        has_moved = seen is None or seen.end != channel.end
        if has_moved and channel.reason is not None and channel.reason.code == CODE:
            channel.reason = None
        if channel.position != channel.end:
            # Just opened, or behind: its end is not certain, or there is still something to copy.
            return False
        if seen is None or has_moved:
            self._seen[channel.place] = StableEnd(channel.end, now)
            return False
        return seen.held_since is not None or now - seen.at >= ASK_IDLE_EVERY

    async def _ask(self, node: int, channels: Sequence[Channel], now: float) -> None:
        """Look up whether a broker's partitions hold more, and whose transaction holds it back."""
        places = {(channel.place.topic, channel.place.partition): channel for channel in channels}
        try:
            ends = await stable_ends(self._wire, node, list(places), committed=False)
        except (ConnectionLost, BrokerError):
            return
        late: list[tuple[Channel, int]] = []
        for place, end in ends.items():
            channel = places[place]
            stood, _, since = self._seen[channel.place]
            if channel.end != stood:
                # It goes on.
                continue
            if end <= channel.end:
                self._seen[channel.place] = StableEnd(channel.end, now)
            elif since is None:
                self._seen[channel.place] = StableEnd(channel.end, now, now)
            elif now - since >= LONGEST_OPEN:
                late.append((channel, end))
        await self._loop.together(partial(self._tell, node, channel, end, now) for channel, end in late)

    async def _tell(self, node: int, channel: Channel, end: int, now: float) -> None:
        """Set the reason of a partition that is held back, with the producer that holds it."""
        place = channel.place
        stood, _, since = self._seen[place]
        opened: ProducerState | str
        try:
            producers = await self._wire.producers(node, place.topic, place.partition)
        except ConnectionLost:
            return
        except BrokerError as error:
            opened = error.name
        else:
            holders = (one for one in producers if one.open_transaction and one.opened_at <= stood)
            first = min(holders, key=lambda one: one.opened_at, default=None)
            if first is None:
                # The transaction has ended, and the next fetch moves the end.
                return
            opened = first
        if channel.end == stood and channel.state is PartitionState.RUNNING and since is not None:
            channel.reason = why(place, (stood, end), int((now - since) // 60), opened, self._tool)


def why(place: Place, held: tuple[int, int], minutes: int, opened: ProducerState | str, tool: str) -> Reason:
    """Return the reason of a partition that is held back.

    Args:
        place: which.
        held: the last stable offset, and the end of what stands behind it.
        minutes: for how long at least.
        opened: the producer of the transaction, or the name of the error with which the broker refused to name it.
        tool: the command that ends transactions at the source.
    """
    stable, end = held
    log = f"{place.topic}/{place.partition}"
    if isinstance(opened, str):
        whose = f"its producer is unknown: the broker answers {opened}"
        remedy = "see which application began one there"
    else:
        where = f"--topic {place.topic} --partition {place.partition} --start-offset {opened.opened_at}"
        whose = f"of producer {opened.producer_id}, epoch {opened.epoch}"
        remedy = f"if its application is gone, `{tool} abort {where}` ends it"
    text = (
        f"{end - stable:,} offsets of {log} from {stable} on are held back at the source by a transaction that has "
        f"been open for {minutes} minutes or more ({whose}); they are copied once it ends: {remedy}"
    )
    return Reason(CODE, text)
