"""Takeover: finds where the target's log ends and which producer continues there, after every kind of interruption.

`task` runs it for each channel that is not open: at the start, after a lost answer, a new leader, a refused sequence, a
wrong offset. No position is kept from before: the position is the target's log end, and the sequence number continues
from what the log itself holds, so of two owners only one can use each sequence and neither can misplace a record.
Before anything is written behind existing records, the newest of them are compared with the source's.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from functools import partial

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.batch import SEQUENCE_MODULUS, Batch, UnreadableBatch, next_sequence
from reconciler.records.read_committed import Gap
from reconciler.replicator.copy.agreement import Agreement, Disagreement, Logs, NotYet, within
from reconciler.replicator.copy.copy_records import CopyRecords
from reconciler.replicator.copy.log_tail import LogTail, tail
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.copy.recreated import refuse_made_anew
from reconciler.replicator.copy.truncation import refuse_truncated
from reconciler.replicator.gaps.fill import Filler, FillRefused
from reconciler.replicator.gaps.padding import CannotPad, is_padding, pad
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import LogEnd, PartitionSides, topic_id
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.takeover.translated import TranslatedTakeover
from reconciler.replicator.takeover.wires import Wires
from reconciler.wire import EARLIEST, LATEST, BrokerError, ConnectionLost, Leader, Loop, ProducerState, TopicInfo, Wire

_LOG = logging.getLogger(__name__)

# How long (seconds) a source that ends before the target may be a leader without its high watermark yet.
_BEHIND_PATIENCE = 30.0
_READINGS = 20
_PAUSE = 0.05
# Markers cost time and bytes: a loss of more offsets than this is left as a shifted run where it may be passed over.
_FILLABLE_LOSS = 100_000
_LARGEST_PADDING = 10**9
# Offsets that are padded in one attempt, a few seconds' worth: in between, the task handles commands such as a stop.
_PADDING_PIECE = 10**7

_OPENING, _PARKED = PartitionState.OPENING, PartitionState.PARKED


@dataclass(frozen=True, slots=True)
class TakeoverContext:
    """What a takeover uses: producer names, gap filling, copy records, and the takeover of translated copies."""

    identity: ProducerNames
    filler: Filler
    memory: CopyRecords
    translated: TranslatedTakeover | None = None


class Takeover:
    """Opens channels.

    Args:
        loop: the task's loop.
        flow: declares what to do about data loss and recreated topics.
        wires: connections to both clusters.
        context: what the takeover uses.
    """

    def __init__(self, loop: Loop, flow: Flow, wires: Wires, context: TakeoverContext) -> None:
        self._loop = loop
        self._flow = flow
        self._wires = wires
        self._source = wires.source
        self._target = wires.target
        self._context = context
        self._identity = context.identity
        self._filler = context.filler
        self._memory = context.memory
        self._agreement = Agreement(wires.source, wires.target)

    async def run(self, channel: Channel) -> None:
        """Open `channel`, or set its state and the reason why it is not open."""
        channel.busy = True
        try:
            await self._open(channel)
            if channel.state is PartitionState.RUNNING:
                _LOG.debug("%s/%d open at offset %d", channel.place.remote, channel.place.partition, channel.position)
        except Disagreement as stop:
            self._close(channel, *stop.verdict)
        except BrokerError as error:
            self._close(channel, *reasons.why_refused(error, "DESCRIBE", f"topic {channel.place.remote}"))
        except ConnectionLost as error:
            self._close(channel, _OPENING, reasons.no_answer(error))
        except UnreadableBatch as error:
            self._close(channel, _PARKED, reasons.unreadable(error))
        except FillRefused as refused:
            self._close(channel, _PARKED, reasons.not_allowed(refused.operation, refused.resource, refused.name))
        except AnabranchError as error:
            self._close(channel, *reasons.no_journal(error))
        except Exception as error:
            # A fault in one partition must not stop the others.
            self._close(channel, _PARKED, reasons.unforeseen("taking over", error))
        finally:
            channel.busy = False

    @staticmethod
    def _close(channel: Channel, state: PartitionState, reason: Reason) -> None:
        _LOG.debug("%s/%d not open, %s: %s", channel.place.remote, channel.place.partition, state, reason)
        channel.end_opening(state, reason, time.monotonic())

    async def _open(self, channel: Channel) -> None:
        place = channel.place
        source = await self._topic(self._source, "source", place.topic)
        target = await self._topic(self._target, "target", place.remote)
        await self._memory.refresh()
        # First: for a recreated topic the partition counts of either side do not matter.
        is_decided = None
        if isinstance(channel, TranslatedChannel) and self._context.translated is not None:
            is_decided = partial(self._context.translated.is_decided, channel, source, target)
        await refuse_made_anew(self._flow, self._memory, self._target, place, (source, target), is_decided)
        self._refuse_unled("source", source, place.partition)
        self._refuse_unled("target", target, place.partition)
        if isinstance(channel, TranslatedChannel):
            assert self._context.translated is not None, "such channels are made with one"
            await self._wires.connect(target.partitions[place.partition].node)
            await self._context.translated.open(channel, source, target)
            return
        leader = target.partitions[place.partition]
        await self._filler.settle(place)
        # A previous owner may have stored records until `settle` fenced it.
        await self._memory.refresh()
        end, producers = await self._standstill(place, target)
        logs, last = await self._logs(channel, source, target, end)
        if await self._lacks_padding(logs):
            if self._was_open(logs):
                # Where the flow declares to go on, the deleted offsets are padded, which keeps the later ones
                # identical.
                self._loss(logs, Run(0, 0))
            await self._pad(channel, logs)
            return
        await refuse_truncated(self._source, logs, channel.read)
        log_end = await self._producer(logs, producers)
        run = await self._place_to_go_on(channel, logs, last)
        lost = self._loss(logs, run)
        if lost is not None and lost.size > _FILLABLE_LOSS:
            run, lost = Run(lost.next, end - lost.next), None
        await self._remember(logs, run)
        await self._wires.connect(leader.node)
        sides = PartitionSides(source.partitions[place.partition], source.topic_id, leader, target.topic_id)
        # From here on positions are source offsets, as the offsets of records put aside are.
        log_end = log_end._replace(shift=run.shift)
        channel.leave_out(logs.record.aside_from(log_end.position))
        channel.open(sides, log_end, lost)

    async def _topic(self, wire: Wire, side: reasons.Side, name: str) -> TopicInfo:
        try:
            info = (await wire.topics([name]))[name]
        except ConnectionLost as error:
            reason = reasons.no_answer(error, f"{wire.cluster.where} does not answer")
            raise Disagreement(_OPENING, reason.code, reason.text) from None
        if info.error:
            state, reason = reasons.missing_topic(side, name, info.error)
            raise Disagreement(state, reason.code, reason.text)
        return info

    @staticmethod
    def _refuse_unled(side: reasons.Side, topic: TopicInfo, partition: int) -> None:
        leader = topic.partitions.get(partition)
        if leader is None:
            raise Disagreement.of(reasons.missing_partition(side, topic.name, partition, len(topic.partitions)))
        if leader.error or leader.node < 0:
            text = f"partition {partition} of topic {topic.name} has no leader at the {side}"
            raise Disagreement(_OPENING, "AB220", text)

    # --- where both logs stand ---------------------------------------------------------------------------------------

    async def _standstill(self, place: Place, target: TopicInfo) -> tuple[int, list[ProducerState]]:
        """Read the target's log end and its producers until two readings agree."""
        before: tuple[int, list[ProducerState]] | None = None
        for _ in range(_READINGS):
            reading = await self._reading(place, target.partitions[place.partition])
            if reading is not None and reading == before:
                return reading
            before = reading
            await self._loop.sleep(_PAUSE)
        text = f"the end of {place.remote}/{place.partition} keeps moving: another producer writes to it"
        raise Disagreement(_OPENING, "AB221", text)

    async def _reading(self, place: Place, leader: Leader) -> tuple[int, list[ProducerState]] | None:
        try:
            producers = await self._target.producers(leader.node, place.remote, place.partition)
        except BrokerError as error:
            # DescribeProducers needs READ (KIP-664); without it no takeover is safe.
            raise Disagreement.refused(error, "READ", f"topic {place.remote}") from None
        end = await self._target.log_end(leader.node, place.remote, place.partition, leader.epoch)
        return None if end is None else (end, producers)

    async def _logs(self, channel: Channel, source: TopicInfo, target: TopicInfo, end: int) -> tuple[Logs, int]:
        """Return both logs and the source's end."""
        place = channel.place
        at_source, at_target = source.partitions[place.partition].node, target.partitions[place.partition].node
        try:
            first = await self._source.offset(at_source, place.topic, place.partition, EARLIEST)
            last = await self._source.offset(at_source, place.topic, place.partition, LATEST)
        except BrokerError as error:
            raise Disagreement.refused(error, "DESCRIBE", f"topic {place.topic}", "source") from None
        channel.end = last
        start = await self._target.offset(at_target, place.remote, place.partition, EARLIEST)
        found = await tail(self._target, target, place.partition, start, end) if start < end else LogTail(None, end)
        if found is None:
            text = f"the last batch before offset {end} of {place.remote}/{place.partition} is not readable yet"
            raise Disagreement(_OPENING, "AB220", text)
        record = self._memory.get(place)
        if record is None or (target.topic_id and record.target_id not in (None, str(target.topic_id))):
            # The record describes another remote topic: it does not hold for this one.
            record = CopyRecord(None, topic_id(target))
        elif end == 0:
            # The remote topic is empty: only the records that were put aside still count.
            record = replace(record, source_id=None, target_id=topic_id(target), origin=0, runs=Runs(), handed=None)
        if source.topic_id and (self._memory.source_id(place) or str(source.topic_id)) != str(source.topic_id):
            # The offsets put aside are those of another source topic.
            record = replace(record, aside=())
        return Logs(place, source, target, first, start, end, found, within(record, start, end)), last

    async def _lacks_padding(self, logs: Logs) -> bool:
        """Return whether nothing was copied yet and the original begins behind the end of the copy."""
        if logs.is_known or logs.end >= logs.first:
            return False
        return logs.start == logs.end or await is_padding(self._target, logs.place, logs.target, logs.start, logs.end)

    def _was_open(self, logs: Logs) -> bool:
        """Return whether an empty copy was open at its original's first offset before: then offsets were lost since."""
        stored, now = self._memory.get(logs.place), (topic_id(logs.source), topic_id(logs.target))
        return logs.end == 0 and stored is not None and None not in now and _ids(stored) == now

    async def _pad(self, channel: Channel, logs: Logs) -> None:
        """Pad an empty copy towards the begin of its original; the next attempt continues, or opens the channel."""
        if logs.first - logs.end > _LARGEST_PADDING:
            text = (
                f"{logs.name} begins at offset {logs.first:,}: more than {_LARGEST_PADDING:,} offsets would have to be "
                "padded"
            )
            raise Disagreement(_PARKED, "AB206", text)
        log_end = await self._first_owner(logs, self._identity.transactional_id(logs.place))
        channel.reason = Reason("AB222", f"the copy is padded from offset {logs.end:,} to {logs.first:,}")
        try:
            until = min(logs.first, logs.end + _PADDING_PIECE)
            await pad(self._target, logs.place, logs.target, log_end, until)
        except CannotPad as error:
            text = f"{logs.name} begins at offset {logs.first:,}, and its copy cannot be padded: {error}"
            raise Disagreement(_PARKED, "AB206", text) from None
        except BrokerError as error:
            raise Disagreement.refused(error, "DELETE", f"topic {logs.place.remote}") from None

    # --- where to go on ----------------------------------------------------------------------------------------------

    async def _place_to_go_on(self, channel: Channel, logs: Logs, last: int) -> Run:
        """Return the run that goes on at the target's log end."""
        source_id, copied = topic_id(logs.source), logs.record.source_id
        if copied is not None and source_id not in (None, copied):
            return self._made_anew(logs)
        if logs.end < logs.record.ours_from:
            text = (
                f"{logs.copy} ends at {logs.end}, before {logs.record.ours_from}, where it became the copy of "
                f"{logs.name}: the target lost records that are no copies of this topic's"
            )
            raise Disagreement(_PARKED, "AB225", text)
        data_end = logs.markers - logs.record.runs.at_target(logs.markers).shift
        try:
            if last < data_end:
                text = (
                    f"{logs.name} ends at {last}, before its copy {logs.place.remote} at {logs.end}: the source lost "
                    "records or was recreated, or another producer wrote to the copy"
                )
                raise NotYet(text)
            run = await self._agreement.reach(logs, wait=True)
        except NotYet as behind:
            now = time.monotonic()
            channel.behind_since = channel.behind_since or now
            if now - channel.behind_since < _BEHIND_PATIENCE:
                raise
            if last < data_end:
                raise Disagreement(_PARKED, "AB210", str(behind)) from None
            run = await self._agreement.reach(logs, wait=False)
        channel.behind_since = None
        return run

    def _made_anew(self, logs: Logs) -> Run:
        """Return the run for a recreated source topic, or refuse it where the flow declares `park`."""
        if self._flow.on_recreate == "park":
            raise Disagreement.of(reasons.made_anew(logs.place))
        return Run(logs.first, logs.end - logs.first)

    def _loss(self, logs: Logs, run: Run) -> Gap | None:
        """Return the offsets that the source deleted before they were copied, when they may be passed over."""
        if logs.first <= run.source:
            return None
        lost = Gap(run.source, logs.first)
        if self._flow.on_data_loss == "park":
            text = (
                f"{lost.size:,} offsets of {logs.name} were deleted at the source before being copied: {lost.first} to "
                f"{lost.next - 1}; declare `on-data-loss: continue` to go on behind them"
            )
            raise Disagreement(_PARKED, "AB208", text)
        return lost

    async def _remember(self, logs: Logs, run: Run) -> None:
        """Store the copy record that a later owner needs, before anything is written that depends on it."""
        source_id, record, stored = topic_id(logs.source), logs.record, self._memory.get(logs.place)
        if record.source_id is not None and source_id not in (None, record.source_id):
            runs = Runs((run,)) if run.shift else Runs()
            wanted = CopyRecord(source_id, record.target_id, logs.end, runs, handed=record.handed)
        elif record.runs.at_target(logs.end).shift != run.shift:
            wanted = replace(record, source_id=source_id, runs=record.runs.extended(run))
        elif stored is None:
            # The first record of a copy, on which nothing depends yet.
            self._memory.hint(logs.place, replace(record, source_id=source_id))
            return
        else:
            wanted = replace(record, source_id=source_id or record.source_id)
            # Runs that the target has lost would otherwise be applied to the records written in their place.
            if (
                all(one.target <= logs.end for one in stored.runs.runs)
                and wanted.runs.shift == stored.runs.shift
                and _ids(wanted) == _ids(stored)
                and wanted.origin == stored.origin
            ):
                return
        await self._memory.put(logs.place, wanted)

    # --- which producer ----------------------------------------------------------------------------------------------

    async def _producer(self, logs: Logs, producers: list[ProducerState]) -> LogEnd:
        """Return the producer to go on with at the target's log end."""
        handed, last = logs.record.handed, logs.tail.last
        strangers = handed.producers if handed else ()
        # A producer that wrote only markers has written no record, and markers are checked by offset. Gap filling
        # leaves such producers.
        writers = [
            p for p in producers if (p.last_sequence >= 0 or p.open_transaction) and p.producer_id not in strangers
        ]
        if len(writers) > 1 or any(p.open_transaction for p in writers):
            ids = ", ".join(str(p.producer_id) for p in writers)
            text = (
                f"another producer writes to {logs.copy}: it has producers {ids}; only the replicator may write to a "
                f"copy; once it has ended, {reasons.recreating(logs.place.remote)}"
            )
            raise Disagreement(_PARKED, "AB211", text)
        if writers:
            (known,) = writers
            return LogEnd(logs.end, known.producer_id, known.epoch, next_sequence(known.last_sequence, 1))
        if handed is not None and (last is None or last.next_offset <= handed.end):
            return await self._first_owner(logs, self._identity.heir_id(logs.place, handed.end))
        if last is not None:
            return _after(last, logs)
        return await self._first_owner(logs, self._identity.transactional_id(logs.place))

    async def _first_owner(self, logs: Logs, transactional_id: str) -> LogEnd:
        try:
            producer_id = await self._target.producer_id(transactional_id)
        except BrokerError as error:
            raise Disagreement.refused(error, "WRITE", f"transactional id {transactional_id}") from None
        # Epoch 0, whatever the coordinator returned: every first owner must begin with the same state.
        return LogEnd(logs.end, producer_id, 0, logs.end % SEQUENCE_MODULUS)


def _after(last: Batch, logs: Logs) -> LogEnd:
    """Return where to continue behind a batch whose producer state the broker has expired."""
    if last.producer_id < 0 or last.is_transactional:
        text = (
            f"another producer wrote to {logs.copy}: its last batch, at offset {last.base_offset}, is not the "
            f"replicator's; {reasons.recreating(logs.place.remote)}"
        )
        raise Disagreement(_PARKED, "AB211", text)
    sequence = next_sequence(last.base_sequence, last.last_offset_delta + 1)
    return LogEnd(logs.end, last.producer_id, last.producer_epoch, sequence)


def _ids(record: CopyRecord) -> tuple[str | None, str | None]:
    return record.source_id, record.target_id
