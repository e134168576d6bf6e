"""Reads from the source: one endless fetch per source broker, for all channels that have room.

`task` starts one fetcher for each broker that leads a partition, and more over a long line (`fetch_lanes`). A fetcher
only fills channels; it never writes, opens or parks by itself, but passes each error to the channel it concerns.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from reconciler.model.tasks.status import Reason
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import QUEUE_BYTES, SLOW_BYTES, Channel
from reconciler.replicator.transfer.fast_path import MUCH, FastPath, FastPathTerms, routes
from reconciler.replicator.transfer.fetch_lanes import MOST_LANES, NEAR_LANES, FetchKey, FetchLanes
from reconciler.replicator.transfer.pace import FetchRest, FetchSize, FetchWait, Pace, PartitionFetchSize
from reconciler.replicator.transfer.preferred_replica import PreferredReplicas
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import BrokerError, ConnectionLost, FetchAnswer, FetchAsk, FetchBounds, FetchSession, Loop, Wire

# A fetch may wait long only when no other channel could get room meanwhile.
_WAIT_WHILE_FULL_MS = 20
_PARTITION_BYTES = 2 * 2**20
_REQUEST_BYTES = 4 * 2**20
# Bytes of all fetches in flight over a long line: a worker has memory for as much again.
_FAR_BYTES_TOGETHER = 32 * 2**20
# With so many fetchers at work, of many brokers, each keeps the usual size: more lanes would only take more memory.
_MOST_READERS = 10
# Bytes queued across all channels of a task, or two requests if that is more: beyond this nothing is fetched.
_BUFFER_BYTES = 12 * 2**20
# Brokers check every partition of a fetch before they answer: with so many partitions a record waits for that, so lanes
# share them. With half of them this ends.
_CROWD = 1_000
_IDLE = 0.05
_WAIT_WHILE_THROTTLED = 0.25
_BREATH = 0.001
# Channels without progress are checked this seldom (seconds): there may be thousands.
_LOOK_EVERY = 1.0
# After an answer with fewer bytes the fetcher rests: low traffic would be fetched record by record.
_LITTLE = MUCH
# So many small answers, each within so many seconds, start the fast path.
_DENSE, _SOON = 4, 0.012
# During a fast path channels are checked this seldom (seconds): whatever happens to a channel ends it.
_BY_FAST_PATH = 4.0
_NOBODY = _NOWHERE = -1


class Fetcher:
    """Fetches from one source broker.

    Args:
        loop: the task's loop.
        wire: to the source cluster; long polls block its connections, so no other part uses it.
        beat: which broker, isolation level and lane.
        channels: all channels of the task, also later ones; those that this broker leads are read.
        pace: the quota, which bounds what is read in advance, and how long low traffic rests.
        arrived: called with the channels that got records.

    Attributes:
        bell: to be rung when there is room again.
        nearest: from which broker each channel is fetched; by default its leader.
        lanes: which fetcher reads which channel of a broker; by default this one alone.
        peers: all fetchers that share the read-ahead; by default this one alone.
    """

    def __init__(
        self,
        loop: Loop,
        wire: Wire,
        key: FetchKey,
        channels: Sequence[Channel],
        pace: Pace,
        arrived: Callable[[Collection[Channel]], None],
    ) -> None:
        self._loop = loop
        self._wire = wire
        self._key = key
        self._channels = channels
        self._arrived = arrived
        self.nearest = PreferredReplicas("", lambda _: None)
        self.lanes = FetchLanes(lambda _: None, most=1)
        self._quota = pace.quota
        declared = wire.cluster.clients.consumer
        self._wait, self._most = FetchWait(declared.fetch_max_wait_ms, time.monotonic()), declared.fetch_max_bytes
        self._most_of_one = declared.max_partition_fetch_bytes or self._most
        self._size = FetchSize(self._quota.ahead(min(_REQUEST_BYTES, self._most)), self._quota.ahead(self._most))
        self._session = FetchSession(key.node, key.committed)
        self._asks: dict[Channel, FetchAsk] = {}
        self._asked: dict[tuple[str, int], tuple[Channel, int, int]] = {}
        self._stirred: set[Channel] = set()
        self._look_at = 0.0
        # How many channels are read from its broker, over all lanes, and whether they are a crowd.
        self._led = 0
        self._is_crowded = False
        self._partition_sizes: defaultdict[Channel, PartitionFetchSize] = defaultdict(
            lambda: PartitionFetchSize(SLOW_BYTES, self._most)
        )
        self._linger = pace.linger
        self._rest = FetchRest(pace.linger, time.thread_time())
        # How many answers with a little came one right after the other.
        self._dense = 0
        self.sender_of: Callable[[int], Sender | None] = lambda _: None
        self.bell = loop.bell()
        self.peers: Collection[Fetcher] = (self,)
        self.stopped = False

    async def run(self) -> None:
        """Fetch until `stopped`."""
        while not self.stopped:
            full = self._look(time.monotonic())
            if self._key.lane >= self.lanes.count(self._key):
                self.stopped = True
            elif not self._asks or sum(fetcher.queued_bytes for fetcher in self.peers) >= self._room:
                await self.bell.wait(_IDLE)
            elif pause := self._wire.throttled(self._key.node):
                await self.bell.wait(min(pause, _WAIT_WHILE_THROTTLED))
            elif not full and (path := self._fast_path()) is not None:
                await self._run_fast_path(path)
            elif await self._fetch(full) < _LITTLE and (rest := self._rest.seconds(time.thread_time())):
                await self._loop.sleep(rest)

    # --- fast path --------------------------------------------------------------------------------------------------

    def _goes_on(self, now: float) -> bool:
        return self._look_at > 0 and now < self._look_at + _BY_FAST_PATH

    def _fast_path(self) -> FastPath | None:
        """Return a fast path for all channels while traffic is low; None where one of them cannot use it."""
        if self._dense < _DENSE or not self._linger or self._key.lane or self.lanes.count(self._key) > 1:
            return None
        over = routes(self._wire, self._session, self._asks, self.sender_of)
        if over is None:
            self._dense = 0
            return None
        rack = self._session.rack = self.nearest.rack(time.monotonic())
        bounds = FetchBounds(0, self._size.bytes, self._session.committed, rack, MUCH)
        terms = FastPathTerms(bounds, self._rest, self._goes_on, lambda: self.stopped)
        return FastPath(self._loop, self._wire, self._session, over, terms)

    async def _run_fast_path(self, path: FastPath) -> None:
        """Run the fast path until it is over, and process what it left."""
        changed = self._session.turn_on()
        if changed is None:
            self._dense = 0
            return
        try:
            await path.run(self._asks, changed)
        except (ConnectionLost, BrokerError) as error:
            self._give_up(error)
            return
        for entry in path.entries:
            place = entry.channel.place
            self._asked[place.topic, place.partition] = entry.channel, entry.asked, entry.opening
            if entry.asked != (ask := self._asks[entry.channel]).offset:
                # The broker's session has a later offset: even if this one is to be fetched again, it must be sent.
                self._asks[entry.channel] = ask._replace(offset=_NOWHERE)
            self._stirred.add(entry.channel)
        if self._goes_on(time.monotonic()):
            # It ended for another reason than its time.
            self._dense = 0
        if not self.stopped:
            await self._receive(path.left)

    # -----------------------------------------------------------------------------------------------------------------

    @property
    def _room(self) -> int:
        """Bytes that may be read in advance."""
        return self._quota.ahead(max(_BUFFER_BYTES, 2 * self._size.bytes))

    def look_again(self) -> None:
        """Check all channels before the next request: one was opened."""
        self._look_at = 0.0
        # Others may be opened soon, and would wait for this one's answer.
        self._wait.came(time.monotonic())
        self.bell.ring()

    @property
    def is_asking(self) -> bool:
        """Whether there is a channel to fetch."""
        return bool(self._asks)

    @property
    def is_at_work(self) -> bool:
        """Whether there are channels of its broker and isolation level, over any lane."""
        return self._led > 0 and not self.stopped

    def is_of(self, key: FetchKey) -> bool:
        """Return whether it reads the same as the first lane `key`, over any lane."""
        return self._key._replace(lane=0) == key

    def is_full(self, now: float) -> bool:
        """Return whether an answer was full a short while ago."""
        return self._size.is_full(now)

    @property
    def queued_bytes(self) -> int:
        """Bytes read and not sent yet."""
        return sum(channel.queued_bytes for channel in self._stirred)

    def _look(self, now: float) -> bool:
        """Add the channels with room to the next fetch; return whether channels wait for room.

        That changes with what they got, with what of it was sent, and when they are opened. Other changes are seen a
        little later: answers for another opening than the current one are ignored.
        """
        everybody = now >= self._look_at
        self._look_at = now + _LOOK_EVERY if everybody else self._look_at
        full, most, led = False, max(QUEUE_BYTES, self._size.bytes), 0
        for channel in self._channels if everybody else self._stirred:
            if channel.reads_committed is not self._key.committed:
                continue
            is_near = self.nearest.node(channel) == self._key.node
            led += is_near
            leads = is_near and self.lanes.reads(self._key, channel)
            if leads and everybody:
                self.nearest.look(channel, now)
            wants = channel.wants_data(most)
            if wants and leads:
                self._want(channel)
            elif channel in self._asks:
                self._forget(channel)
            if channel.queued_bytes and not wants:
                full = True
        self._stirred = {channel for channel in self._stirred if channel.queued_bytes and self._leads(channel)}
        if everybody:
            self._led = led
            self._is_crowded = led >= (_CROWD // 2 if self._is_crowded else _CROWD)
            # All channels that this fetcher read may be gone.
            self._mind_lanes(now)
        return full

    def _leads(self, channel: Channel) -> bool:
        return self.nearest.node(channel) == self._key.node and self.lanes.reads(self._key, channel)

    async def _fetch(self, full: bool) -> int:
        """Fetch once and pass the answers to the channels; return their bytes."""
        began = time.monotonic()
        wait_ms = min(_WAIT_WHILE_FULL_MS, self._wait.ms(began)) if full else self._wait.ms(began)
        self._session.rack = self.nearest.rack(began)
        try:
            if self._key.lane:
                await self._wire.connect()
            answers = await self._wire.fetch_more(self._session, wait_ms, self._size.bytes)
        except (ConnectionLost, BrokerError) as error:
            self._give_up(error)
            return _LITTLE
        arrived = time.monotonic()
        if self.stopped:
            return _LITTLE
        size = await self._receive(answers)
        if size:
            self._wait.came(arrived)
        self._size.answered(size, self._session.waited, arrived - began, arrived)
        self._dense = self._dense + 1 if 0 < size < _LITTLE and arrived - began < _SOON else 0
        self._mind_lanes(arrived)
        return size

    async def _receive(self, answers: Iterable[FetchAnswer]) -> int:
        """Pass answers to the channels; return their bytes."""
        served: list[Channel] = []
        size = 0
        for answer in answers:
            channel, asked_at, opening = self._asked[answer.topic, answer.partition]
            self._stirred.add(channel)
            at = time.monotonic()
            self._hand_over(answer, channel, asked_at, opening)
            if self._partition_sizes[channel].was_long(len(answer.records), time.monotonic() - at):
                await self._loop.sleep(_BREATH)
            if answer.records:
                served.append(channel)
                size += len(answer.records)
        self._arrived(served)
        return size

    def _mind_lanes(self, now: float) -> None:
        """Use more lanes for a long line or many partitions, and share the bytes in flight among them."""
        asking = 1
        if self._size.is_wide:
            # Lanes that are still to come count as well: memory for a large answer is kept for the next one.
            asking = max(sum(fetcher.is_asking for fetcher in self.peers), min(len(self._asks), MOST_LANES), 1)
            self._size.most = self._quota.ahead(min(self._most, max(_FAR_BYTES_TOGETHER, self._most) // asking))
        if self._key.lane:
            return
        if self._size.is_wide or self._is_crowded:
            if asking < _MOST_READERS:
                self.lanes.widen(self._key, now)
        elif self._has_backlog(now):
            self.lanes.widen(self._key, now, NEAR_LANES)
        else:
            self.lanes.narrow(self._key)

    def _has_backlog(self, now: float) -> bool:
        """Return whether one broker alone has more than fits into answers, of channels that lanes can share.

        With several brokers, one makes its answer while another's is processed.
        """
        if self._led < NEAR_LANES or self._quota.is_bounded or not any(fetcher.is_full(now) for fetcher in self.peers):
            return False
        return all(fetcher.is_of(self._key) for fetcher in self.peers if fetcher.is_at_work)

    def _give_up(self, error: ConnectionLost | BrokerError) -> None:
        """Note that the broker does not answer, or refuses the whole request."""
        self._size.shrink()
        now = time.monotonic()
        self._look_at = 0.0
        if self._key.lane:
            # A fault of the broker itself is reported by the first lane.
            self.lanes.failed(self._key, now)
            return
        what = f"fetching from {self._wire.cluster.where}, node {self._key.node}"
        if isinstance(error, ConnectionLost):
            reason = reasons.no_answer(error, what)
        else:
            reason = Reason("AB220", f"{what}: {error}")
        for channel, _, opening in self._asked.values():
            if channel.opening != opening:
                continue
            if self._reads_replica_of(channel):
                self.nearest.failed(channel, now)
            else:
                channel.reopen(reason, now)

    def _reads_replica_of(self, channel: Channel) -> bool:
        return self._leads(channel) and self.nearest.is_replica(channel)

    def _hand_over(self, answer: FetchAnswer, channel: Channel, asked_at: int, opening: int) -> None:
        now = time.monotonic()
        if not answer.error:
            if answer.nearest not in (_NOBODY, self._key.node) and channel.opening == opening:
                self.nearest.named(channel, answer.nearest, now)
            channel.receive(answer, asked_at, opening, now)
        elif channel.opening == opening:
            if self._reads_replica_of(channel):
                # It lags behind, or is no replica any more; a fault of the log itself is reported by the leader.
                self.nearest.failed(channel, now)
            else:
                channel.end_opening(*reasons.why_no_data(answer.error, answer.topic, asked_at), now)

    def _want(self, channel: Channel) -> None:
        """Add the next offset of a channel to the fetch."""
        sides, place, ask = channel.sides, channel.place, self._asks.get(channel)
        assert sides is not None, "a running channel has its sides"
        same = ask is not None and ask.offset == channel.fetch_at and ask.leader_epoch == sides.source.epoch
        if ask is None or not same or ask.topic_id != sides.source_id:
            if ask is not None and ask.topic_id != sides.source_id:
                self._session.forget(ask)
            # A single channel gets the whole size: half of it would never count as full and let the size grow.
            share = self._size.bytes if self._asks.keys() <= {channel} else self._size.bytes // 2
            usual = max(_PARTITION_BYTES, share)
            size = SLOW_BYTES if channel.is_slow else min(usual, self._partition_sizes[channel].bytes)
            size = min(size, self._most_of_one)
            ask = FetchAsk(place.topic, sides.source_id, place.partition, channel.fetch_at, sides.source.epoch, size)
            self._asks[channel] = ask
            self._session.want(ask)
        self._asked[place.topic, place.partition] = channel, channel.fetch_at, channel.opening

    def _forget(self, channel: Channel) -> None:
        """Remove a channel from the fetch for now."""
        self._session.forget(self._asks.pop(channel))
        del self._asked[channel.place.topic, channel.place.partition]
