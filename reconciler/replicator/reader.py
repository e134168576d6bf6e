"""Reads from the source: one endless fetch per source broker, for all channels that want data.

`task` starts one reader for each broker that leads a partition. A reader only fills channels; it never writes, opens or
parks by itself, but hands each error to the channel it concerns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from reconciler.model.status import PartitionState, Reason
from reconciler.replicator import reasons
from reconciler.replicator.channel import Channel
from reconciler.replicator.pace import RequestSize
from reconciler.replicator.wire import Bell, ConnectionLost, ErrorCode, FetchAnswer, FetchAsk, FetchSession, Wire

# Waiting for new data may be long only when nothing else could come meanwhile.
_WAIT_MS = 500
_WAIT_WHILE_FULL_MS = 20
_PARTITION_BYTES = 2 * 2**20
# Across all channels of a task: beyond this nobody is asked for more.
_BUFFER_BYTES = 48 * 2**20
_IDLE = 0.05
_WAIT_WHILE_THROTTLED = 0.25


class Reader:
    """Fetches from one source broker.

    Args:
        wire: to the source cluster; long polls block its connections, so nobody else uses it.
        node: the broker.
        channels: all channels of the task; those that this broker leads are read.
        bell: rung by whoever makes room or opens a channel.
        arrived: called after batches were queued.
    """

    def __init__(
        self, wire: Wire, node: int, channels: Sequence[Channel], bell: Bell, arrived: Callable[[], None]
    ) -> None:
        self._wire = wire
        self._node = node
        self._channels = channels
        self._order = list(channels)
        self._arrived = arrived
        self._size = RequestSize(16 * 2**20)
        self._session = FetchSession(node, committed=True)
        self.bell = bell
        self.stopped = False

    def add(self, channel: Channel) -> None:
        """Read a channel too that the task got later."""
        self._order.append(channel)

    async def run(self) -> None:
        """Fetch until `stopped`."""
        while not self.stopped:
            wanted = self._wanted()
            if wanted and (pause := self._wire.throttled(self._node)):
                await self.bell.wait(min(pause, _WAIT_WHILE_THROTTLED))
            elif wanted:
                await self._fetch(wanted)
            else:
                await self.bell.wait(_IDLE)

    def _wanted(self) -> list[Channel]:
        if sum(channel.queued_bytes for channel in self._channels) >= _BUFFER_BYTES:
            return []
        return [c for c in self._order if c.wants_data() and c.sides is not None and c.sides.source.node == self._node]

    async def _fetch(self, wanted: Sequence[Channel]) -> None:
        asked = {(c.place.topic, c.place.partition): (c, c.fetch_at, c.opening) for c in wanted}
        full = any(c.queued_bytes for c in self._channels if c not in wanted)
        try:
            answers = await self._wire.fetch_more(
                self._session,
                [_ask(channel) for channel in wanted],
                _WAIT_WHILE_FULL_MS if full else _WAIT_MS,
                self._size.bytes,
            )
        except (ConnectionLost, ErrorCode) as error:
            self._size.shrink()
            reason = Reason("AB220", f"fetching from {self._wire.cluster.where}, node {self._node}: {error}")
            now = time.monotonic()
            for channel, _, opening in asked.values():
                if channel.opening == opening:
                    channel.reopen(reason, now)
            return
        self._size.grow()
        if self.stopped:
            return
        for answer in answers:
            self._hand_over(answer, *asked[answer.topic, answer.partition])
        # A broker fills its answer in the order of the request, and only the first batch may exceed the limits.
        served = {(answer.topic, answer.partition) for answer in answers if answer.records}
        self._order.sort(key=lambda channel: (channel.place.topic, channel.place.partition) in served)
        self._arrived()

    def _hand_over(self, answer: FetchAnswer, channel: Channel, asked_at: int, opening: int) -> None:
        now = time.monotonic()
        if not answer.error:
            channel.receive(answer, asked_at, opening, now)
        elif channel.opening == opening:
            state, reason = reasons.why_no_data(answer.error, answer.topic)
            if state is PartitionState.PARKED:
                channel.park(reason, now)
            else:
                channel.reopen(reason, now)


def _ask(channel: Channel) -> FetchAsk:
    sides, place = channel.sides, channel.place
    assert sides is not None, "a running channel knows its sides"
    return FetchAsk(
        place.topic, sides.source_id, place.partition, channel.fetch_at, sides.source.epoch, _PARTITION_BYTES
    )
