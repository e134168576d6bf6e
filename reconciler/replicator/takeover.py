"""Takeover: the one procedure for every break. It finds where the target's log ends and which producer goes on there.

`task` runs it for each channel that is not open: at the start, after a lost answer, a new leader, a refused sequence, a
wrong offset. Nothing is remembered from before: the next source offset is the target's log end, and the sequence number
goes on from what the log itself has, so of two owners one wins each sequence and neither can misplace a record. Before
anything is written behind existing records, the newest of them are compared with the source's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from reconciler.model.status import PartitionState, Reason
from reconciler.replicator import reasons
from reconciler.replicator.batch import SEQUENCE_MODULUS, Batch, UnreadableBatch, next_sequence
from reconciler.replicator.channel import Channel, Place, Sides, Standing
from reconciler.replicator.identity import Identity
from reconciler.replicator.samelog import batch_at, first_difference
from reconciler.replicator.wire import (
    EARLIEST,
    LATEST,
    ConnectionLost,
    ErrorCode,
    Leader,
    Loop,
    ProducerState,
    TopicInfo,
    Wire,
)

# How long a source that ends before the target may be a leader that does not know its high watermark yet.
_BEHIND_PATIENCE = 30.0
_READINGS = 20
_PAUSE = 0.05


class _Stop(Exception):
    """The channel cannot be opened now: carries what to do with it."""

    def __init__(self, verdict: reasons.Verdict) -> None:
        super().__init__(str(verdict[1]))
        self.verdict = verdict


class Takeover:
    """Opens channels.

    Args:
        loop: the task's loop.
        source: a wire to the source that no long poll blocks.
        target: a wire to the target beside the writers'.
        identity: names the producers.
        bulk: the readers' and writers' wires, to be connected before anything is sent over them.
    """

    def __init__(self, loop: Loop, source: Wire, target: Wire, identity: Identity, bulk: Sequence[Wire]) -> None:
        self._loop = loop
        self._source = source
        self._target = target
        self._identity = identity
        self._bulk = bulk

    async def run(self, channel: Channel) -> None:
        """Open `channel`, or say why not."""
        channel.busy = True
        try:
            await self._open(channel)
        except _Stop as stop:
            self._close(channel, *stop.verdict)
        except ErrorCode as error:
            self._close(channel, *reasons.why_refused(error, "DESCRIBE", f"topic {channel.place.remote}"))
        except ConnectionLost as error:
            self._close(channel, PartitionState.OPENING, Reason("AB220", str(error)))
        except UnreadableBatch as error:
            self._close(channel, PartitionState.PARKED, reasons.old_format(error))
        finally:
            channel.busy = False

    @staticmethod
    def _close(channel: Channel, state: PartitionState, reason: Reason) -> None:
        now = time.monotonic()
        if state is PartitionState.PARKED:
            channel.park(reason, now)
        else:
            channel.reopen(reason, now)

    async def _open(self, channel: Channel) -> None:
        place = channel.place
        source = await self._topic(self._source, "source", place.topic, place.partition)
        target = await self._topic(self._target, "target", place.remote, place.partition)
        standing = await self._standing(place, target)
        await self._compare(channel, source, target, standing.end)
        for wire in self._bulk:
            await wire.connect()
        sides = Sides(
            source.partitions[place.partition], source.topic_id, target.partitions[place.partition], target.topic_id
        )
        channel.open(sides, standing)

    async def _topic(self, wire: Wire, side: str, name: str, partition: int) -> TopicInfo:
        try:
            info = (await wire.topics([name]))[name]
        except ConnectionLost as error:
            reason = Reason("AB220", f"{wire.cluster.where} does not answer: {error}")
            raise _Stop((PartitionState.OPENING, reason)) from None
        if info.error:
            raise _Stop(reasons.missing_topic(side, name, info.error))
        leader = info.partitions.get(partition)
        if leader is None:
            text = (
                f"partition {partition} of topic {name} does not exist at the {side}: run `anabranch apply` to add it"
            )
            raise _Stop((PartitionState.PARKED, Reason("AB214", text)))
        if leader.error or leader.node < 0:
            text = f"partition {partition} of topic {name} has no leader at the {side}"
            raise _Stop((PartitionState.OPENING, Reason("AB220", text)))
        return info

    # --- where the target stands -------------------------------------------------------------------------------------

    async def _standing(self, place: Place, target: TopicInfo) -> Standing:
        """Read the log end and the producer's state until two readings agree."""
        before: tuple[int, list[ProducerState]] | None = None
        for _ in range(_READINGS):
            reading = await self._reading(place, target.partitions[place.partition])
            if reading is not None and reading == before:
                return await self._producer(place, target, *reading)
            before = reading
            await self._loop.sleep(_PAUSE)
        text = f"the end of {place.remote}/{place.partition} does not stand still: somebody else writes to it"
        raise _Stop((PartitionState.OPENING, Reason("AB221", text)))

    async def _reading(self, place: Place, leader: Leader) -> tuple[int, list[ProducerState]] | None:
        try:
            producers = await self._target.producers(leader.node, place.remote, place.partition)
        except ErrorCode as error:
            # DescribeProducers needs READ (KIP-664); without it nobody can go on safely.
            raise _Stop(reasons.why_refused(error, "READ", f"topic {place.remote}")) from None
        end = await self._target.log_end(leader.node, place.remote, place.partition, leader.epoch)
        return None if end is None else (end, producers)

    async def _producer(self, place: Place, target: TopicInfo, end: int, producers: list[ProducerState]) -> Standing:
        """Return the producer to go on with behind `end`."""
        log = f"{place.remote}/{place.partition}"
        if len(producers) > 1 or any(p.open_transaction for p in producers):
            ids = ", ".join(str(p.producer_id) for p in producers)
            text = f"somebody else writes to {log}: it has producers {ids}; only the replicator may write to a copy"
            raise _Stop((PartitionState.PARKED, Reason("AB211", text)))
        if producers:
            (known,) = producers
            if known.last_sequence < 0:
                text = f"somebody else ended a transaction in {log}: producer {known.producer_id}"
                raise _Stop((PartitionState.PARKED, Reason("AB211", text)))
            return Standing(end, known.producer_id, known.epoch, next_sequence(known.last_sequence, 1))
        leader = target.partitions[place.partition]
        start = await self._target.offset(leader.node, place.remote, place.partition, EARLIEST)
        if start < end:
            last = await batch_at(self._target, target, place.partition, end - 1)
            return self._after(last, end, log)
        transactional_id = self._identity.transactional_id(place)
        try:
            producer_id = await self._target.producer_id(transactional_id)
        except ErrorCode as error:
            raise _Stop(reasons.why_refused(error, "WRITE", f"transactional id {transactional_id}")) from None
        # Epoch 0, whatever the coordinator made of it: every first owner must begin with the same state.
        return Standing(end, producer_id, 0, end % SEQUENCE_MODULUS)

    @staticmethod
    def _after(last: Batch | None, end: int, log: str) -> Standing:
        """Go on behind a batch whose producer the broker has forgotten."""
        if last is None:
            text = f"the last batch before offset {end} of {log} is not readable yet"
            raise _Stop((PartitionState.OPENING, Reason("AB220", text)))
        if last.base_offset >= end:
            raise _Stop((PartitionState.OPENING, Reason("AB221", f"{log} has grown beyond {end} meanwhile")))
        if last.producer_id < 0 or last.is_control or last.is_transactional:
            text = (
                f"somebody else wrote to {log}: its last batch, at offset {last.base_offset}, is not the replicator's"
            )
            raise _Stop((PartitionState.PARKED, Reason("AB211", text)))
        sequence = next_sequence(last.base_sequence, last.last_offset_delta + 1)
        return Standing(end, last.producer_id, last.producer_epoch, sequence)

    # --- is it the same log? -----------------------------------------------------------------------------------------

    async def _compare(self, channel: Channel, source: TopicInfo, target: TopicInfo, end: int) -> None:
        place = channel.place
        at_source, at_target = source.partitions[place.partition].node, target.partitions[place.partition].node
        try:
            first = await self._source.offset(at_source, place.topic, place.partition, EARLIEST)
            last = await self._source.offset(at_source, place.topic, place.partition, LATEST)
        except ErrorCode as error:
            raise _Stop(reasons.why_refused(error, "DESCRIBE", f"topic {place.topic}")) from None
        channel.end = last
        if first > end:
            raise _Stop((PartitionState.PARKED, _lost(place, first, end)))
        if last < end:
            raise _Stop(self._behind(channel, last, end))
        if end == 0:
            return
        copied = await self._target.offset(at_target, place.remote, place.partition, EARLIEST)
        if end - 1 < max(first, copied):
            text = (
                f"{place.topic}/{place.partition} and its copy {place.remote} have no record in common below {end}: "
                "cannot tell whether they are the same log"
            )
            raise _Stop((PartitionState.PARKED, Reason("AB215", text)))
        try:
            theirs = await batch_at(self._source, source, place.partition, end - 1)
        except ErrorCode as error:
            raise _Stop(reasons.why_refused(error, "READ", f"topic {place.topic}")) from None
        ours = await batch_at(self._target, target, place.partition, end - 1)
        if theirs is None or ours is None:
            text = f"offset {end - 1} is not readable on both sides yet"
            raise _Stop((PartitionState.OPENING, Reason("AB220", text)))
        if max(theirs.base_offset, ours.base_offset) >= end:
            text = (
                f"offset {end - 1} of {place.topic}/{place.partition} was removed on one side (compaction): "
                "cannot tell whether the copy is of the same log"
            )
            raise _Stop((PartitionState.PARKED, Reason("AB215", text)))
        self._same(place, theirs, ours)

    @staticmethod
    def _same(place: Place, theirs: Batch, ours: Batch) -> None:
        try:
            difference = first_difference(theirs, ours)
        except ValueError as error:
            text = f"cannot compare {place.remote} with its source at offset {ours.base_offset}: {error}"
            raise _Stop((PartitionState.PARKED, Reason("AB209", text))) from None
        if difference is not None:
            text = (
                f"{place.remote}/{place.partition} is not a copy of {place.topic}: its record {difference.offset} "
                f"differs in {difference.what}; the source was made anew, or somebody else wrote to the copy"
            )
            raise _Stop((PartitionState.PARKED, Reason("AB209", text)))

    @staticmethod
    def _behind(channel: Channel, last: int, end: int) -> reasons.Verdict:
        """A source that ends before its copy: wait for a new leader to catch up, then park."""
        place = channel.place
        now = time.monotonic()
        channel.behind_since = channel.behind_since or now
        text = (
            f"{place.topic}/{place.partition} ends at {last}, before its copy {place.remote} at {end}: "
            "the source lost records or was made anew, or somebody else wrote to the copy"
        )
        patient = now - channel.behind_since < _BEHIND_PATIENCE
        return (PartitionState.OPENING if patient else PartitionState.PARKED), Reason("AB210", text)


def _lost(place: Place, first: int, end: int) -> Reason:
    """The source's log begins after the copy's end."""
    if end == 0:
        text = f"{place.topic}/{place.partition} begins at offset {first}, not 0; padding the copy is not supported yet"
        return Reason("AB206", text)
    text = (
        f"{first - end:,} records of {place.topic}/{place.partition} were deleted at the source before being copied: "
        f"offsets {end} to {first - 1}"
    )
    return Reason("AB208", text)
