"""Recovers the position of a copy whose group has lost it, from the last offset sync of the partition.

Committed positions can be deleted by an operator, or expire while nothing runs. The compacted topic of offset syncs
keeps each partition's last sync, and `transactional` writes into each transaction with records of a partition a sync
that holds the position committed with it. `translated` uses it before it gives a copy up.
"""

from __future__ import annotations

from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState
from reconciler.records.batch import MAGIC, Batch, UnreadableBatch
from reconciler.records.read_committed import sift
from reconciler.records.split import split
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.coalesced import CoalescedRead
from reconciler.replicator.copy.log_reading import read
from reconciler.replicator.partition import offset_syncs, reasons
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync
from reconciler.replicator.partition.place import differ
from reconciler.replicator.partition.shares import Place
from reconciler.wire import EARLIEST, LATEST, BrokerError, ErrorCode, Loop, TopicInfo, Wire
from reconciler.wire.requests.commits import CommittedPosition, Log

_PAUSE = 0.05
# Tries before an open transaction in the topic is given up: a living task ends it right after its syncs.
_PATIENCE = 40


class PositionUnknown(Exception):
    """The last offset sync holds no position of this copy."""


class PositionRecovery:
    """Positions in the last offset syncs of all partitions whose originals are in one cluster.

    Args:
        loop: the task's loop.
        wire: to the target.
        topic: of the offset syncs.
    """

    def __init__(self, loop: Loop, wire: Wire, topic: str) -> None:
        self._loop = loop
        self._wire = wire
        self._topic = topic
        self._reading = CoalescedRead(loop, self._read_all)
        self._last: dict[Log, OffsetSync] = {}
        self._forget(None)

    def _forget(self, topic_id: object) -> None:
        """Start reading again from the beginning; earlier results count until that is complete."""
        self._topic_id = topic_id
        self._at = 0
        self._found: dict[Log, OffsetSync] = {}

    async def position(self, place: Place, known: CopyRecord) -> CommittedPosition:
        """Return the position that was committed with the newest records of a copy.

        Args:
            place: the partition.
            known: the record of the copy in the present remote topic.

        Raises:
            PositionUnknown: no reliable sync holds it.
            Disagreement: the syncs cannot be read now, or are not allowed.
            ConnectionLost: no answer.
        """
        # A lost group had positions of many partitions: one read serves all.
        await self._reading.refresh()
        return position_of(self._last.get((place.topic, place.partition)), known)

    async def committed_by(self, transactional_id: str) -> dict[Log, CommittedPosition]:
        """Return the positions in last syncs that were committed under one transactional id, by original.

        Raises:
            PositionUnknown: the topic of the syncs cannot be read.
            Disagreement: the syncs cannot be read now, or are not allowed.
            ConnectionLost: no answer.
        """
        await self._reading.refresh()
        positions = ((log, sync.position) for log, sync in self._last.items())
        return {
            log: one
            for log, one in positions
            if one and OffsetMetadata.parse(one.note).transactional_id == transactional_id
        }

    async def _read_all(self) -> None:
        """Read all syncs committed by now that were not read before."""
        topic = self._topic
        info = (await self._wire.topics([topic]))[topic]
        if info.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._forget(None)
            self._last = self._found
            return
        if info.error:
            state, reason = reasons.missing_topic("target", topic, info.error)
            raise Disagreement(state, reason.code, reason.text)
        leader = info.partitions.get(0)
        if leader is None or leader.error:
            raise Disagreement(PartitionState.OPENING, "AB220", f"topic {topic} has no leader at the target")
        if info.topic_id != self._topic_id:
            self._forget(info.topic_id)
        try:
            first = await self._wire.offset(leader.node, topic, 0, EARLIEST)
            end = await self._wire.offset(leader.node, topic, 0, LATEST)
            if self._at > end:
                # The leader has lost records that were read.
                self._forget(info.topic_id)
            self._at = max(self._at, first)
            await self._read_upto(info, end)
            self._last = self._found
        except BrokerError as error:
            raise Disagreement.refused(error, "READ", f"topic {topic}") from None
        except UnreadableBatch as error:
            # Another leader, or the next read, may return it undamaged.
            raise Disagreement(PartitionState.OPENING, "AB220", f"topic {topic} cannot be read: {error}") from None
        except ValueError as error:
            # It is then unknown which sync is the last one.
            message = f"topic {topic} cannot be read: {error}"
            raise PositionUnknown(message) from None

    async def _read_upto(self, info: TopicInfo, end: int) -> None:
        patience = _PATIENCE
        while self._at < end:
            # The committer uses this connection, too, and must not wait behind a long poll.
            answer = await read(self._wire, info, 0, self._at, committed=True, wait_ms=0)
            before = self._at
            for item in sift(split(answer.records), before, answer.aborted):
                if not isinstance(item, Batch):
                    self._at = item.next
                    continue
                if not item.is_intact:
                    raise UnreadableBatch(item.base_offset, MAGIC, "its checksum does not fit")
                for sync in offset_syncs.read_batch(item):
                    self._found[sync.topic, sync.partition] = sync
                self._at = item.next_offset
            if self._at > before:
                continue
            if answer.last_stable_offset >= end:
                # Compaction has removed the rest.
                self._at = end
                return
            if not patience:
                # The open transaction may hold the last sync of a partition.
                text = f"a transaction in {info.name} is not ended yet"
                raise Disagreement(PartitionState.OPENING, "AB220", text)
            patience -= 1
            await self._loop.sleep(_PAUSE)


def position_of(sync: OffsetSync | None, known: CopyRecord) -> CommittedPosition:
    """Return the position in a partition's last sync.

    Args:
        sync: the last one. If it holds no position, earlier ones do not count: another program has continued the copy
            beyond them.
        known: the record of the copy.

    Raises:
        PositionUnknown: it holds no position of this copy.
    """
    if sync is None:
        message = "there is none"
        raise PositionUnknown(message)
    if sync.position is None:
        message = "it was not written in a transaction of this copy"
        raise PositionUnknown(message)
    note = OffsetMetadata.parse(sync.position.note)
    # Brokers delete a topic's committed positions with it: without topic ids the topic may have been recreated.
    if note.target_id is None or note.target_id != known.target_id:
        message = "it is of another remote topic"
        raise PositionUnknown(message)
    if differ(note.source_id, known.source_id):
        message = "it is of another source topic"
        raise PositionUnknown(message)
    return sync.position
