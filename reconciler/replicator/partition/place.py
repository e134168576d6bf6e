"""Values of one partition: its leaders on both sides, how far it was read, and the target's log end. Pure."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from reconciler.model.offsets.runs import CopyRecord
from reconciler.records.batch import next_sequence
from reconciler.wire import Leader, TopicInfo


def differ(before: object, now: object) -> bool:
    """Return whether two topic ids are known and different."""
    return None not in (before, now) and before != now


def topic_id(topic: TopicInfo) -> str | None:
    """Return a topic's id as text; None where the brokers have none."""
    return None if topic.topic_id is None else str(topic.topic_id)


class ReadPosition(NamedTuple):
    """How far a source's log was read, and under which leader.

    Attributes:
        offset: the next one to be read.
        epoch: the greatest leader epoch of the records before it.
        source_id: of the source topic, where the brokers have one.
        target_id: of the copy, likewise.
    """

    offset: int
    epoch: int
    source_id: uuid.UUID | None
    target_id: uuid.UUID | None


class PartitionSides(NamedTuple):
    """The partition's leaders on both sides, and the topics' ids where the brokers have them."""

    source: Leader
    source_id: uuid.UUID | None
    target: Leader
    target_id: uuid.UUID | None

    def copy_record(self) -> CopyRecord:
        """Return the record of a copy of which nothing but the topic ids is known."""
        source_id, target_id = (None if one is None else str(one) for one in (self.source_id, self.target_id))
        return CopyRecord(source_id, target_id)

    def read_upto(self, offset: int, epoch: int) -> ReadPosition | None:
        """Return how far the source's log was read; None where its brokers have no leader epochs.

        Args:
            offset: the next one to be read.
            epoch: of the batch before it; -1 where it has none: then the epoch of the leader that sent it is used,
                which is not older.
        """
        epoch = epoch if epoch >= 0 else self.source.epoch
        return ReadPosition(offset, epoch, self.source_id, self.target_id) if epoch >= 0 else None


class LogEnd(NamedTuple):
    """The target's log end, and the producer that the log continues with.

    Attributes:
        end: the target's log end.
        producer_id: to continue with.
        producer_epoch: likewise.
        sequence: of the next record.
        shift: target offset minus source offset of the next record; 0 except in a shifted run.
    """

    end: int
    producer_id: int
    producer_epoch: int
    sequence: int
    shift: int = 0

    @property
    def position(self) -> int:
        """The next source offset."""
        return self.end - self.shift

    def behind(self, count: int) -> LogEnd:
        """Return the log end after `count` more records."""
        # Without a producer id there are no sequence numbers.
        end, producer_id, producer_epoch, sequence, shift = self
        sequence = next_sequence(sequence, count) if producer_id >= 0 else -1
        return LogEnd(end + count, producer_id, producer_epoch, sequence, shift)


# A run shifted by more offsets than this is not healed: that would take too many markers or gaps.
HEALABLE = 1_000


def kept_shift(shift: int) -> int:
    """Return the shift that remains behind a gap: 0 when it can be healed."""
    return shift if abs(shift) > HEALABLE else 0
