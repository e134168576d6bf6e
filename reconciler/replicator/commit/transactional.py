"""The committer: one task's transactions, one after the other, for all its channels with offsets of their own.

A transaction holds records and the positions behind them, so that either both are there or neither is. It begins with
the first channel that has something to send, takes in others as they come, and is committed after a while. What cannot
be certain (a lost answer, a moved leader) aborts it: its channels go on at the positions that were committed.

Who may commit is decided by the group: a position is committed in the name of a member of its current generation
(KIP-447), so a task that lost its partitions cannot.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.commit.base import (
    NOT_YET,
    PAUSE,
    PRODUCER_PATIENCE,
    CommitContext,
    Committer,
    SyncWriter,
    UncertainOutcome,
)
from reconciler.replicator.commit.position_recovery import PositionRecovery
from reconciler.replicator.commit.unstable_offsets import end_positions
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.lease.lease import Lease
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_syncs import OffsetSync, with_position
from reconciler.replicator.partition.place import differ
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import GROUP, BrokerError, ConnectionLost, ErrorCode, Loop, TopicInfo, Wire, when_ready
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log, PartitionsRefused
from reconciler.wire.requests.transactions import Transactor, settle

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 512 * 2**20
# Positions that moved over offsets without records are committed as seldom.
_GAPS_EVERY = 5.0
_IDLE = 0.5
# Markers are written right after the end of a transaction is answered.
_QUIET = 2.0
_MARKER_PATIENCE = 5.0


class TransactionalCommitter(Committer):
    """The transactions of one task in one round."""

    _waited_for = "transactions cannot begin"

    def __init__(
        self,
        loop: Loop,
        wire: Wire,
        terms: CommitContext,
        lease: Lease,
        offer: Callable[[Collection[Channel]], None],
        written: Callable[[Channel, InFlightBatch], None],
    ) -> None:
        super().__init__(loop, wire, terms, lease, offer, written)
        self._inside: list[TranslatedChannel] = []
        self._producer: Transactor | None = None
        self._began: float | None = None
        self._gaps_at = 0.0
        self._sync_sequence = 0
        self._doubt: str | None = None
        # The topic of the offset syncs that the open transaction holds, with its leader.
        self._syncs_at: TopicInfo | None = None
        # One partition whose position the transaction before holds.
        self._last_moved: Log | None = None
        # The channels of which a transaction was committed that they have had no other since, and when to look at them.
        self._quiet: set[TranslatedChannel] = set()
        self._look_at = math.inf

    def failed(self, channel: Channel) -> None:
        """Abort the open transaction, as what it holds of `channel` is not certain."""
        place = channel.place
        self._doubt = self._doubt or f"it is not certain what was written to {place.remote}/{place.partition}"
        self.bell.ring()

    async def producer(self, channel: TranslatedChannel) -> tuple[int, int]:
        """Return the producer's id and epoch, once it has one and its transaction holds nothing of `channel`."""
        deadline = time.monotonic() + PRODUCER_PATIENCE
        while self._producer is None or self._doubt is not None or channel in self._inside:
            await self._have_patience(deadline if self._producer is None else math.inf)
        return self._producer.producer_id, self._producer.epoch

    async def run(self) -> None:
        """Begin and commit transactions until `stopped`; the last one is committed, too."""
        while True:
            try:
                if self._producer is None:
                    await self._settle()
                if self._doubt is not None:
                    raise UncertainOutcome(self._doubt)
                self._holding()
                if self.stopped:
                    await self._commit()
                    return
                await self._turn()
            except (ConnectionLost, BrokerError, UncertainOutcome, Disagreement) as error:
                self._trouble = error
                await self._abort(str(error))
                if self.stopped:
                    await self._leave_nothing_open()
                    return
                # What is aborted stays in the target's log: trouble that lasts must not fill it.
                await self._back_off()

    async def _leave_nothing_open(self) -> None:
        """Abort what may be open, or readers of committed records would wait for it to time out."""
        with contextlib.suppress(ConnectionLost, BrokerError, Disagreement, UncertainOutcome):
            await self._settle()

    async def _turn(self) -> None:
        """Let channels in, commit what is due, or wait for either."""
        now = time.monotonic()
        wanting = [c for c in self._channels.values() if c.wants_admission]
        if wanting:
            await self._let_in(wanting)
        elif self._is_due(now):
            await self._commit()
        elif now >= self._look_at:
            await self._look_again()
        else:
            until = _IDLE if self._began is None else self._began + self._terms.interval - now
            await self.bell.wait(max(PAUSE, until))

    def _is_due(self, now: float) -> bool:
        if self._began is not None:
            held = sum(channel.held for channel in self._inside)
            return now - self._began >= self._terms.interval or held >= _MOST_BYTES
        if now < self._gaps_at:
            return False
        self._gaps_at = now + _GAPS_EVERY
        return any(self._moved())

    def _moved(self) -> Iterable[TranslatedChannel]:
        """Yield the channels whose positions are to be committed: what the transaction holds, and moves over gaps."""
        for channel in self._channels.values():
            certain = channel in self._inside or (channel.state is PartitionState.RUNNING and not channel.in_flight)
            if channel.is_behind and certain:
                yield channel

    async def _let_in(self, wanting: Sequence[TranslatedChannel]) -> None:
        producer = self._owned()
        logs = [(channel.place.remote, channel.place.partition) for channel in wanting]
        try:
            await self._when_ready(lambda: commits.add_partitions(self._wire, producer, logs))
        except PartitionsRefused as refused:
            self._refuse(wanting, refused, "WRITE")
            return
        self._began = self._began or time.monotonic()
        self._inside += [channel for channel in wanting if channel not in self._inside]
        self._quiet.difference_update(wanting)
        await self._look_for_markers(wanting, producer)
        for channel in wanting:
            # Meanwhile its opening may have ended: the transaction then holds nothing of it.
            channel.admitted = channel.state is PartitionState.RUNNING
        self._offer([channel for channel in wanting if channel.admitted])

    async def _look_for_markers(self, channels: Sequence[TranslatedChannel], producer: Transactor) -> None:
        """End the openings of channels where the transaction before seems open yet: `translated` sees to its marker.

        A partition that was let in again has written nothing since. The coordinator adds to a transaction only when all
        markers of the one before are written, or will never be (`hanging_transactions`).
        """
        by_node: dict[int, list[TranslatedChannel]] = defaultdict(list)
        for channel in channels:
            if channel.state is PartitionState.RUNNING and channel.sides is not None and not channel.written:
                by_node[channel.sides.target.node].append(channel)
        for node, some in by_node.items():
            logs = [(channel.place.remote, channel.place.partition) for channel in some]
            doubtful = await commits.in_doubt(self._wire, node, logs, producer.producer_id)
            for channel in some:
                log = channel.place.remote, channel.place.partition
                if log in doubtful and channel.state is PartitionState.RUNNING:
                    reason = Reason("AB220", f"another broker leads {log[0]}/{log[1]}, or a marker is missing there")
                    channel.reopen(reason, time.monotonic())

    async def _look_again(self) -> None:
        """Look for the markers of channels that have had no other transaction for a while, and of their positions.

        While nothing follows, readers of committed records would miss for ever what the last transaction holds.
        """
        self._look_at, quiet, self._quiet = math.inf, self._quiet, set()
        if self._began is None:
            await self._look_for_markers([channel for channel in quiet if not channel.busy], self._owned())
            await self._look_at_positions()

    async def _look_at_positions(self) -> None:
        """Make sure that the positions of the transaction before count: their marker is awaited.

        It is there, or will never be, once this transaction has begun. The next one's would decide over both.

        Raises:
            BrokerError: UNSTABLE_OFFSET_COMMIT: it is missing.
        """
        if self._last_moved is not None:
            logs, member = [self._last_moved], self._holding()
            ask = partial(commits.positions, self._wire, member, logs)
            await when_ready(self._loop, ask, NOT_YET | {ErrorCode.UNSTABLE_OFFSET_COMMIT}, _MARKER_PATIENCE)

    async def _end_positions(self) -> None:
        """Have the marker written that is missing behind positions of a transaction which is over.

        Raises:
            Disagreement: that cannot be told now, or must not be.
        """
        member = self._holding()
        logs = [(channel.place.remote, channel.place.partition) for channel in self._channels.values()]
        try:
            await self._when_ready(lambda: commits.positions(self._wire, member, logs))
        except BrokerError as error:
            if error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                recovery = PositionRecovery(self._loop, self._wire, self._terms.syncs_topic)
                await end_positions(self._wire, recovery, member, self.transactional_id, self._terms.remote_topic)
            elif error.code not in reasons.AUTHORIZATION:
                raise
            # What is not allowed, each channel's opening says.

    @staticmethod
    def _refuse(channels: Iterable[TranslatedChannel], refused: PartitionsRefused, operation: str) -> None:
        """End the openings of the channels whose topics are not there or closed to us; the others ask again."""
        now = time.monotonic()
        for channel in channels:
            remote = channel.place.remote
            code = refused.codes.get((remote, channel.place.partition))
            if code is not None and channel.state is PartitionState.RUNNING:
                channel.end_opening(*reasons.why_refused(BrokerError(code), operation, f"topic {remote}"), now)

    async def _commit(self) -> None:
        """Commit the open transaction, if there is one or positions have moved without."""
        await self._drain()
        if self._doubt is not None:
            raise UncertainOutcome(self._doubt)
        going = list(self._moved())
        moved = {(c.place.remote, c.place.partition): CommittedPosition(c.position, str(c.last_word())) for c in going}
        openings = [(channel, channel.opening, channel.position) for channel in going]
        if self._began is None and not moved:
            return
        producer = self._owned()
        await self._sync(producer, moved)
        if moved:
            # From here on a loss makes this generation an old one, in whose name nobody can commit.
            member = self._holding()
            await self._look_at_positions()
            await self._when_ready(lambda: commits.add_offsets(self._wire, producer, member.group))
            try:
                await self._when_ready(lambda: commits.commit_positions(self._wire, producer, member, moved))
            except PartitionsRefused as refused:
                # The next transaction goes without them: they may be none of those that it holds records of.
                self._refuse(going, refused, "READ")
                raise
        await self._look_at_leaders()
        await self._when_ready(lambda: commits.end(self._wire, producer, committed=True))
        _LOG.debug("committed a transaction with positions of %d partitions", len(moved))
        self._began = self._syncs_at = None
        self._last_moved = next(iter(moved), self._last_moved)
        self._quiet.update(self._inside)
        self._look_at = time.monotonic() + _QUIET
        inside, self._inside = self._inside, []
        for channel in inside:
            for sent_batch in channel.settled():
                self._written(channel, sent_batch)
        for channel, opening, position in openings:
            # One that has begun elsewhere meanwhile stands where it began.
            if channel.opening == opening:
                channel.remember(position)
        self._is_well()

    async def _sync(self, producer: Transactor, moved: Mapping[Log, CommittedPosition]) -> None:
        """Write into the transaction where its records stand, and the positions, which groups forget.

        Raises:
            Doubt: the topic for that is not there, or did not take it.
        """
        found: list[OffsetSync] = []
        for channel in self._inside:
            log = channel.place.remote, channel.place.partition
            found += with_position(channel.syncs(), moved.get(log))
        if not found:
            return
        info = await self._syncs_topic()
        try:
            await self._when_ready(lambda: commits.add_partitions(self._wire, producer, [(info.name, 0)]))
        except PartitionsRefused as refused:
            if refused.code not in reasons.AUTHORIZATION:
                raise
            raise UncertainOutcome(reasons.not_allowed("WRITE", f"topic {info.name}", refused.name).text) from None
        writer = SyncWriter(producer.producer_id, producer.epoch, self._sync_sequence, producer.transactional_id)
        self._sync_sequence = await self._write_syncs(info, found, writer)
        self._syncs_at = info

    async def _drain(self) -> None:
        """Let nothing more into the transaction, and wait for the answers to what is on its way."""
        for channel in self._inside:
            channel.admitted = False
        while any(channel.in_flight for channel in self._inside):
            await self._loop.sleep(PAUSE)

    async def _look_at_leaders(self) -> None:
        """Make sure that every partition of the transaction has a leader, those of positions and syncs included.

        Kafka 4.3.0 and 4.3.1 leave a marker out where there is none (KAFKA-20734): the records would never be seen, and
        the positions never count. And brokers before 4.1 are sent records for a topic's name: one that was made anew
        takes them.

        Raises:
            Doubt: one has none, or another one than the records were sent to; or is of another topic.
            BrokerError: nobody leads the group's.
        """
        await self._when_ready(lambda: self._wire.coordinator(self.member.group, GROUP))
        sent_to = {
            (channel.place.remote, channel.place.partition): channel.sides and channel.sides.target.node
            for channel in self._inside
            if channel.written
        }
        if self._syncs_at is not None:
            sent_to[self._syncs_at.name, 0] = self._syncs_at.partitions[0].node
        if not sent_to:
            return
        topics = await self._wire.topics({name for name, _ in sent_to})
        for (name, partition), node in sent_to.items():
            leader = topics[name].partitions.get(partition)
            if leader is None or leader.error or leader.node != node:
                message = f"{name}/{partition} has lost its leader"
                raise UncertainOutcome(message)
        for channel in self._inside:
            name = channel.place.remote
            if channel.written and channel.sides and differ(channel.sides.target_id, topics[name].topic_id):
                message = f"topic {name} was deleted and made anew"
                raise UncertainOutcome(message)

    async def _abort(self, why: str) -> None:
        """Give the transaction up: its channels go on at the positions that were committed."""
        _LOG.debug("aborts its transaction: %s", why)
        self._producer = None
        await self._drain()
        reason, now = Reason("AB220", f"the transaction was aborted: {why}"), time.monotonic()
        for channel in self._inside:
            channel.forget()
            # A channel that is parked stays so; where it stands is asked for when it is tried again.
            if channel.state is PartitionState.RUNNING:
                channel.reopen(reason, now)
        self._inside.clear()
        self._began = self._syncs_at = None

    async def _settle(self) -> None:
        """Get a producer's id and epoch; whatever was open under its name is aborted then."""
        await self._wire.connect()
        self._losses = self._lease.losses
        producer = await self._when_ready(lambda: settle(self._wire, self.transactional_id))
        self._doubt = None
        self._sync_sequence = 0
        self._last_moved = None
        await self._end_positions()
        for channel in self._channels.values():
            channel.renew((producer.producer_id, producer.epoch))
        self._producer = producer

    def _owned(self) -> Transactor:
        assert self._producer is not None, "it was settled"
        return self._producer
