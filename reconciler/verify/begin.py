"""Finds where a copy with translated offsets begins: a record of the source, and the same one at the target.

`work` calls it before it compares, and again if retention has deleted the records that come next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from reconciler.model.offsets.verification import Difference
from reconciler.records.batch import UnreadableBatch
from reconciler.records.read_committed import Gap, sift
from reconciler.records.rewrite import RawRecord, raw_records
from reconciler.records.split import split
from reconciler.replicator.copy.log_reading import read
from reconciler.replicator.transfer.pace import Quota
from reconciler.verify.comparison.align import align
from reconciler.verify.comparison.side import content
from reconciler.verify.patience import newest, patiently, room
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.wire import (
    EARLIEST,
    LATEST,
    BrokerError,
    ErrorCode,
    FetchAnswer,
    Loop,
    TopicInfo,
    Wire,
    stable_ends,
)

_RECORDS = 4096
_BYTES = 8 * 2**20


class NoBeginning(Exception):
    """Raised if the beginning of a copy that other flows fill, too, cannot be found."""


@dataclass
class LogReader:
    """One side's log of one partition, up to the end of the comparison.

    Attributes:
        loop: to sleep on.
        wire: to its cluster.
        topic: as the cluster describes it; read again when its leader moves.
        partition: its number.
        end: the end offset of the comparison.
        committed: whether only committed records count.
        quota: bytes per second that may be read.
    """

    loop: Loop
    wire: Wire
    topic: TopicInfo
    partition: int
    end: int
    committed: bool
    quota: Quota

    async def records(self, offset: int) -> list[RawRecord]:
        """Return the records from an offset on: some thousand, or some megabytes.

        Raises:
            ConnectionLost: no answer for `PATIENCE` seconds.
            BrokerError: the broker refuses.
            UnreadableBatch: a batch cannot be read.
        """
        found: list[RawRecord] = []
        size = 0
        while offset < self.end and len(found) < _RECORDS and size < _BYTES:
            await room(self.loop, self.quota)
            try:
                answer = await patiently(self.loop, partial(self._read, offset), self._look_who_leads)
            except BrokerError as error:
                first = await self.at_time(EARLIEST)
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or first <= offset:
                    raise
                # Deleted meanwhile.
                offset = first
                continue
            self.quota.spend(len(answer.records))
            before = offset
            for item in sift(split(answer.records), offset, answer.aborted):
                if isinstance(item, Gap):
                    offset = item.next
                    continue
                try:
                    found += [one for one in raw_records(item) if before <= one.offset < self.end]
                except ValueError as error:
                    raise UnreadableBatch(item.base_offset, 2, str(error)) from error
                offset, size = item.next_offset, size + item.size
            if offset == before:
                break
        return found

    async def at_time(self, timestamp: int) -> int:
        """Return the first offset of a time in ms, or -1; errors are those of `records`."""
        return await patiently(self.loop, partial(self._offset, timestamp), self._look_who_leads)

    async def readable_to(self) -> int:
        """Return the offset up to which the log can be read now; errors are those of `records`."""
        if not self.committed:
            return await self.at_time(LATEST)
        return await patiently(self.loop, self._stable_end, self._look_who_leads)

    async def _read(self, offset: int) -> FetchAnswer:
        return await read(self.wire, self.topic, self.partition, offset, committed=self.committed, wait_ms=0)

    async def _offset(self, timestamp: int) -> int:
        leader = self.topic.partitions[self.partition]
        return await self.wire.offset(leader.node, self.topic.name, self.partition, timestamp)

    async def _stable_end(self) -> int:
        place = self.topic.name, self.partition
        end = (await stable_ends(self.wire, self.topic.partitions[self.partition].node, [place])).get(place)
        if end is None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return end

    async def _look_who_leads(self) -> None:
        self.topic = await newest(self.wire, self.topic)


async def find_pair(source: LogReader, target: LogReader, bounds: SliceBounds, progress: SliceProgress) -> None:
    """Move both positions to the same record, or mark the partition as done if nothing is left to compare.

    Raises:
        ConnectionLost: no answer.
        BrokerError: a broker refuses.
        UnreadableBatch: a batch cannot be read.
        NoBeginning: no such record is found, though it may be a copy.
    """
    await _find(source, target, bounds, progress)
    # Set last: an interrupted search is repeated.
    progress.is_paired = True


async def _find(source: LogReader, target: LogReader, bounds: SliceBounds, progress: SliceProgress) -> None:
    ours, theirs = await source.records(progress.source), await target.records(progress.target)
    has_first = bounds.has_first and progress.source == bounds.source_first and progress.target == bounds.target_first
    if not theirs and not (has_first and bounds.copied_to):
        reached = max(progress.source, bounds.copied_to or 0)
        progress.findings.counts.behind = max(0, bounds.source_end - reached)
        progress.target, progress.is_done = bounds.target_end, True
        return
    if not ours:
        await _without_original(source, bounds, progress)
        return
    found = align(list(map(content, ours)), list(map(content, theirs)))
    if found is not None:
        before, after = found
        if not has_first:
            progress.source = ours[before].offset
        if not has_first or bounds.source_first:
            progress.findings.counts.expired += after
            progress.target = theirs[after].offset
        return
    if has_first and not bounds.source_first:
        return
    if bounds.copied_to is not None and bounds.copied_to <= ours[0].offset:
        # The source has deleted all copied records, and none that it still has is copied.
        _leave_out_copy(bounds, progress)
        progress.findings.counts.behind = max(0, bounds.source_end - progress.source)
        return
    pair = await _by_time(source, target, ours, theirs) or _by_sync(bounds, progress)
    if pair is not None:
        progress.source, progress.target = pair
        return
    if bounds.is_shared:
        message = (
            "other flows copy there, too, and this one's first record is found neither by records nor by an offset sync"
        )
        raise NoBeginning(message)
    what = "the copy's first record is found neither by records nor by an offset sync: is it a copy of this topic?"
    progress.findings.add(Difference("unrelated", progress.source, progress.target, what))
    progress.is_done = True


async def _without_original(source: LogReader, bounds: SliceBounds, progress: SliceProgress) -> None:
    """Handle a copy whose original holds no records: retention has deleted them, or there were none."""
    first = await source.at_time(EARLIEST)
    if not first and not progress.source:
        # Nothing was deleted: records of the target are foreign, or compacted at the source; the comparison decides.
        return
    if first >= progress.source:
        _leave_out_copy(bounds, progress)
    progress.source, progress.target, progress.is_done = bounds.source_end, bounds.target_end, True


def _leave_out_copy(bounds: SliceBounds, progress: SliceProgress) -> None:
    """Count the rest of a copy as deleted at the source, by offsets, without reading it."""
    progress.findings.counts.expired += max(0, bounds.target_end - progress.target)
    progress.target, progress.is_done = bounds.target_end, True


async def _by_time(
    source: LogReader, target: LogReader, ours: list[RawRecord], theirs: list[RawRecord]
) -> tuple[int, int] | None:
    """Find the first record of one side at the other side, by its timestamp."""
    at = await source.at_time(theirs[0].timestamp)
    if at > ours[0].offset:
        later = await source.records(at)
        if found := align(list(map(content, later)), list(map(content, theirs))):
            return later[found[0]].offset, theirs[found[1]].offset
    at = await target.at_time(ours[0].timestamp)
    if at > theirs[0].offset:
        later = await target.records(at)
        if found := align(list(map(content, ours)), list(map(content, later))):
            return ours[found[0]].offset, later[found[1]].offset
    return None


def _by_sync(bounds: SliceBounds, progress: SliceProgress) -> tuple[int, int] | None:
    if bounds.sync is None or bounds.sync[0] < progress.source or bounds.sync[1] < progress.target:
        return None
    return bounds.sync
