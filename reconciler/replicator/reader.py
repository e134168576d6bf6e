"""Reads from the source: one endless fetch per source broker, for all channels that want data.

`task` starts one reader for each broker that leads a partition. A reader only fills channels; it never writes, opens or
parks by itself, but hands each error to the channel it concerns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from reconciler.model.status import Reason
from reconciler.replicator import reasons
from reconciler.replicator.channel import SLOW_BYTES, Channel
from reconciler.replicator.pace import Pace, RequestSize, Rest
from reconciler.replicator.wire import ConnectionLost, ErrorCode, FetchAnswer, FetchAsk, FetchSession, Loop, Wire

# Waiting for new data may be long only when nothing else could come meanwhile.
_WAIT_MS = 500
_WAIT_WHILE_FULL_MS = 20
_PARTITION_BYTES = 2 * 2**20
_REQUEST_BYTES = 4 * 2**20
# Across all channels of a task: beyond this nobody is asked for more.
_BUFFER_BYTES = 12 * 2**20
_IDLE = 0.05
_WAIT_WHILE_THROTTLED = 0.25
# An answer that takes longer than this to go through holds the others up, and the lease with them: less is asked for.
_LONG_WORK = 0.02
_BREATH = 0.001
# After an answer with less than this a rest: what trickles in would be asked for record by record.
_LITTLE = 16 * 1024


class Beat(NamedTuple):
    """What one reader reads: of one broker, for the channels that want committed records alone, or for the others."""

    node: int
    committed: bool


class Reader:
    """Fetches from one source broker.

    Args:
        loop: the task's loop.
        wire: to the source cluster; long polls block its connections, so nobody else uses it.
        beat: of which broker, and which records of transactions.
        channels: all channels of the task, also those that come later; those that this broker leads are read.
        pace: what may be sent in a second, which bounds what is read in advance, and how long trickles rest.
        arrived: called with the channels that got something.

    Attributes:
        bell: rung by whoever makes room or opens a channel.
    """

    def __init__(
        self,
        loop: Loop,
        wire: Wire,
        beat: Beat,
        channels: Sequence[Channel],
        pace: Pace,
        arrived: Callable[[Collection[Channel]], None],
    ) -> None:
        self._loop = loop
        self._wire = wire
        self._node = beat.node
        self._channels = channels
        self._committed = beat.committed
        self._arrived = arrived
        self._most = pace.quota.ahead(_BUFFER_BYTES)
        self._size = RequestSize(min(_REQUEST_BYTES, self._most))
        self._session = FetchSession(*beat)
        self._asks: dict[Channel, FetchAsk] = {}
        self._served: set[Channel] = set()
        self._laborious: set[Channel] = set()
        self._rest = Rest(pace.linger, time.thread_time())
        self.bell = loop.bell()
        self.stopped = False

    async def run(self) -> None:
        """Fetch until `stopped`."""
        while not self.stopped:
            wanted, full = self._wanted()
            if wanted and (pause := self._wire.throttled(self._node)):
                await self.bell.wait(min(pause, _WAIT_WHILE_THROTTLED))
            elif not wanted:
                await self.bell.wait(_IDLE)
            elif await self._fetch(wanted, full) < _LITTLE and (rest := self._rest.seconds(time.thread_time())):
                await self._loop.sleep(rest)

    def _wanted(self) -> tuple[list[Channel], bool]:
        """Return the channels to ask for, and whether others wait until there is room."""
        queued, full = 0, False
        wanted: list[Channel] = []
        for channel in self._channels:
            queued += channel.queued_bytes
            if channel.reads_committed is not self._committed:
                continue
            if channel.wants_data():
                if channel.sides is not None and channel.sides.source.node == self._node:
                    wanted.append(channel)
            elif channel.queued_bytes:
                full = True
        if queued >= self._most:
            return [], True
        # A broker fills its answer in the order of the request, and only the first batch may exceed the limits. With a
        # session it takes turns by itself.
        wanted.sort(key=self._served.__contains__)
        return wanted, full

    async def _fetch(self, wanted: Sequence[Channel], full: bool) -> int:
        """Fetch once and hand over what came; return how many bytes that were."""
        asked = {(c.place.topic, c.place.partition): (c, c.fetch_at, c.opening) for c in wanted}
        try:
            answers = await self._wire.fetch_more(
                self._session,
                [self._ask(channel) for channel in wanted],
                _WAIT_WHILE_FULL_MS if full else _WAIT_MS,
                self._size.bytes,
            )
        except (ConnectionLost, ErrorCode) as error:
            self._size.shrink()
            what = f"fetching from {self._wire.cluster.where}, node {self._node}"
            if isinstance(error, ConnectionLost):
                reason = reasons.no_answer(error, what)
            else:
                reason = Reason("AB220", f"{what}: {error}")
            now = time.monotonic()
            for channel, _, opening in asked.values():
                if channel.opening == opening:
                    channel.reopen(reason, now)
            return _LITTLE
        self._size.grow()
        if self.stopped:
            return _LITTLE
        self._served.clear()
        size = 0
        for answer in answers:
            channel, asked_at, opening = asked[answer.topic, answer.partition]
            began = time.monotonic()
            self._hand_over(answer, channel, asked_at, opening)
            if time.monotonic() - began > _LONG_WORK:
                self._laborious.add(channel)
                await self._loop.sleep(_BREATH)
            if answer.records:
                self._served.add(channel)
                size += len(answer.records)
        self._arrived(self._served)
        return size

    def _hand_over(self, answer: FetchAnswer, channel: Channel, asked_at: int, opening: int) -> None:
        now = time.monotonic()
        if not answer.error:
            channel.receive(answer, asked_at, opening, now)
        elif channel.opening == opening:
            channel.end_opening(*reasons.why_no_data(answer.error, answer.topic), now)

    def _ask(self, channel: Channel) -> FetchAsk:
        """Return what to ask for a channel; the same value as last time when nothing has changed."""
        sides, place, ask = channel.sides, channel.place, self._asks.get(channel)
        assert sides is not None, "a running channel knows its sides"
        same = ask is not None and ask.offset == channel.fetch_at and ask.leader_epoch == sides.source.epoch
        if ask is None or not same or ask.topic_id != sides.source_id:
            size = SLOW_BYTES if channel.is_slow or channel in self._laborious else _PARTITION_BYTES
            ask = FetchAsk(place.topic, sides.source_id, place.partition, channel.fetch_at, sides.source.epoch, size)
            self._asks[channel] = ask
        return ask
