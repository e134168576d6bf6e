"""Reads the offset syncs of one source: where its copies' records are, read once and then followed.

The topic is compacted by partition, so old syncs are removed some day: `replicate` sets a compaction lag of a week, and
a process that follows the topic keeps what it has read. A sync without a span (older releases, MirrorMaker 2) covers
one record.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Collection, Iterable

from confluent_kafka import Message

from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.checkpoints.translation.runs import PairedRuns, Point
from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.offsets.committed import Log
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync, sync_of
from reconciler.replicator.partition.place import differ
from reconciler.state.confluent.faults import unreachable
from reconciler.state.journals.encoding import headers

# The writer of syncs ends the transaction right after them, unless it has died.
_PATIENCE = 3.0
_PAUSE = 0.05


class _CopySyncs:
    """The runs of one partition, and the syncs of its newest transaction so far."""

    def __init__(self) -> None:
        self.runs = PairedRuns()
        self.note = OffsetMetadata()
        self.last: OffsetSync | None = None
        self._pending: list[OffsetSync] = []

    def add(self, sync: OffsetSync) -> None:
        self.last = sync
        self._pending.append(sync)
        if sync.position is not None:
            note = OffsetMetadata.parse(sync.position.note)
            if differ(note.target_id, self.note.target_id) or differ(note.source_id, self.note.source_id):
                # Another topic took the name on one side: earlier syncs are not about it.
                self.runs = PairedRuns()
            self.note = note
            self.settle()
        elif sync.span is None or sync.span.repeats:
            self.settle()

    def settle(self) -> None:
        """Apply the pending syncs."""
        for sync in self._pending:
            first, span = Point(sync.source, sync.target), sync.span
            if span is None:
                self.runs.add_point(first)
                continue
            if span.is_anew and not span.begin:
                # Either topic may have been recreated: no position holds the ids any more.
                self.note = OffsetMetadata()
            self.runs.add(first, span.parts, span.begin, repeats=span.repeats, is_anew=span.is_anew)
        self._pending.clear()


class SyncHistory:
    """The offset syncs of all copies at one target whose originals are in one source cluster.

    Args:
        target: where the copies are.
        source: alias of the source cluster.
        seconds: how long the cluster may take to answer.

    Attributes:
        is_behind: whether an open transaction may hold further syncs.
    """

    def __init__(self, target: Cluster, source: str, seconds: float) -> None:
        self.topic = syncs_topic(source)
        self.is_behind = False
        self._target = target
        self._lookup = ClusterLookup(target, seconds)
        self._record_reader = RecordReader(target, committed=True, seconds=seconds, may_pass=True)
        self._copies: dict[Log, _CopySyncs] = {}
        self._topic_id: str | None = None
        self._at = 0

    @property
    def logs(self) -> Collection[Log]:
        """The partitions with offset syncs."""
        return self._copies.keys()

    def runs(self, log: Log) -> PairedRuns:
        """Return the runs of one partition, by its original's name."""
        copy = self._copies.get(log)
        return PairedRuns() if copy is None else copy.runs

    def note(self, log: Log) -> OffsetMetadata:
        """Return the metadata with the ids of the topics that the runs belong to."""
        copy = self._copies.get(log)
        return OffsetMetadata() if copy is None else copy.note

    def last(self, log: Log) -> OffsetSync | None:
        """Return the last sync of one partition; it holds the position that was committed with it, if any."""
        copy = self._copies.get(log)
        return None if copy is None else copy.last

    def refresh(self) -> None:
        """Read the syncs since the last call.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB313, reading is refused; or what `clients.make` raises.
        """
        for copy in self._copies.values():
            copy.runs.doubt()
        seen = self._lookup.topics([self.topic]).get(self.topic)
        if seen is None:
            self._forget(None)
            return
        log = self.topic, 0
        if (bounds := self._lookup.bounds([log]).get(log)) is None:
            raise unreachable(self._target, f"{self.topic}/0 has no leader")
        start, end = bounds.start, bounds.end
        if seen.topic_id != self._topic_id or self._at > end:
            self._forget(seen.topic_id)
        self._at = max(self._at, start)
        deadline = time.monotonic() + _PATIENCE
        while self._at < end:
            self._read(self._record_reader.messages(self.topic, 0, self._at))
            if self._at >= end or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
        self.is_behind = self._at < end
        for copy in self._copies.values():
            copy.settle()

    def _forget(self, topic_id: str | None) -> None:
        self._copies.clear()
        self._topic_id, self._at = topic_id, 0

    def _read(self, messages: Iterable[Message]) -> None:
        for message in messages:
            offset = message.offset() or 0
            if message.error() is not None:
                # Up to here transactions are ended.
                self._at = max(self._at, offset)
                return
            self._at = offset + 1
            try:
                said = {name.encode(): value for name, value in headers(message).items()}
                sync = sync_of(message.key() or b"", message.value() or b"", said)
            except (ValueError, struct.error):
                # Foreign records in the topic are passed over.
                continue
            log = sync.topic, sync.partition
            if log not in self._copies:
                self._copies[log] = _CopySyncs()
            self._copies[log].add(sync)

    def close(self) -> None:
        """Close the connections."""
        self._lookup.close()
        self._record_reader.close()
