"""Takeover of a copy with translated offsets: finds the position that was committed last.

`identical` calls it for such channels. The position is in the flow's group at the target, committed in the same
transaction as the records before it; transactions that a previous owner left open are aborted first, or waited for.
Where the group has lost the position, the last offset sync may hold it (`position_recovery`). Where there never was
one, the copy begins where the flow declares.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial

from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.commit.base import Committer
from reconciler.replicator.commit.hanging_transactions import end, fence_the_dead, unended
from reconciler.replicator.commit.position_recovery import PositionRecovery, PositionUnknown
from reconciler.replicator.commit.unstable_offsets import end_positions
from reconciler.replicator.copy.agreement import Disagreement, NotYet
from reconciler.replicator.copy.copy_records import CopyRecords
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.copy.recreated import other_partitions
from reconciler.replicator.copy.truncation import truncated, truncated_at
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import PartitionSides, ReadPosition, differ, topic_id
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import EARLIEST, LATEST, BrokerError, ErrorCode, TopicInfo, Wire
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition
from reconciler.wire.requests.transactions import settle

_OPENING, _PARKED = PartitionState.OPENING, PartitionState.PARKED
_BEHIND_PATIENCE = 30.0
# The code of reasons for a missing permission.
_REFUSED = "AB213"

Producer = tuple[int, int]


class TranslatedTakeover:
    """Opens the channels of copies with translated offsets.

    Args:
        flow: declares what to do about data loss and recreated topics.
        source: connection to the source.
        target: connection to the target.
        committer: commits the channels' positions.
        memory: the copy records.
        syncs: reads positions from the offset syncs.
    """

    def __init__(
        self, flow: Flow, source: Wire, target: Wire, committer: Committer, memory: CopyRecords, syncs: PositionRecovery
    ) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._committer = committer
        self._memory = memory
        self._syncs = syncs

    async def open(self, channel: TranslatedChannel, source: TopicInfo, target: TopicInfo) -> None:
        """Open `channel` at its committed position.

        Raises:
            Disagreement: it cannot be opened, or not yet.
            ConnectionLost: no answer.
            BrokerError: a broker refuses.
        """
        place = channel.place
        source_id, target_id = topic_id(source), topic_id(target)
        producer = await self._committer.producer(channel)
        dead = await self._fence_the_dead(place, target, producer)
        committed, before = await self._committed(partial(self._in_group, place))
        if committed is not None and differ(OffsetMetadata.parse(committed.note).target_id, target_id):
            # The position is one of a remote topic that was deleted.
            committed = None
        known = await self._known(place, target_id)
        is_in_group = committed is not None
        if committed is None:
            if known is None:
                self._refuse_renamed(place, source_id, target_id)
            committed, before = await self._committed(partial(self._in_syncs, place, target, known))
        if committed is not None and not is_in_group:
            # The previous owner may have put records aside until it was fenced just now.
            known = await self._known(place, target_id)
        note = OffsetMetadata() if committed is None else OffsetMetadata.parse(committed.note)
        await self._end_what_is_over(channel, target, note, {before, producer, *dead})
        leads, takes = source.partitions[place.partition], target.partitions[place.partition]
        first, last = await self._bounds(place, source)
        channel.end = last
        lost, anew_from = None, None if self._committer.transactional_id else 0
        if committed is None:
            position = await self._beginning(place, source, target, (first, last))
        else:
            behind, lost = await self._truncated(place, source, note, committed.offset)
            position = await self._going_on(channel, note, behind, (first, last), (source, target))
            anew_from = note.anew_at(differ(note.source_id, source_id), leads.epoch, committed.offset, behind)
        at_first_commit = None
        # The record is of a deleted source topic: today's topic of that name has other records at its offsets.
        of_another = known is not None and differ(known.source_id, source_id)
        sides = PartitionSides(leads, source.topic_id, takes, target.topic_id)
        if known is None or of_another or not known.is_begun or not known.partitions:
            at_first_commit = self._telling(place, sides, len(source.partitions))
            if is_in_group and not of_another:
                # The record that the copy has begun was lost, and in a quiet topic the next commit may be far away.
                at_first_commit()
        if lost is not None and known is not None:
            known = await self._without_what_is_lost(place, known, position)
        channel.leave_out(() if known is None or of_another else known.aside_from(position))
        if self._committer.transactional_id:
            # An abort because of another channel may have led to a new epoch in between.
            producer = await self._committer.producer(channel)
        note = note._replace(source_id=source_id, target_id=target_id, anew_from=anew_from)
        channel.begin(sides, position, producer, self._ours(note), at_first_commit)
        # A position found outside the group is committed to it again, even when there is nothing to write.
        channel.is_new = not is_in_group
        if lost is not None and channel.state is PartitionState.RUNNING:
            # Status shows which offsets were passed over.
            channel.reason = lost

    async def is_decided(self, channel: TranslatedChannel, source: TopicInfo, target: TopicInfo) -> bool:
        """Return whether a position in today's original was committed: the flow then continues with that topic.

        A producer that died in a transaction which would commit one is fenced first.

        Raises:
            Disagreement: reading it is not permitted, or it is not decided yet.
            ConnectionLost: no answer.
            BrokerError: a broker refuses.
        """
        place, takes = channel.place, target.partitions.get(channel.place.partition)
        if takes is None or takes.error or takes.node < 0:
            return False
        await self._fence_the_dead(place, target, await self._committer.producer(channel))
        committed, _ = await self._committed(partial(self._in_group, place))
        return committed is not None and OffsetMetadata.parse(committed.note).is_of(topic_id(source), topic_id(target))

    def _ours(self, note: OffsetMetadata) -> OffsetMetadata:
        return note._replace(transactional_id=self._committer.transactional_id)

    def _telling(self, place: Place, sides: PartitionSides, partitions: int) -> Callable[[], None]:
        """Return a function that records that a copy has begun, and how many partitions its original had then."""
        return partial(self._memory.change_later, place, partial(_begun, sides.copy_record(), partitions))

    async def _without_what_is_lost(self, place: Place, known: CopyRecord, position: int) -> CopyRecord:
        """Drop the records put aside which the source has lost: other records have their offsets now.

        This happens before anything is copied from there: once positions are in the new log, the two cannot be
        distinguished.
        """
        if known.aside_from(position):
            known = known.aside_below(position)
            await self._memory.change(place, partial(_below, position, known))
        return known

    def _refuse_renamed(self, place: Place, source_id: str | None, target_id: str | None) -> None:
        """Refuse to begin where a flow of another name has copied this same topic into this same remote topic."""
        for flow, record in self._memory.of_others(place).items():
            are_known = source_id is not None and target_id is not None
            if are_known and record.is_begun and (record.source_id, record.target_id) == (source_id, target_id):
                text = (
                    f"flow {flow} has filled {place.remote}/{place.partition} from this topic, and its position goes "
                    f"by that name: as {self._flow.name} all would be copied once more; call the flow {flow} again, or "
                    f"have the copy made anew by `anabranch recreate --target {place.remote}`"
                )
                raise Disagreement(_PARKED, "AB233", text)

    async def _known(self, place: Place, target_id: str | None) -> CopyRecord | None:
        """Return the copy record, if it is one of today's remote topic."""
        await self._memory.refresh()
        known = self._memory.get(place)
        # The record of a deleted remote topic does not hold for a new one of the same name.
        return None if known is None or differ(known.target_id, target_id) else known

    async def _committed(
        self, look: Callable[[], Awaitable[CommittedPosition | None]]
    ) -> tuple[CommittedPosition | None, Producer | None]:
        """Return the position committed last, and its producer, fenced, if that is not this task's."""
        found = await look()
        if found is None:
            return None, None
        before = OffsetMetadata.parse(found.note).transactional_id
        mine = self._committer.transactional_id
        # Without transactions (at-least-once) this task can fence no other producer: open transactions are aborted by
        # their time-out. A commit may name any transactional id; those of other programs are not fenced.
        if before == mine or not mine or not ProducerNames.is_one_flow(before, mine):
            return found, None
        fenced = await settle(self._target, before)
        return await look(), (fenced.producer_id, fenced.epoch)

    async def _fence_the_dead(self, place: Place, target: TopicInfo, producer: Producer) -> list[Producer]:
        mine = self._committer.transactional_id
        return await fence_the_dead(self._target, place, target, mine, producer[0]) if mine else []

    async def _end_what_is_over(
        self, channel: TranslatedChannel, target: TopicInfo, note: OffsetMetadata, producers: Iterable[Producer | None]
    ) -> None:
        """Write transaction markers that a broker has left out; refuse a log that lost records before the position.

        Args:
            channel: none of its records is in a transaction.
            target: the remote topic.
            note: the metadata committed with its position.
            producers: the producers whose transactions are looked up, with their current epochs.
        """
        place, epochs = channel.place, dict(one for one in producers if one is not None)
        await self._refuse_lost(place, target, note)
        if not self._committer.transactional_id:
            return
        for found in await unended(self._target, place, target, frozenset(epochs)):
            if found.epoch >= epochs[found.producer_id]:
                # Right after the end of a transaction its marker may not be written yet; under a new epoch there can be
                # none.
                self._committer.failed(channel)
                raise Disagreement(_OPENING, "AB220", f"a transaction in {place.remote}/{place.partition} seems open")
            await end(self._target, place, target, found, committed=found.opened_at == note.began)

    async def _refuse_lost(self, place: Place, target: TopicInfo, note: OffsetMetadata) -> None:
        """Refuse to continue where the target has lost records before the position, as after an unclean election."""
        # Behind the last record of a transaction comes its marker, which may not be written yet.
        least = max(note.began + 1, note.ended or 0)
        if not least:
            return
        leader = target.partitions[place.partition]
        end = await self._target.log_end(leader.node, place.remote, place.partition, leader.epoch)
        if end is not None and end < least:
            text = (
                f"{place.remote}/{place.partition} ends at {end}, and what was copied before its position reached "
                f"{least}: the target lost records"
            )
            raise Disagreement(_PARKED, "AB225", text)

    async def _in_group(self, place: Place) -> CommittedPosition | None:
        """Return the position committed in the group."""
        log = place.remote, place.partition
        try:
            return (await commits.positions(self._target, self._committer.member, [log])).get(log)
        except BrokerError as error:
            if error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                await self._end_positions()
                text = f"a transaction that holds the position of {place.remote}/{place.partition} is not ended yet"
                raise Disagreement(_OPENING, "AB220", text) from None
            raise Disagreement.refused(error, "DESCRIBE", f"group {self._committer.member.group}") from None

    async def _end_positions(self) -> None:
        """Write the markers that a broker has left out in `__consumer_offsets`; the next attempt reads the position."""
        if mine := self._committer.transactional_id:
            who = self._committer.member
            await end_positions(self._target, self._syncs, who, mine, self._flow.remote_topic)

    async def _in_syncs(self, place: Place, target: TopicInfo, known: CopyRecord | None) -> CommittedPosition | None:
        """Return the position of a copy that its group has lost, from the copy's last offset sync.

        Returns:
            None where there never was one. For a copy that is not recorded as begun, None also where no sync holds a
            position or the syncs may not be read: the record is stored behind the first commit, and a task that dies in
            between stores nothing.
        """
        is_begun = known is not None and known.is_begun
        if not is_begun and not (self._committer.transactional_id and await self._is_written(place, target)):
            return None
        why = "without transactions offset syncs hold no position"
        if self._committer.transactional_id:
            try:
                return await self._syncs.position(place, known or CopyRecord(None, topic_id(target)))
            except PositionUnknown as error:
                why = str(error)
            except Disagreement as refusal:
                # Reading them is an optional permission: a first run that died may have left syncs that no task may
                # read.
                if is_begun or refusal.verdict[1].code != _REFUSED:
                    raise
        if not is_begun:
            return None
        text = (
            f"the position of {place.remote}/{place.partition} is not there any more: it was deleted, or expired as "
            "nothing ran for longer than offsets.retention.minutes of the target; the last offset sync does not hold "
            f"it either: {why}; have the copy made anew by `anabranch recreate --target {place.remote}`"
        )
        raise Disagreement(_PARKED, "AB226", text)

    async def _is_written(self, place: Place, target: TopicInfo) -> bool:
        """Return whether anything was ever written to the remote partition; if not, no sync can be about it."""
        node = target.partitions[place.partition].node
        try:
            return await self._target.offset(node, place.remote, place.partition, LATEST) > 0
        except BrokerError as error:
            raise Disagreement.refused(error, "DESCRIBE", f"topic {place.remote}") from None

    async def _bounds(self, place: Place, source: TopicInfo) -> tuple[int, int]:
        node = source.partitions[place.partition].node
        try:
            first = await self._source.offset(node, place.topic, place.partition, EARLIEST)
            last = await self._source.offset(node, place.topic, place.partition, LATEST)
        except BrokerError as error:
            raise Disagreement.refused(error, "DESCRIBE", f"topic {place.topic}", "source") from None
        return first, last

    async def _beginning(self, place: Place, source: TopicInfo, target: TopicInfo, bounds: tuple[int, int]) -> int:
        """Return where a copy without a position begins, as its flow declares."""
        (first, last), start = bounds, self._flow.start
        others = other_partitions(self._memory, place, source, target)
        if start.at != "timestamp" and next(others, None) is not None:
            # `start` was declared for the topic that was there before; of a recreated one all records are new.
            return first
        named = start.offsets_of(place.topic)[place.partition :]
        if start.at == "latest":
            # All records of a partition that appeared after the run's start, or the topic's, are new.
            return first if place.is_late or self._is_added(place, source, target) else last
        if start.at == "timestamp":
            node = source.partitions[place.partition].node
            found = await self._source.offset(node, place.topic, place.partition, start.timestamp)
            # All its records are older.
            return last if found < 0 else found
        if not named:
            return first
        if not first <= named[0] <= last:
            text = (
                f"{place.topic}/{place.partition} has offsets {first} to {last}, and its copy would begin at "
                f"{named[0]}: correct start.offsets of flow {self._flow.name}"
            )
            raise Disagreement(_PARKED, "AB227", text)
        return named[0]

    def _is_added(self, place: Place, source: TopicInfo, target: TopicInfo) -> bool:
        """Return whether a partition was added after other partitions of its topic were begun, in any run."""
        ids = topic_id(source), topic_id(target)
        others = (self._memory.get(place._replace(partition=number)) for number in source.partitions)
        counts = [one.partitions for one in others if one and one.partitions and (one.source_id, one.target_id) == ids]
        return bool(counts) and place.partition >= min(counts)

    async def _truncated(
        self, place: Place, source: TopicInfo, note: OffsetMetadata, position: int
    ) -> tuple[int, Reason | None]:
        """Return where to continue after a truncation of the source, with the reason; else the position and None."""
        if note.epoch is None or differ(note.source_id, topic_id(source)):
            return position, None
        read = ReadPosition(position, note.epoch, source.topic_id, None)
        end = await truncated_at(self._source, source, place.partition, position, read)
        if end is None:
            return position, None
        goes_on = f"with what the source has from {end}"
        if self._flow.on_data_loss == "park":
            remedy = f"the copy keeps them; declare `on-data-loss: continue` to go on {goes_on}"
            reason = truncated(place, end, position, remedy)
            raise Disagreement(_PARKED, reason.code, reason.text)
        return end, truncated(place, end, position, f"the copy keeps them and went on {goes_on}")

    async def _going_on(
        self,
        channel: TranslatedChannel,
        note: OffsetMetadata,
        position: int,
        bounds: tuple[int, int],
        topics: tuple[TopicInfo, TopicInfo],
    ) -> int:
        """Return where to continue behind a committed position."""
        place, (first, last), (source, target) = channel.place, bounds, topics
        name = f"{place.topic}/{place.partition}"
        if differ(note.source_id, topic_id(source)):
            # An empty copy cannot hold records of two topics.
            if self._flow.on_recreate == "park" and await self._is_written(place, target):
                raise Disagreement.of(reasons.made_anew(place, position))
            return first
        if position > last:
            now = time.monotonic()
            channel.behind_since = channel.behind_since or now
            lost = position - last
            text = f"{name} ends at {last}, {lost:,} offsets before position {position}: the source lost records"
            if now - channel.behind_since < _BEHIND_PATIENCE:
                raise NotYet(text)
            raise Disagreement(_PARKED, "AB210", text)
        channel.behind_since = None
        if position < first and self._flow.on_data_loss == "park":
            text = (
                f"{first - position:,} offsets of {name} were deleted at the source before being copied: {position} to "
                f"{first - 1}; declare `on-data-loss: continue` to go on behind them"
            )
            raise Disagreement(_PARKED, "AB208", text)
        return max(position, first)


def _below(position: int, read: CopyRecord, known: CopyRecord | None) -> CopyRecord:
    """Return the copy record without what was put aside from a position on."""
    return (known or read).aside_below(position)


def _begun(now: CopyRecord, partitions: int, known: CopyRecord | None) -> CopyRecord:
    """Return the copy record after the first commit; what was put aside before is kept."""
    record = now.with_what_is_known(known)
    return replace(record, is_begun=True, partitions=record.partitions or partitions)
