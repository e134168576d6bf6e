"""Writes to the target: requests with one batch for each channel that may send, several in flight at once.

`task` starts one sender for each broker that leads a remote partition, and offers it the channels that have batches. A
request is sent at once when nothing is in flight; otherwise small batches gather for a moment. Order within a partition
is kept because requests are sent in the order in which they were made, on one connection; under load there is a second
one, for other partitions (`produce_lanes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.rewrite import UNLIMITED
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.intake import CannotPass
from reconciler.replicator.transfer.dropped_requests import DroppedRequests
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch
from reconciler.replicator.transfer.pace import HELD_UP, SLOW_ANSWER, Quota, RequestSize, RoundTrip, Spare
from reconciler.replicator.transfer.produce_lanes import FIRST, SECOND, LaneRequest, ProduceLanes
from reconciler.wire import (
    Bell,
    BrokerError,
    Closed,
    ConnectionLost,
    Direct,
    Job,
    Loop,
    ProduceAnswer,
    ProduceAsk,
    UnreadableAnswer,
    Wire,
    post,
)
from reconciler.wire.protocol import fast_path

Sent = Sequence[tuple[Channel, InFlightBatch]]

_REQUEST_BYTES = 4 * 2**20
_IDLE = 0.5
# Fewer bytes than this wait for more, at most for so many seconds, and only while an answer is awaited.
_LITTLE = 64 * 1024
_PATIENCE = 0.001
# Bytes of the fast path do not count against the lanes' limit.
_BY_FAST_PATH = LaneRequest(FIRST, 0)


class Sender:
    """Writes to one target broker.

    Args:
        loop: the task's loop.
        wires: to the target cluster: the first takes all requests, the second more under load; None where one is
            enough.
        node: the broker.
        quota: bytes per second of all senders of the task together.
        written: called with each batch that was written at its own offset.
        made_room: called after each answer.

    Attributes:
        bell: wakes it when something that had to wait can be sent.
        lanes: the lanes of its requests.
        stopped: whether nothing more may be sent.
        expressed: called with what the fast path has written at its own offset; by default nothing is called.
        transactional_id: of the producer whose transactions it writes into, if any.
    """

    def __init__(
        self,
        loop: Loop,
        wires: tuple[Wire, Wire | None],
        node: int,
        quota: Quota,
        written: Callable[[Channel, InFlightBatch], None],
        made_room: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._wire, self._second = wire, second = wires
        self._wires = wire, second or wire
        self._node = node
        self._quota = quota
        self._written = written
        self._made_room = made_room
        self.transactional_id: str | None = None
        self.on_fast_written: Callable[[Sequence[FastPathBatch]], None] = lambda _: None
        self._ready: dict[Channel, None] = {}
        self.lanes = ProduceLanes()
        self._reaching: Job | None = None
        # Over each lane.
        self._sent_at = [0.0, 0.0]
        self._most = wire.cluster.clients.producer.max_request_size
        self._size = RequestSize(self._most or _REQUEST_BYTES)
        self._dropped = DroppedRequests()
        # The partition with that reason.
        self._told: Channel | None = None
        self._trip = RoundTrip()
        self._spare = Spare()
        self._failure: BaseException | None = None
        self.bell: Bell = loop.bell()
        self.stopped = False

    async def run(self) -> None:
        """Send what could not be sent at once, until `stopped`; requests in flight then are still answered."""
        while not self.stopped:
            await self.bell.wait(self._send_ready() or _IDLE)
            self.lanes.look(time.monotonic())

    def offer(self, channels: Iterable[Channel]) -> None:
        """Add channels that may have something to send, and send what may be sent now."""
        self._ready.update(dict.fromkeys(channels))
        if self._send_ready():
            # `run` waits for as long as that takes.
            self.bell.ring()

    def raise_failure(self) -> None:
        """Raise the error of processing an answer: a fault of this program."""
        if self._failure is not None:
            raise self._failure

    # --- sending -----------------------------------------------------------------------------------------------------

    def _send_ready(self) -> float:
        """Send as much as may be sent now; return the seconds that the rest must wait, 0 for an answer or nothing."""
        first = self._send_over(FIRST)
        if not self.lanes.are_two:
            return first
        second = self._send_over(SECOND)
        return min(first, second) or max(first, second)

    def _send_over(self, lane: int) -> float:
        while self._ready and not self.stopped and self.lanes.has_room(lane):
            now = time.monotonic()
            wire = self._wires[lane]
            pause = wire.throttled(self._node) or self._quota.pause(now) or self._patience(lane, now)
            if pause:
                return min(pause, _IDLE)
            sent = self._collect(lane, now)
            if not sent:
                return 0.0
            self._sent_at[lane] = now
            # All of them are counted before one may be lost.
            requests = [(one, self.lanes.left(lane, _size_of(one))) for one in self._within_bounds(sent)]
            for together, way in requests:
                self._send(wire, way, together, now)
        return 0.0

    def _patience(self, lane: int, now: float) -> float:
        """Return for how long it is worth waiting for more to send."""
        waited = now - self._sent_at[lane]
        if waited >= _PATIENCE or not self.lanes.under_way[lane]:
            return 0.0
        queued = 0
        for channel in self._ready:
            queued += channel.queued_bytes
            if queued >= _LITTLE:
                return 0.0
        return _PATIENCE - waited

    def _collect(self, lane: int, now: float) -> Sent:
        """Take one batch from each channel that may send, in turns, so that none waits for ever behind large ones."""
        sent: list[tuple[Channel, InFlightBatch]] = []
        size, most = 0, self._quota.request_bytes(min(self._size.bytes, self._bound or self._size.bytes))
        largest = self._dropped.most(now)
        # Over a quick line a full window costs less than merging does.
        has_time = self._spare.is_enough(now) and self._trip.seconds >= SLOW_ANSWER
        for channel in tuple(self._ready):
            # A channel that cannot send now is offered again when something arrives or is answered.
            del self._ready[channel]
            if not channel.can_send() or channel.sides is None or channel.sides.target.node != self._node:
                continue
            if (goes_over := self.lanes.lane(channel)) != lane:
                if goes_over is not None:
                    self._ready[channel] = None
                continue
            if largest is not None and not channel.keep_below(largest, self._closes, now):
                continue
            try:
                # What waits for acknowledgements needs fewer of them, whatever the number of its records.
                waits = now - channel.full_at < HELD_UP
                small = UNLIMITED if has_time and waits else self._trip.small
                sent_batch = channel.send(small, now, is_far=waits and self._trip.is_far)
            except CannotPass:
                # The channel holds the reason.
                continue
            sent.append((channel, sent_batch))
            if channel.queue.items:
                self._ready[channel] = None
            size += sent_batch.size
            if size >= most:
                break
        self._quota.spend(size)
        if sent and self.lanes.is_worth_more(size, [channel for channel, _ in sent], now):
            self._have_more()
        return sent

    def _within_bounds(self, sent: Sent) -> Sequence[Sent]:
        """Return batches as requests: where a bound is set, the last batch may exceed it only alone."""
        most = self._bound
        if most is None or len(sent) == 1 or _size_of(sent) <= most:
            return (sent,)
        return sent[:-1], sent[-1:]

    @property
    def _bound(self) -> int | None:
        """The bytes that requests may carry: as declared, or as the broker accepts."""
        found = self._dropped.bound
        return self._most if found is None else found if self._most is None else min(found, self._most)

    def _send(self, wire: Wire, way: LaneRequest, sent: Sent, now: float) -> None:
        self._dropped.sent(way.size)
        asks = [
            ProduceAsk(
                channel.place.remote, channel.sides.target_id, channel.place.partition, sent_batch.body, sent_batch.head
            )
            for channel, sent_batch in sent
            if channel.sides is not None
        ]
        lost, answered = partial(self._lost, sent, way), partial(self._answered, sent, way, now)
        post(wire, self._node, asks, lost, answered, self.transactional_id)

    def _have_more(self) -> None:
        """Connect a second lane, unless that is under way."""
        second = self._second
        if second is None or self._quota.is_bounded:
            return
        if self._reaching is None or self._reaching.is_done:
            self._reaching = self._loop.spawn(partial(self._reach, second))

    async def _reach(self, second: Wire) -> None:
        try:
            await second.connect()
            await second.reach(self._node)
        except (ConnectionLost, BrokerError):
            # A fault of the broker itself is reported by the first lane.
            self.lanes.failed(time.monotonic())
        except BaseException as failure:
            self._failure = self._failure or failure
        else:
            self.lanes.widen()
            self.bell.ring()

    # --- fast path ---------------------------------------------------------------------------------------------------

    def direct(self, by_id: bool) -> Direct | None:
        """Return the connection for a fast path; None where channels wait already, or a quota or bound applies.

        Args:
            by_id: whether topics have ids.
        """
        if self.stopped or self._ready or self._quota.is_bounded or self._most is not None or self.transactional_id:
            return None
        if self.lanes.are_two:
            # The fast path uses the first lane, whatever is in flight over the second.
            return None
        direct = self._wire.direct_produce(self._node, by_id)
        return direct if direct is not None and direct.is_open else None

    def send_fast(self, direct: Direct, sent: Sequence[FastPathBatch], now: float) -> None:
        """Send the batches of a fast path."""
        self.lanes.under_way[FIRST] += 1
        self._sent_at[FIRST] = now
        batches = [(entry.target, entry.index, sent_batch.head, sent_batch.body) for entry, sent_batch in sent]
        body = fast_path.produce_body(self._wire.timeout_ms, batches)
        direct.send(body, partial(self._fast_answered, direct, sent, now), partial(self._fast_lost, sent))

    def _fast_answered(self, direct: Direct, sent: Sequence[FastPathBatch], sent_at: float, data: memoryview) -> None:
        try:
            found = fast_path.produced(bytes(data), sent[0][0].by_id)
            if found is None or any(
                [found.get((s.target, s.partition)) != sent_batch.landing for s, sent_batch in sent]
            ):
                names = {entry.target: entry.channel.place.remote for entry, _ in sent}
                answers = self._wire.produced(names if sent[0][0].by_id else None, data)
                self._answered(
                    [(entry.channel, sent_batch) for entry, sent_batch in sent], _BY_FAST_PATH, sent_at, answers
                )
                return
            self.lanes.ended(_BY_FAST_PATH)
            now = time.monotonic()
            for entry, sent_batch in sent:
                entry.channel.stands(sent_batch, now)
            self.on_fast_written(sent)
            # A channel without room in its window is not in `_ready` any more.
            waiting = [entry.channel for entry, _ in sent if entry.channel.queue.items]
            if waiting or self._ready:
                self.offer(waiting)
        except UnreadableAnswer as error:
            self._fast_lost(sent, direct.refuse(error))
        except BaseException as failure:
            self._failure = self._failure or failure

    def _fast_lost(self, sent: Sequence[FastPathBatch], error: BaseException) -> None:
        self._lost([(entry.channel, sent_batch) for entry, sent_batch in sent], _BY_FAST_PATH, self._wire.lost(error))

    # --- answers -----------------------------------------------------------------------------------------------------

    def _lost(self, sent: Sent, way: LaneRequest, error: ConnectionLost) -> None:
        """Note, while the connection is closed, that no answer will come."""
        self.lanes.ended(way)
        self._size.shrink()
        now = time.monotonic()
        if way.lane == SECOND:
            self.lanes.failed(now)
        size, where = _size_of(sent), f"{self._wire.cluster.where}, node {self._node}"
        if self._dropped.lost(size, isinstance(error, Closed), now):
            reason = self._closes()
        else:
            reason = reasons.no_answer(error, f"writing to {where}")
        for channel, sent_batch in sent:
            channel.lost(sent_batch, reason, now, alone=len(sent) == 1)
        self.bell.ring()

    def _answered(self, sent: Sent, way: LaneRequest, sent_at: float, answers: Sequence[ProduceAnswer]) -> None:
        """Process an answer, and send what waited for it; an exception here would be lost with the library's future."""
        try:
            self.lanes.ended(way)
            now = time.monotonic()
            self._trip.took(now - sent_at, now)
            self._settle(sent, answers, now)
            self._dropped.answered(way.size)
            if self._dropped.is_known and (self._told is None or self._told.reason is None):
                self._tell(sent)
            self.offer([channel for channel, _ in sent if channel.queue.items])
            self._made_room()
        except BaseException as failure:
            self._failure = self._failure or failure

    def _settle(self, sent: Sent, answers: Sequence[ProduceAnswer], now: float) -> None:
        self._size.grow()
        by_place = {(answer.topic, answer.partition): answer for answer in answers}
        for channel, sent_batch in sent:
            answer = by_place.get((channel.place.remote, channel.place.partition))
            if answer is None:
                channel.lost(sent_batch, Reason("AB220", "the target's answer leaves this partition out"), now)
            elif channel.answered(sent_batch, answer, now):
                self._written(channel, sent_batch)

    def _tell(self, sent: Sent) -> None:
        """Set a reason on one running partition: requests are kept small, and what helps."""
        running = (one for one, _ in sent if one.state is PartitionState.RUNNING and one.reason is None)
        if (channel := next(running, None)) is not None:
            channel.reason = self._closes()
            self._told = channel

    def _closes(self) -> Reason:
        where = f"{self._wire.cluster.where}, node {self._node}"
        return reasons.closes_on_large(where, self._dropped.refused, self._dropped.passed)


def _size_of(sent: Sent) -> int:
    return sum(sent_batch.size for _, sent_batch in sent)
