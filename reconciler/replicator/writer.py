"""Writes to the target: requests with one batch for each channel that may send, several under way at once.

`task` starts one writer for each broker that leads a remote partition. Order within a partition is kept because
requests leave in the order in which they were made, on one connection.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from reconciler.model.status import Reason
from reconciler.replicator.channel import Channel, Parcel
from reconciler.replicator.pace import RequestSize
from reconciler.replicator.wire import Bell, ConnectionLost, Job, Loop, ProduceAnswer, ProduceAsk, Wire

Sent = Sequence[tuple[Channel, Parcel]]

# A broker serves one request of a connection after the other: more of them only wait in its socket.
_REQUESTS = 5
_IDLE = 0.5


class Writer:
    """Writes to one target broker.

    Args:
        loop: the task's loop.
        wire: to the target cluster.
        node: the broker.
        channels: all channels of the task; those that this broker leads are written.
        written: called with each parcel that stands at its own offset.
        made_room: called after each answer.

    Attributes:
        jobs: what waits for answers; a failure in one of them is a fault of this program.
    """

    def __init__(
        self,
        loop: Loop,
        wire: Wire,
        node: int,
        channels: Sequence[Channel],
        written: Callable[[Channel, Parcel], None],
        made_room: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._wire = wire
        self._node = node
        self._channels = channels
        self._written = written
        self._made_room = made_room
        self._under_way = 0
        self._turn = 0
        self._size = RequestSize(4 * 2**20)
        self.jobs: list[Job] = []
        self.bell: Bell = loop.bell()
        self.stopped = False

    async def run(self) -> None:
        """Send until `stopped`; what is in flight then is still answered."""
        while not self.stopped:
            pause = self._wire.throttled(self._node)
            if not pause and self._under_way < _REQUESTS and (sent := self._collect()):
                self._send(sent)
            else:
                await self.bell.wait(min(pause, _IDLE) or _IDLE)

    def _collect(self) -> Sent:
        """Take one parcel from each channel that may send, in turns, so that none waits for ever behind large ones."""
        self._turn += 1
        count = len(self._channels)
        sent: list[tuple[Channel, Parcel]] = []
        size = 0
        for step in range(count):
            channel = self._channels[(self._turn + step) % count]
            if channel.can_send() and channel.sides is not None and channel.sides.target.node == self._node:
                parcel = channel.send()
                sent.append((channel, parcel))
                size += len(parcel.data)
                if size >= self._size.bytes:
                    break
        return sent

    def _send(self, sent: Sent) -> None:
        asks = [
            ProduceAsk(channel.place.remote, channel.sides.target_id, channel.place.partition, parcel.data)
            for channel, parcel in sent
            if channel.sides is not None
        ]
        self._under_way += 1
        # The request is on its way when this returns; only the answer is waited for beside us.
        pending = self._wire.produce(self._node, asks, partial(self._lost, sent))

        async def settle() -> None:
            try:
                await self._settle(sent, pending)
            finally:
                self._under_way -= 1
                self.bell.ring()
                self._made_room()

        self.jobs = [job for job in self.jobs if not job.is_done]
        self.jobs.append(self._loop.spawn(settle))

    def _lost(self, sent: Sent, error: ConnectionLost) -> None:
        """Take note, while the connection falls, that no answer will come."""
        self._size.shrink()
        now = time.monotonic()
        reason = Reason("AB220", f"writing to {self._wire.cluster.where}, node {self._node}: {error}")
        for channel, parcel in sent:
            channel.lost(parcel, reason, now)

    async def _settle(self, sent: Sent, pending: Awaitable[list[ProduceAnswer]]) -> None:
        try:
            answers = await pending
        except ConnectionLost:
            return  # `_lost` has dealt with it
        self._size.grow()
        now = time.monotonic()
        by_place = {(answer.topic, answer.partition): answer for answer in answers}
        for channel, parcel in sent:
            answer = by_place.get((channel.place.remote, channel.place.partition))
            if answer is None:
                channel.lost(parcel, Reason("AB220", "the target's answer leaves this partition out"), now)
            elif channel.answered(parcel, answer, now):
                self._written(channel, parcel)
