"""Commits positions of acknowledged records, for channels that write outside of transactions.

The counterpart of `transactional` for `delivery: at-least-once`, where the target allows no transactions. Records count
as soon as they are acknowledged; offset syncs are written after them, and positions after those. If the task dies
between two of these steps, records, or records and syncs, are written once more: repeated, never lost.

A producer id keeps a partition's batches in order, where the target grants one; each opening has its own epoch (as
Kafka's idempotent producer has after an error, KIP-360), so that batches of an earlier opening still in flight are
refused. Without a producer id a partition has one batch in flight at a time.
"""

from __future__ import annotations

import time

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.commit.base import (
    PRODUCER_PATIENCE,
    RETRY,
    Committer,
    CommitterParts,
    SyncWriter,
    UncertainOutcome,
)
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import BrokerError, ConnectionLost, ErrorCode
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log

_NO_PRODUCER = -1
_LAST_EPOCH = 2**15 - 1
# Seconds to retry the last commit of a round, so that a moving coordinator does not cause repeated records: the lease
# finds the new one within two seconds.
_LAST_PATIENCE = 5.0
# A new copy writes nothing before its first position is committed, so these are checked often (seconds).
_LOOK_EVERY = 0.1


class AtLeastOnceCommitter(Committer):
    """The positions of one task in one round."""

    _waited_for = "positions cannot be committed"

    def __init__(self, parts: CommitterParts) -> None:
        super().__init__(parts)
        self._producer_id: int | None = None
        self._epochs: dict[Log, int] = {}
        self._refused: dict[Log, int] = {}
        self._is_held = False
        self._due_at = 0.0

    def failed(self, channel: Channel) -> None:
        """Do nothing: unacknowledged records are written again."""

    async def producer(self, channel: TranslatedChannel) -> tuple[int, int]:
        """Return the producer's id, and an epoch for this opening, once all acknowledged records are committed.

        Raises:
            ConnectionLost: the round ends, or an error lasts.
            Disagreement: the principal may not commit, or not the position of this partition.
        """
        log = channel.place.remote, channel.place.partition
        self._refused.pop(log, None)
        deadline = time.monotonic() + PRODUCER_PATIENCE
        while self._producer_id is None or self._is_lease_lost or self._is_held or channel.is_behind:
            if log in self._refused:
                raise Disagreement.refused(BrokerError(self._refused[log]), "READ", f"topic {log[0]}")
            self._due_at = 0.0
            self.bell.ring()
            await self._have_patience(deadline)
        if self._producer_id == _NO_PRODUCER:
            channel.sequence = -1
            return _NO_PRODUCER, -1
        epoch = self._epochs[log] = self._epochs.get(log, -1) + 1
        if epoch == _LAST_EPOCH:
            self._producer_id = None
            self._epochs.clear()
            return await self.producer(channel)
        channel.sequence = 0
        return self._producer_id, epoch

    @property
    def _is_lease_lost(self) -> bool:
        return self._lease.losses != self._losses

    async def run(self) -> None:
        """Commit positions every interval until `stopped`, and a last time then."""
        give_up_at: float | None = None
        while True:
            try:
                if self._producer_id is None:
                    await self._get_producer()
                now = time.monotonic()
                if self.stopped or self._is_lease_lost or now >= self._due_at or self._has_new_copies():
                    await self._commit(now)
                if self.stopped:
                    return
                await self.bell.wait(max(RETRY / 10, min(_LOOK_EVERY, self._due_at - now)))
            except (ConnectionLost, BrokerError, UncertainOutcome) as error:
                self._trouble = error
                await self._hold(str(error))
                if not self.stopped:
                    await self._back_off()
                    continue
                # The end of a round waits for this.
                give_up_at = give_up_at or time.monotonic() + _LAST_PATIENCE
                if time.monotonic() >= give_up_at:
                    return
                await self._loop.sleep(RETRY)

    def _has_new_copies(self) -> bool:
        return any(one.is_new and one.is_behind and log not in self._refused for log, one in self._channels.items())

    async def _get_producer(self) -> None:
        """Get a producer id, or -1 where the target refuses one."""
        await self._wire.connect()
        try:
            self._producer_id = await self._when_ready(lambda: commits.idempotent_producer(self._wire))
        except BrokerError as error:
            if error.code not in reasons.AUTHORIZATION and error.code != ErrorCode.UNSUPPORTED_VERSION:
                raise
            self._producer_id = _NO_PRODUCER

    async def _commit(self, now: float) -> None:
        """Commit the positions that have moved, after the offset syncs of the records before them."""
        self._due_at = now + self._terms.interval
        self._holding()
        # Refused positions are left out until their partitions are opened again.
        moved = {
            log: channel for log, channel in self._channels.items() if channel.is_behind and log not in self._refused
        }
        if not moved:
            return
        # Records acknowledged from here on are left to the next commit.
        words = {log: channel.last_word() for log, channel in moved.items()}
        positions = {log: CommittedPosition(channel.position, str(words[log])) for log, channel in moved.items()}
        before = {log: channel.committed for log, channel in moved.items()}
        counts = {log: len(channel.written) for log, channel in moved.items()}
        found = [sync for channel in moved.values() for sync in channel.syncs()]
        await self._wire.connect()
        if found:
            await self._write_syncs(await self._syncs_topic(), found, SyncWriter())
        # If the lease is lost from here on, the coordinator refuses commits of this generation.
        member = self._holding()
        refused = await self._when_ready(lambda: commits.commit_acknowledged(self._wire, member, positions))
        for log, channel in moved.items():
            if log in refused:
                self._refuse(channel, BrokerError(refused[log]))
                continue
            for sent_batch in channel.counted(counts[log]):
                self._written(channel, sent_batch)
            # A channel opened at another position meanwhile keeps that; the end of an opening changes nothing.
            if channel.committed == before[log]:
                was_new = channel.is_new
                channel.note = words[log]
                channel.remember(positions[log].offset)
                if was_new:
                    self._offer([channel])
        self._is_well()

    def _refuse(self, channel: TranslatedChannel, error: BrokerError) -> None:
        """End the opening of a channel whose topic is missing or not allowed; the others are committed.

        A topic that is not allowed still holds the acknowledged records, which are committed before more is written.
        """
        self._refused[channel.place.remote, channel.place.partition] = error.code
        if error.code not in reasons.AUTHORIZATION:
            channel.forget()
        if channel.state in (PartitionState.RUNNING, PartitionState.PAUSED):
            verdict = reasons.why_refused(error, "READ", f"topic {channel.place.remote}")
            channel.end_opening(*verdict, time.monotonic())

    async def _hold(self, why: str) -> None:
        """Stop writing until positions can be committed again, to limit how many records may be repeated.

        After a lost lease they cannot: the channels then continue at the committed positions.
        """
        self._is_held = True
        try:
            while self._stop_sending():
                await self._loop.sleep(RETRY / 10)
        finally:
            self._is_held = False
        is_lost, self._losses = self._is_lease_lost, self._lease.losses
        self._due_at = 0.0
        reason, now = Reason("AB220", f"positions are not committed: {why}"), time.monotonic()
        for channel in self._channels.values():
            if is_lost:
                channel.forget()
            if channel.state is PartitionState.RUNNING:
                channel.reopen(reason, now)

    def _stop_sending(self) -> bool:
        """Stop all channels from sending, also newly opened ones; return whether responses are outstanding."""
        for channel in self._channels.values():
            channel.admitted = False
        return any(channel.in_flight for channel in self._channels.values())
