"""Finds partitions whose source holds records back behind a transaction that nobody ends.

Readers of committed records stop at the last stable offset, so such a partition seems to have nothing more to copy: it
runs, and its lag is 0. What a broker forgets to end, or an application with a very long time-out leaves open, is named
with its producer and the way to abort it, as `kafka-transactions.sh find-hanging` finds it (KIP-664). Nothing is ended
here: whether an application is gone, only its owner knows.

While one last stable offset stands, it is one transaction that holds it: what counts is for how long the same offset
was seen with more behind it. `task` starts a look twice a minute; where ends of logs move, it asks nothing.
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
# Kafka's default of transaction.max.timeout.ms, in seconds: by then a broker has ended what it has not forgotten,
# unless it was set higher.
LONGEST_OPEN = 900.0
# Thousands of partitions may have no traffic.
ASK_IDLE_EVERY = 300.0


class SeenTransaction(NamedTuple):
    """What is known of a partition that is copied up to its last stable offset; times in monotonic seconds.

    Attributes:
        end: that offset.
        at: when it was first seen there, or asked whether more stands behind it.
        held_since: since when more stands behind it; None while nothing does.
    """

    end: int
    at: float
    held_since: float | None = None


# Rounds are shorter than a transaction may be open, and a worker may have another flow in between.
_SEEN: dict[tuple[str, str], dict[Place, SeenTransaction]] = {}


def remembered(run: str, flow: str) -> dict[Place, SeenTransaction]:
    """Return what this process has seen of a flow's partitions, to be kept up to date."""
    return _SEEN.setdefault((run, flow), {})


class OpenTransactions:
    """What is held back of a task's partitions.

    Args:
        loop: the task's loop.
        wire: to the source cluster.
        bootstrap: its addresses, for the command that is proposed.
        channels: all channels of the task; the list may grow.
        seen: what earlier rounds have seen.
    """

    def __init__(
        self,
        loop: Loop,
        wire: Wire,
        bootstrap: Sequence[str],
        channels: Sequence[Channel],
        seen: dict[Place, SeenTransaction],
    ) -> None:
        self._loop = loop
        self._wire = wire
        self._tool = f"kafka-transactions.sh --bootstrap-server {','.join(bootstrap)}"
        self._channels = channels
        self._seen = seen
        self._next = 0.0

    def is_due(self, now: float) -> bool:
        """Tell whether it is time to look again: never while somebody looks."""
        if now < self._next:
            return False
        self._next = math.inf
        return True

    async def look(self, now: float) -> None:
        """Say of each partition whether it is held back; who does not answer changes nothing.

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
        """Tell whether a partition's end is to be asked for, and take note of where it stands now."""
        if channel.state is not PartitionState.RUNNING or not channel.reads_committed:
            return False
        seen = self._seen.get(channel.place)
        has_moved = seen is None or seen.end != channel.end
        if has_moved and channel.reason is not None and channel.reason.code == CODE:
            channel.reason = None
        if channel.position != channel.end:
            # Just opened, or behind: its end is not known for certain, or nobody waits there.
            return False
        if seen is None or has_moved:
            self._seen[channel.place] = SeenTransaction(channel.end, now)
            return False
        return seen.held_since is not None or now - seen.at >= ASK_IDLE_EVERY

    async def _ask(self, node: int, channels: Sequence[Channel], now: float) -> None:
        """Ask a broker whether there is more in its partitions, and whose transaction holds it back."""
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
                self._seen[channel.place] = SeenTransaction(channel.end, now)
            elif since is None:
                self._seen[channel.place] = SeenTransaction(channel.end, now, now)
            elif now - since >= LONGEST_OPEN:
                late.append((channel, end))
        await self._loop.together(partial(self._tell, node, channel, end, now) for channel, end in late)

    async def _tell(self, node: int, channel: Channel, end: int, now: float) -> None:
        """Say that a partition is held back, and by whom."""
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
                # It has ended, and the next fetch will tell.
                return
            opened = first
        if channel.end == stood and channel.state is PartitionState.RUNNING and since is not None:
            channel.reason = why(place, (stood, end), int((now - since) // 60), opened, self._tool)


def why(place: Place, held: tuple[int, int], minutes: int, opened: ProducerState | str, tool: str) -> Reason:
    """Return what is said of a partition that is held back.

    Args:
        place: which.
        held: the last stable offset, and the end of what stands behind it.
        minutes: for how long at least.
        opened: whose transaction it is, or the error with which a broker does not say.
        tool: the command that ends transactions at the source.
    """
    stable, end = held
    log = f"{place.topic}/{place.partition}"
    if isinstance(opened, str):
        whose = f"the broker does not say whose ({opened})"
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
