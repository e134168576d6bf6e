"""Fetches one side of a comparison in advance from the partition's leader, up to the side's limit."""

from __future__ import annotations

import time

from reconciler.records.read_committed import sift
from reconciler.records.split import split
from reconciler.replicator.transfer.pace import Quota
from reconciler.verify.comparison.side import Side
from reconciler.verify.patience import PATIENCE, RETRY, is_passing, newest
from reconciler.wire import EARLIEST, Bell, BrokerError, ConnectionLost, ErrorCode, FetchAsk, Loop, TopicInfo, Wire

_BYTES = 8 * 2**20
_WAIT_MS = 200
_IDLE = 0.2
# How long a log may return none of the records that it held when the comparison began.
_STANDSTILL = 30.0


class Feed:
    """Reads one partition.

    Args:
        loop: the loop of the comparison.
        wire: to the cluster; no other feed fetches over it.
        topic: as the cluster describes it.
        partition: its number.
        side: the side that it fills.
        committed: whether only committed records count.

    Attributes:
        room: ring it when there may be room again.
        jumped: the log start, if it has moved beyond the read position; reading goes on when this is cleared.
        trouble: why reading has ended.
        stopped: set it to end reading.
    """

    def __init__(self, loop: Loop, wire: Wire, topic: TopicInfo, partition: int, side: Side, committed: bool) -> None:
        self._loop = loop
        self._wire = wire
        self._topic = topic
        self._partition = partition
        self._side = side
        self._committed = committed
        self._answered = self._moved = time.monotonic()
        self.room: Bell = loop.bell()
        self.jumped: int | None = None
        self.trouble: Exception | None = None
        self.stopped = False

    @property
    def where(self) -> str:
        """The log and offset, for messages."""
        return f"{self._wire.cluster.where}, {self._topic.name}/{self._partition} at offset {self._side.read_to}"

    async def run(self, arrived: Bell, quota: Quota) -> None:
        """Read until `stopped`, or until there is trouble.

        Args:
            arrived: rung after each fetch, and when reading has failed.
            quota: bytes per second that may be read.
        """
        try:
            while not self.stopped:
                side = self._side
                if self.jumped is not None or side.read_to >= side.limit or side.is_full:
                    # No requests meanwhile, so the timers begin again.
                    self._moved = self._answered = time.monotonic()
                    await self.room.wait(_IDLE)
                elif pause := quota.pause(time.monotonic()):
                    await self._loop.sleep(min(pause, _IDLE))
                else:
                    await self._read(quota)
                    arrived.ring()
        except Exception as error:
            # Raised by the reader of this side.
            self.trouble = error
            arrived.ring()

    async def _read(self, quota: Quota) -> None:
        try:
            await self._fetch(quota)
            self._answered = time.monotonic()
        except (ConnectionLost, BrokerError) as error:
            if time.monotonic() - self._answered > PATIENCE or not is_passing(error):
                raise
            await self._loop.sleep(RETRY)
            self._topic = await newest(self._wire, self._topic)

    async def _fetch(self, quota: Quota) -> None:
        side, leader = self._side, self._topic.partitions[self._partition]
        size = quota.request_bytes(_BYTES)
        ask = FetchAsk(self._topic.name, self._topic.topic_id, self._partition, side.read_to, leader.epoch, size)
        answers = await self._wire.fetch(leader.node, [ask], _WAIT_MS, size, committed=self._committed)
        if not answers:
            # The broker throttles this client.
            return
        (answer,) = answers
        if answer.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._look_where_it_begins(leader.node)
            return
        answer.raise_error()
        quota.spend(len(answer.records))
        before = side.read_to
        side.add(sift(split(answer.records), before, answer.aborted))
        end = answer.last_stable_offset if self._committed else answer.high_watermark
        now = time.monotonic()
        if side.read_to > before:
            self._moved = now
        elif end >= side.limit:
            # Compaction has deleted the rest.
            side.nothing_more()
        elif now - self._moved > _STANDSTILL:
            message = f"the log is readable to {end}, and was to {side.limit} when the comparison began"
            raise TimeoutError(message)

    async def _look_where_it_begins(self, node: int) -> None:
        first = await self._wire.offset(node, self._topic.name, self._partition, EARLIEST)
        if first <= self._side.read_to:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends before offset {self._side.read_to}")
        self.jumped = first
