"""The transactions of one task, one after the other, for all its channels with translated offsets.

A transaction holds records and the positions behind them, so that both count or neither. It begins with the first
channel that has a batch to send, admits others as they have one, and is committed after an interval. Any uncertainty (a
lost response, a moved leader) aborts it: its channels continue at the committed positions.

Positions are committed as a member of the group's current generation (KIP-447), so a task that lost its partitions
cannot commit.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.commit.base import (
    NOT_YET,
    PAUSE,
    PRODUCER_PATIENCE,
    Committer,
    CommitterParts,
    SyncWriter,
    UncertainOutcome,
)
from reconciler.replicator.commit.position_recovery import PositionRecovery
from reconciler.replicator.commit.unstable_offsets import end_positions
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.offset_syncs import OffsetSync, with_position
from reconciler.replicator.partition.place import differ
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import GROUP, BrokerError, ConnectionLost, ErrorCode, TopicInfo, when_ready
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log, PartitionsRefused
from reconciler.wire.requests.transactions import Transactor, settle

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 512 * 2**20
# Seconds between commits of positions that only moved over offsets without records.
_GAPS_EVERY = 5.0
_IDLE = 0.5
# Seconds after which markers are checked; brokers write them right after EndTxn is answered.
_QUIET = 2.0
_MARKER_PATIENCE = 5.0


class TransactionalCommitter(Committer):
    """The transactions of one task in one round."""

    _waited_for = "transactions cannot begin"

    def __init__(self, parts: CommitterParts) -> None:
        super().__init__(parts)
        self._inside: list[TranslatedChannel] = []
        self._producer: Transactor | None = None
        self._began: float | None = None
        self._gaps_at = 0.0
        self._sync_sequence = 0
        self._doubt: str | None = None
        # The topic of the offset syncs that the open transaction holds, with its leader.
        self._syncs_at: TopicInfo | None = None
        # One partition whose position the previous transaction holds.
        self._last_moved: Log | None = None
        # Channels without a transaction since their last commit, and when to check their markers.
        self._quiet: set[TranslatedChannel] = set()
        self._look_at = math.inf

    def failed(self, channel: Channel) -> None:
        """Abort the open transaction, as it is uncertain which records of `channel` it holds."""
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
                # Aborted records stay in the target's log: a lasting error must not fill it.
                await self._back_off()

    async def _leave_nothing_open(self) -> None:
        """Abort what may be open, or consumers with read_committed would wait until it times out."""
        with contextlib.suppress(ConnectionLost, BrokerError, Disagreement, UncertainOutcome):
            await self._settle()

    async def _turn(self) -> None:
        """Admit channels, commit what is due, or wait for either."""
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
        """Yield the channels whose positions are to be committed: those in the transaction, or moved over gaps."""
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
            # Its opening may have ended meanwhile: the transaction then holds nothing of it.
            channel.admitted = channel.state is PartitionState.RUNNING
        self._offer([channel for channel in wanting if channel.admitted])

    async def _look_for_markers(self, channels: Sequence[TranslatedChannel], producer: Transactor) -> None:
        """End the openings of channels where the previous transaction is still open: `translated` writes its marker.

        A partition admitted again has written nothing since. The coordinator adds partitions to a transaction only when
        all markers of the previous one are written, or never will be (`hanging_transactions`).
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
        """Check the markers of channels without a transaction for a while, and those of their positions.

        Without a next transaction, consumers with read_committed would never read the records of the last one.
        """
        self._look_at, quiet, self._quiet = math.inf, self._quiet, set()
        if self._began is None:
            await self._look_for_markers([channel for channel in quiet if not channel.busy], self._owned())
            await self._look_at_positions()

    async def _look_at_positions(self) -> None:
        """Wait until the positions of the previous transaction count.

        Once this transaction has begun, their marker is written or never will be; the next marker would apply to both.

        Raises:
            BrokerError: UNSTABLE_OFFSET_COMMIT: it is missing.
        """
        if self._last_moved is not None:
            logs, member = [self._last_moved], self._holding()
            ask = partial(commits.positions, self._wire, member, logs)
            await when_ready(self._loop, ask, NOT_YET | {ErrorCode.UNSTABLE_OFFSET_COMMIT}, _MARKER_PATIENCE)

    async def _end_positions(self) -> None:
        """Write a missing marker behind the positions of a complete transaction.

        Raises:
            Disagreement: that cannot be decided now, or is not allowed.
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
            # A missing permission is reported by each channel's opening.

    @staticmethod
    def _refuse(channels: Iterable[TranslatedChannel], refused: PartitionsRefused, operation: str) -> None:
        """End the openings of channels whose topics are missing or not allowed; the others are admitted later."""
        now = time.monotonic()
        for channel in channels:
            remote = channel.place.remote
            code = refused.codes.get((remote, channel.place.partition))
            if code is not None and channel.state is PartitionState.RUNNING:
                channel.end_opening(*reasons.why_refused(BrokerError(code), operation, f"topic {remote}"), now)

    async def _commit(self) -> None:
        """Commit the open transaction, or positions that have moved without one."""
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
            # If the lease is lost from here on, the coordinator refuses commits of this generation.
            member = self._holding()
            await self._look_at_positions()
            await self._when_ready(lambda: commits.add_offsets(self._wire, producer, member.group))
            try:
                await self._when_ready(lambda: commits.commit_positions(self._wire, producer, member, moved))
            except PartitionsRefused as refused:
                # The next transaction leaves them out: it need not hold records of theirs.
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
            # A channel opened at another position meanwhile keeps that.
            if channel.opening == opening:
                channel.remember(position)
        self._is_well()

    async def _sync(self, producer: Transactor, moved: Mapping[Log, CommittedPosition]) -> None:
        """Write offset syncs into the transaction, with the positions, which a group can lose.

        Raises:
            UncertainOutcome: the topic for that is not there, or did not take it.
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
        """Admit nothing more to the transaction, and wait for outstanding responses."""
        for channel in self._inside:
            channel.admitted = False
        while any(channel.in_flight for channel in self._inside):
            await self._loop.sleep(PAUSE)

    async def _look_at_leaders(self) -> None:
        """Make sure that every partition of the transaction has a leader, those of positions and syncs included.

        Kafka 4.3.0 and 4.3.1 leave a marker out where there is none (KAFKA-20734): records would never be readable, and
        positions never count. And brokers before 4.1 get produce requests by topic name, which a recreated topic
        accepts.

        Raises:
            UncertainOutcome: a partition has no leader, or another one than records were sent to; or its topic changed.
            BrokerError: the group's partition has no leader.
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
                message = f"topic {name} was deleted and created again"
                raise UncertainOutcome(message)

    async def _abort(self, why: str) -> None:
        """Give the transaction up: its channels continue at the committed positions."""
        _LOG.debug("aborts its transaction: %s", why)
        self._producer = None
        await self._drain()
        reason, now = Reason("AB220", f"the transaction was aborted: {why}"), time.monotonic()
        for channel in self._inside:
            channel.forget()
            # A parked channel stays parked; its position is read again when it is tried again.
            if channel.state is PartitionState.RUNNING:
                channel.reopen(reason, now)
        self._inside.clear()
        self._began = self._syncs_at = None

    async def _settle(self) -> None:
        """Get a producer id and epoch (InitProducerId), which aborts any open transaction of this transactional id."""
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
