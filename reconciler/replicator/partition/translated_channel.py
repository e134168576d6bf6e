"""A channel whose copy has translated offsets: its records count when the transaction that holds them is committed.

`translated` opens it, `transactional` admits it to transactions and commits its position with them. Unlike its parent
it fills no gaps: a batch may span offsets without records, and a trailing gap only moves the position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason
from reconciler.records.batch import Batch, next_sequence
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync, syncs
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.refusals import RefusedRecords
from reconciler.replicator.partition.send_queue import Item
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ErrorCode, ProduceAnswer

# With these errors the broker certainly appended nothing. OUT_OF_ORDER_SEQUENCE_NUMBER is not one of them: the broker
# may have expired the producer, and then accepts only the first batch of a new epoch.
_NOT_APPENDED = reasons.TOO_LARGE | reasons.REFUSED_FOR_GOOD | reasons.AUTHORIZATION
# For batches of an opening that has ended it is one of them, as no batch follows them.
_CERTAINLY_NOT = _NOT_APPENDED | {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}


class TranslatedChannel(Channel):
    """One partition of one flow, copied in transactions.

    Args:
        place: which partition.
        failed: called when it is uncertain which records of this partition the open transaction holds.
        batch_size: up to how many bytes small batches are merged into one; 0 merges none.
        codec: what batches are compressed with at the target; None leaves that as it is.
        refused: called with records that the target never accepts.
        reads_committed: whether records of open and aborted transactions of the source are left out.

    Attributes:
        admitted: whether the partition is in the open transaction, so that batches may be sent.
        committed: the position that was committed last.
        written: its batches in the open transaction, in order.
        held: their size in bytes.
        sequence: of the next record under the producer's epoch, by the responses so far.
        is_new: whether no position of it was ever committed: then even the first one is committed, because a later
            takeover could begin the copy at another offset.
    """

    _transactional = True

    def __init__(
        self,
        place: Place,
        failed: Callable[[Channel], None],
        batch_size: int = 0,
        codec: int | None = None,
        refused: Callable[[Channel, InFlightBatch, Sequence[RefusedRecords]], None] | None = None,
        reads_committed: bool = True,
    ) -> None:
        super().__init__(place, None, batch_size, codec, refused)
        self._form = self._form._replace(dense=True)
        self.reads_committed = reads_committed
        self._failed = failed
        self.admitted = False
        self.committed = -1
        self.written: list[InFlightBatch] = []
        self.held = 0
        self.sequence = 0
        self.note = OffsetMetadata()
        self.is_new = False
        self._at_first_commit: Callable[[], None] | None = None

    def begin(
        self,
        sides: PartitionSides,
        position: int,
        producer: tuple[int, int],
        note: OffsetMetadata,
        at_first_commit: Callable[[], None] | None = None,
    ) -> None:
        """Continue at a committed position.

        Args:
            sides: the leaders on both sides.
            position: the next source offset.
            producer: id and epoch.
            note: metadata to commit with the position; its leader epoch is set from what is read.
            at_first_commit: called after the first commit of a position.
        """
        self.admitted = False
        self._hold_nothing()
        self._at_first_commit = at_first_commit
        self.committed, self.note, self.read = position, note, None
        self.open(sides, LogEnd(position, *producer, self.sequence))
        self._alone = False

    def renew(self, producer: tuple[int, int]) -> None:
        """Continue under another producer epoch, with sequence 0; its transaction is empty."""
        self.sequence = 0
        self._log_end = LogEnd(self.position, *producer, 0)

    @property
    def is_behind(self) -> bool:
        """Whether its position has moved since it was committed."""
        return self.position > self.committed >= 0 or (self.is_new and self.position >= 0)

    @property
    def wants_admission(self) -> bool:
        """Whether it has a batch to send and is in no transaction."""
        return self.state is PartitionState.RUNNING and not self.admitted and isinstance(self.queue.first, Batch)

    def can_send(self) -> bool:
        """Return whether the next request to the target's leader may carry a batch of this partition."""
        return self.admitted and super().can_send()

    def end_opening(self, state: PartitionState, reason: Reason, now: float) -> None:
        """End this opening, and its admission to the transaction."""
        self.admitted = False
        super().end_opening(state, reason, now)

    def forget(self) -> None:
        """Handle an aborted transaction: go back to the committed position."""
        self._hold_nothing()
        self.position = self.committed

    def _hold_nothing(self) -> None:
        self.written, self.held = [], 0

    def remember(self, position: int) -> None:
        """Handle a committed position."""
        self.committed = position
        self.is_new = False
        if self._at_first_commit is not None:
            self._at_first_commit()
            self._at_first_commit = None

    def status(self) -> PartitionStatus:
        """Return the partition's status with the committed position, as open transactions may be aborted."""
        return replace(super().status(), position=self.committed)

    def settled(self) -> list[InFlightBatch]:
        """Handle a committed transaction; return the batches of this partition in it."""
        self.note = self.last_word()
        self.admitted = False
        return self.counted(len(self.written))

    def counted(self, count: int) -> list[InFlightBatch]:
        """Remove and return the first `count` batches written, which lie before the committed position."""
        written, self.written = self.written[:count], self.written[count:]
        self.held -= sum(sent.size for sent in written)
        return written

    def last_word(self) -> OffsetMetadata:
        """Return the metadata to commit with the position at the end of the open transaction.

        Reading may be ahead of writing; then the leader epoch may be newer than the position's. That is safe: an end of
        that epoch below the position is an end of the position's epoch, too.
        """
        began, ended = self.note.began, self.note.ended
        if self.written:
            began, ended = self.written[0].landing, self.written[-1].landing + self.written[-1].records
        epoch = self.read.epoch if self.read else self.note.epoch
        # Written records have a sync, which holds this itself.
        anew_from = None if self.written else self.note.anew_from
        return self.note._replace(began=began, epoch=epoch, anew_from=anew_from, ended=ended)

    def syncs(self) -> Iterator[OffsetSync]:
        """Yield the offset syncs of the batches written since the last commit."""
        log = self.place.topic, self.place.partition
        anew_from = None if self._transactional else self.note.anew_from
        return syncs(log, self.written, self.committed, self.position, not self._transactional, anew_from)

    def _put(self, item: Item) -> int:
        return self.queue.push(item) if isinstance(item, Batch) else item.next

    def _mind_gap(self) -> None:
        """Move the position over offsets without records, when all records before them are written."""
        if self.state is PartitionState.RUNNING and not self.in_flight:
            first = self.queue.first
            self.position = max(self.position, first.base_offset if isinstance(first, Batch) else self.fetch_at)

    def _verdict(self, sent: InFlightBatch, answer: ProduceAnswer) -> reasons.Verdict | None:
        verdict = reasons.why_failed(self.place.remote, sent.base_offset, sent.size, answer, anywhere=True)
        if sent.opening != self.opening:
            # The dropped records will be read and written again, which must not be in the same transaction.
            if answer.error not in _CERTAINLY_NOT:
                self._failed(self)
            return verdict
        if verdict is None:
            self.written.append(sent.noted(answer.base_offset))
            self.held += sent.size
            self.sequence = next_sequence(self.sequence, sent.records)
        elif answer.error not in _NOT_APPENDED:
            self._failed(self)
        return verdict

    def lost(self, sent: InFlightBatch, reason: Reason, now: float, alone: bool = False) -> None:
        """Handle a batch in flight that gets no response: the transaction may hold it or not."""
        self._failed(self)
        super().lost(sent, reason, now, alone)


