"""A task: replicates its partitions, round after round. It joins takeover, fetchers and senders, and reports status.

`rounds` runs it in a thread. When a round is over it hands its ledger over and goes on; it ends when the run does, when
no round follows, and when the flow has more tasks than before. Connections outlive it; everything that decides where
records go is read anew from the target's log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from reconciler.model.names.own_names import syncs_topic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.records import codecs
from reconciler.replicator.commit.at_least_once import AtLeastOnceCommitter
from reconciler.replicator.commit.base import CommitContext, Committer, CommitterParts
from reconciler.replicator.commit.position_recovery import PositionRecovery
from reconciler.replicator.commit.transactional import TransactionalCommitter
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.gaps.fill import Filler
from reconciler.replicator.gaps.gap_filler import GapFiller
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.refusals import RefusedRecords
from reconciler.replicator.partition.shares import Assignment, Place
from reconciler.replicator.partition.translated_channel import AtLeastOnceChannel, TranslatedChannel
from reconciler.replicator.takeover.guard import LeaseGuard
from reconciler.replicator.takeover.identical import Takeover, TakeoverContext
from reconciler.replicator.takeover.translated import TranslatedTakeover
from reconciler.replicator.takeover.wires import Wires
from reconciler.replicator.task.commands import PartitionCommands
from reconciler.replicator.task.connections import Connections
from reconciler.replicator.task.dead_letters import DeadLetters
from reconciler.replicator.task.handover import RoundHandover
from reconciler.replicator.task.ledger import Ledger
from reconciler.replicator.task.open_transactions import OpenTransactions, remembered
from reconciler.replicator.task.openings import Openings
from reconciler.replicator.task.source_ends import SourceEnds
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch
from reconciler.replicator.transfer.fetch_lanes import FetchKey, FetchLanes
from reconciler.replicator.transfer.fetcher import Fetcher
from reconciler.replicator.transfer.pace import Pace, Quota
from reconciler.replicator.transfer.preferred_replica import PreferredReplicas
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import Job, Work

_TICK = 0.05
# The tick while every partition runs.
_CALM_TICK = 0.2
# And while nothing was copied for so many seconds, too: of a hundred flows most have nothing to do.
_IDLE_TICK, _IDLE_AFTER = 1.0, 3.0
_LISTEN_EVERY = 0.25
_REPORT_EVERY = 1.0
# The status of thousands of partitions takes a while, on a busy machine above all: it is posted less often then, though
# twice in the time after which a task counts as lost.
_REPORT_SHARE, _REPORT_WITHIN = 20.0, 2.0


class OrphanError(RuntimeError):
    """The process that started this worker is gone, so nothing could stop it."""


class Task:
    """One task, from the opening of its partitions until nothing of it is in flight."""

    def __init__(self, spec: FlowSpec, assignment: Assignment, connections: Connections) -> None:
        self._spec = spec
        self._assignment = assignment
        self._with = connections
        self._fetchers: dict[FetchKey, Fetcher] = {}
        self._nearest = PreferredReplicas(
            connections.rack, self._read, spec.source.clients.consumer.metadata_max_age_ms / 1000
        )
        self._lanes = FetchLanes(self._read_anew)
        identity = ProducerNames(spec.topology, spec.flow.name)
        self._committer = self._committing_as(identity)
        self._committing: Job | None = None
        self._commands = PartitionCommands(spec, assignment, connections.listener, self._channel)
        self._channels = self._commands.channels
        self._ends = SourceEnds(connections.ask_source, self._channels)
        seen = remembered(spec.run, spec.flow.name)
        self._open_transactions = OpenTransactions(
            connections.loop, connections.ask_source, spec.source.addresses, self._channels, seen
        )
        self._ledger = Ledger(spec.flow.name)
        filler = Filler(connections.loop, connections.ask_target, identity, spec.flow.fill)
        self._gaps = GapFiller(filler, connections.memory)
        self._letters = DeadLetters(connections.ask_target, spec.flow, connections.memory)
        self._takeover = Takeover(
            connections.loop,
            spec.flow,
            Wires(connections.ask_source, connections.ask_target, connections.produce, connections.fetches(spec.flow)),
            TakeoverContext(identity, filler, connections.memory, self._translated_takeover()),
        )
        self._guard = LeaseGuard(connections.lease, assignment.task, self._channels)
        self._openings = Openings()
        self._senders: dict[tuple[int, bool], Sender] = {}
        self._quota = Quota(None if spec.flow.quota is None else spec.flow.quota / assignment.tasks)
        self._jobs: list[Job] = []
        self._parent = os.getppid()
        self._draining = False
        self._is_busy = True
        # When records were last copied (monotonic seconds), and how many there were by then.
        self._copied = 0.0, 0
        self._to_count: list[tuple[float, Sequence[FastPathBatch]]] = []

    def work(self, rounds: RoundHandover, begun: Callable[[], None] = lambda: None) -> None:
        """Copy until the run is to stop, no round follows or more tasks are needed; finish what is in flight.

        Args:
            rounds: takes the ledger of each round.
            begun: called when nothing is left to be opened, more than once.
        """
        self._with.metrics.begin_round()
        self._with.loop.run(partial(self._work, rounds, begun))

    async def _work(self, rounds: RoundHandover, begun: Callable[[], None]) -> None:
        loop = self._with.loop
        listen_at = report_at = 0.0
        while not rounds.is_given_up(now := time.monotonic()):
            self._check()
            self._count()
            if rounds.is_due(now):
                rounds.hand_over(self._ledger.take())
                self._with.metrics.begin_round()
            # Commands first: the lease must not give up partitions that an earlier round already held.
            if now >= listen_at:
                listen_at = now + _LISTEN_EVERY
                if self._commands.listen():
                    # A command is confirmed in the status at once.
                    report_at = now
            self._guard.look()
            more = self._commands.needs_more_tasks or rounds.assignment.tasks > self._assignment.tasks
            if self._commands.stopping or more:
                break
            self._open_some(now)
            self._commit_for_some()
            if self._ends.is_due(now):
                self._start(partial(self._ends.look, now))
            if self._open_transactions.is_due(now):
                self._start(partial(self._open_transactions.look, now))
            if now >= report_at:
                self._report(now)
                report_at = now + max(_REPORT_EVERY, min(_REPORT_SHARE * (time.monotonic() - now), _REPORT_WITHIN))
            if not self._is_busy:
                begun()
            await loop.sleep(self._tick(now))
        await self._drain()
        self._count()
        self._with.read.update((channel.place, channel.read) for channel in self._channels if channel.read is not None)
        if self._commands.stopping:
            await self._with.lease.leave()
            self._with.status.post_last(self._last_status())
        if rounds.assignment.tasks > self._assignment.tasks:
            # The round has just begun, with another assignment.
            rounds.keep(self._ledger.take())
        else:
            rounds.hand_over(self._ledger.take())

    def _tick(self, now: float) -> float:
        """Return for how many seconds nothing needs to be looked at."""
        if self._with.totals.records != self._copied[1]:
            self._copied = now, self._with.totals.records
        if self._is_busy:
            return _TICK
        return _IDLE_TICK if now - self._copied[0] > _IDLE_AFTER else _CALM_TICK

    def _report(self, now: float) -> None:
        status = self._status(now, stopped=False)
        if any(channel.sides is not None for channel in self._channels):
            self._with.last_status = status
        self._with.status.post(status)

    def _last_status(self) -> TaskStatus:
        """Return the final status of this task; a round that opened nothing repeats what the one before reported."""
        last = self._with.last_status
        if last is not None and all(channel.sides is None for channel in self._channels):
            return replace(last, time=time.time(), stopped=True)
        return self._status(time.monotonic(), stopped=True)

    # --- beginning and ending ----------------------------------------------------------------------------------------

    def _channel(self, place: Place) -> Channel:
        """Return the channel of a partition that was assigned to this task."""
        flow = self._spec.flow
        codec = codecs.COMPRESSIONS[flow.compression]
        refused = None if flow.dlq is None else self._put_aside
        if place.offsets == "identical":
            plain = Channel(place, self._fill_gap, flow.batch_size, codec, refused)
            plain.read = self._with.read.get(place)
            return plain
        kind = AtLeastOnceChannel if flow.repeats else TranslatedChannel
        committed = flow.isolation_level == "read_committed"
        channel = kind(place, self._committer.failed, flow.batch_size, codec, refused, committed)
        self._committer.add(channel)
        return channel

    def _committing_as(self, identity: ProducerNames) -> Committer:
        """Return the committer of positions: with the records, or behind them."""
        flow, connections = self._spec.flow, self._with
        name = "" if flow.repeats else identity.committing_id(self._spec.run, self._assignment.task)
        context = CommitContext(name, syncs_topic(flow.source), flow.commit_interval, flow.remote_topic)
        parts = CommitterParts(
            connections.loop, connections.ask_target, context, connections.lease, self._offer, self._written
        )
        return AtLeastOnceCommitter(parts) if flow.repeats else TransactionalCommitter(parts)

    def _translated_takeover(self) -> TranslatedTakeover:
        flow, held = self._spec.flow, self._with
        recovery = PositionRecovery(held.loop, held.ask_target, syncs_topic(flow.source))
        return TranslatedTakeover(flow, held.ask_source, held.ask_target, self._committer, held.memory, recovery)

    def _open_some(self, now: float) -> None:
        # Most of thousands of partitions run: for those this check is all that happens, twenty times a second.
        shut = [channel for channel in self._channels if channel.state is not PartitionState.RUNNING]
        self._is_busy = bool(shut)
        lease = self._with.lease
        room = self._openings.room(sum(channel.busy for channel in shut), lease.beats, lease.beat_seconds)
        if room <= 0:
            return
        waiting = [channel for channel in shut if channel.wants_opening(now) and self._guard.covers(channel)]
        # The channel that has waited longest comes first, or a broker that never answers would keep the others out.
        waiting.sort(key=lambda channel: channel.retry_at)
        for channel in waiting[:room]:
            channel.busy = True
            self._start(partial(self._open, channel))

    def _commit_for_some(self) -> None:
        """Start the committer as soon as a channel of this task needs it, and may write."""
        if self._committing is None and any(map(self._guard.covers, self._committer.channels)):
            self._committing = self._with.loop.spawn(self._committer.run)
            self._jobs.append(self._committing)

    async def _open(self, channel: Channel) -> None:
        await self._guard.open(channel, self._takeover)
        if channel.sides is None or self._draining:
            return
        self._sender(channel.sides.target.node, isinstance(channel, TranslatedChannel))
        self._read(channel)

    def _read(self, channel: Channel) -> None:
        """Let the fetcher of a channel's current broker read it."""
        if (node := self._nearest.node(channel)) is not None:
            self._fetcher(self._lanes.key(node, channel)).look_again()

    def _read_anew(self, key: FetchKey) -> None:
        """Start a fetcher for each lane that a broker has now."""
        for lane in range(self._lanes.count(key)):
            self._fetcher(key._replace(lane=lane))
        for fetcher in self._fetchers.values():
            fetcher.look_again()

    def _fetcher(self, key: FetchKey) -> Fetcher:
        """Return the fetcher of a source broker, isolation level and lane; start it if there is none."""
        fetcher = self._fetchers.get(key)
        if fetcher is None or (fetcher.stopped and not self._draining):
            wire = self._with.fetch(key.committed, key.lane)
            pace = Pace(self._quota, self._spec.flow.linger)
            fetcher = self._fetchers[key] = Fetcher(self._with.loop, wire, key, self._channels, pace, self._offer)
            fetcher.peers, fetcher.nearest, fetcher.lanes = self._fetchers.values(), self._nearest, self._lanes
            fetcher.sender_of = lambda node: self._senders.get((node, False))
            self._start(fetcher.run)
        return fetcher

    def _sender(self, node: int, translated: bool) -> None:
        """Start a sender for a target broker; records of translated copies count only when they are committed."""
        if (node, translated) in self._senders:
            return
        written = _ignore if translated else self._written
        # Several tasks have several connections anyway; transactions must not depend on which of two was quicker.
        is_alone = self._assignment.tasks == 1 and not translated
        wires = self._with.produce, self._with.produce_more if is_alone else None
        sender = Sender(self._with.loop, wires, node, self._quota, written, self._ring_fetchers)
        sender.on_fast_written = self._note_fast
        if translated:
            sender.transactional_id = self._committer.transactional_id or None
        self._senders[node, translated] = sender
        self._start(sender.run)

    def _fill_gap(self, channel: Channel) -> None:
        self._start(partial(self._fill, channel, channel.opening))

    async def _fill(self, channel: Channel, opening: int) -> None:
        # The round may have ended in between, or the partition was paused or restarted.
        if self._draining or channel.opening != opening or channel.state is not PartitionState.RUNNING:
            channel.filling = False
            return
        # What was written before the gap is counted before it.
        self._count()
        await self._gaps.fill(channel)
        self._offer([channel])

    def _put_aside(self, channel: Channel, sent_batch: InFlightBatch, refused: Sequence[RefusedRecords]) -> None:
        self._start(partial(self._letters.put_aside, channel, sent_batch, refused))

    async def _drain(self) -> None:
        """Stop fetching, drop what is queued, and wait for the answers to what is in flight."""
        self._draining = self._committer.closing = True
        for fetcher in self._fetchers.values():
            fetcher.stopped = True
        for sender in self._senders.values():
            sender.stopped = True
            sender.bell.ring()
        while any(channel.is_at_work for channel in self._channels):
            self._check()
            await self._with.loop.sleep(_TICK / 5)
        self._committer.stopped = True
        self._committer.bell.ring()
        while self._committing is not None and not self._committing.is_done:
            self._check()
            await self._with.loop.sleep(_TICK / 5)

    def _start(self, work: Work) -> None:
        self._jobs.append(self._with.loop.spawn(work))

    def _check(self) -> None:
        """Raise what any coroutine raised, and stop when the parent process has ended."""
        for job in self._jobs:
            job.raise_failure()
        for sender in self._senders.values():
            sender.raise_failure()
        self._jobs = [job for job in self._jobs if not job.is_done]
        if os.getppid() != self._parent:
            message = "the process that started this worker is gone"
            raise OrphanError(message)

    # --- records written ---------------------------------------------------------------------------------------------

    def _offer(self, channels: Collection[Channel]) -> None:
        for (_, translated), sender in self._senders.items():
            sender.offer([c for c in channels if isinstance(c, TranslatedChannel) is translated])
        if self._committing is not None:
            self._committer.bell.ring()

    def _ring_fetchers(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.bell.ring()

    def _note_fast(self, sent: Sequence[FastPathBatch]) -> None:
        self._to_count.append((time.time(), sent))

    def _count(self) -> None:
        counted, self._to_count = self._to_count, []
        for at, sent in counted:
            for entry, sent_batch in sent:
                self._note(entry.channel, sent_batch, at)

    def _written(self, channel: Channel, sent_batch: InFlightBatch) -> None:
        if self._to_count:
            self._count()
        self._note(channel, sent_batch, time.time())

    def _note(self, channel: Channel, sent_batch: InFlightBatch, at: float) -> None:
        latency = self._with.metrics.wrote(channel.place, sent_batch, at)
        self._ledger.note(channel.place, sent_batch, latency, channel.filled_offsets)
        self._with.totals.records += sent_batch.records
        self._with.totals.bytes += sent_batch.size

    def _status(self, now: float, stopped: bool) -> TaskStatus:
        totals, flow, sides = self._with.totals, self._spec.flow, (self._spec.source, self._spec.target)
        records_per_second, bytes_per_second = totals.rates(now)
        return TaskStatus(
            flow=flow.name,
            source=flow.source,
            target=flow.target,
            run=self._spec.run,
            task=self._assignment.task,
            tasks=self._assignment.tasks,
            time=time.time(),
            stopped=stopped,
            waiting=None if self._channels else self._commands.waiting,
            records=totals.records,
            bytes=totals.bytes,
            records_per_second=round(records_per_second, 1),
            bytes_per_second=round(bytes_per_second, 1),
            partitions=(
                *(reasons.with_user(self._with.metrics.status(c), *sides) for c in self._channels),
                *self._commands.refused.values(),
            ),
            latency=self._with.metrics.latency(),
            heard=self._with.listener.heard,
            since=self._with.since,
            process=self._with.metrics.process(),
        )


def _ignore(_channel: Channel, _sent_batch: InFlightBatch) -> None:
    """Count nothing yet."""