class AtLeastOnceChannel(TranslatedChannel):
    """One partition of one flow, copied outside of transactions: acknowledged records count, and may be repeated.

    `at_least_once` commits its position after records are acknowledged. Each opening admits it; while positions cannot
    be committed it is not admitted.
    """

    _transactional = False

    def begin(
        self,
        sides: PartitionSides,
        position: int,
        producer: tuple[int, int],
        note: OffsetMetadata,
        at_first_commit: Callable[[], None] | None = None,
    ) -> None:
        """Continue at a committed position, with the first request alone in flight.

        A broker accepts any first batch of a new epoch: if the first request were lost, the second would be accepted
        in its place.
        """
        super().begin(sides, position, producer, note, at_first_commit)
        self._alone = True
        self.admitted = True

    def forget(self) -> None:
        """Go back to the committed position; the task that holds the lease then writes the records since it again."""
        super().forget()
        self.is_new = False

    def can_send(self) -> bool:
        """Return whether a batch may be sent: without a producer id one at a time, which keeps them in order.

        The first position is committed before any record is written, because a later takeover could begin elsewhere.
        """
        return super().can_send() and not self.is_new and (self._log_end.producer_id >= 0 or not self.in_flight)

    def last_word(self) -> OffsetMetadata:
        """Return the metadata to commit with the position, without a transaction."""
        return super().last_word()._replace(began=-1)
