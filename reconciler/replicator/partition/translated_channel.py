"""A channel whose copy has offsets of its own: what it writes counts when the transaction that holds it is committed.

`translated` opens it, `transactional` lets it into transactions and commits its position with them. Unlike its parent
it fills no gaps: a batch may span offsets without records, and what ends with a gap moves the position alone.
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

# The broker has certainly not appended what it answers with one of these. A sequence that it does not expect (45) is
# none of them: it may have forgotten the producer, and takes only what begins a new epoch.
_NOT_APPENDED = reasons.TOO_LARGE | reasons.REFUSED_FOR_GOOD | reasons.AUTHORIZATION
# Of what was sent in an opening that is over nothing more follows.
_CERTAINLY_NOT = _NOT_APPENDED | {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}


class TranslatedChannel(Channel):
    """One partition of one flow, copied in transactions.

    Args:
        place: which partition.
        failed: called when it is not certain any more what the open transaction holds of this partition.
        batch_size: up to how many bytes small batches are merged into one; 0 merges none.
        codec: what batches are compressed with at the target; None leaves that as it is.
        refused: called with records that the target will never take.
        reads_committed: whether records of open and aborted transactions of the source are left out.

    Attributes:
        admitted: whether the partition is in the open transaction, so that batches may be sent.
        committed: the position that was committed last.
        written: what the open transaction holds of it, in order.
        held: how many bytes that are.
        sequence: of the next record under the producer's epoch, as far as answers tell.
        is_new: whether nobody has committed a position of it yet: then the first one counts, too, as where a copy
            begins may be another place tomorrow.
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
        """Go on at a committed position.

        Args:
            sides: who leads on both sides.
            position: the next source offset.
            producer: id and epoch.
            note: what is to be said with the position; of which epoch it is, reading will tell.
            at_first_commit: called when a position was committed for the first time.
        """
        self.admitted = False
        self._hold_nothing()
        self._at_first_commit = at_first_commit
        self.committed, self.note, self.read = position, note, None
        self.open(sides, LogEnd(position, *producer, self.sequence))
        self._alone = False

    def renew(self, producer: tuple[int, int]) -> None:
        """Go on under another epoch, which counts from 0; nothing is in the open transaction."""
        self.sequence = 0
        self._log_end = LogEnd(self.position, *producer, 0)

    @property
    def is_behind(self) -> bool:
        """Whether its position has moved since it was committed."""
        return self.position > self.committed >= 0 or (self.is_new and self.position >= 0)

    @property
    def wants_admission(self) -> bool:
        """Whether it has something to send and is in no transaction."""
        return self.state is PartitionState.RUNNING and not self.admitted and isinstance(self.queue.first, Batch)

    def can_send(self) -> bool:
        """Tell whether the next request to the target's leader may carry a batch of this partition."""
        return self.admitted and super().can_send()

    def end_opening(self, state: PartitionState, reason: Reason, now: float) -> None:
        """End this opening; what the open transaction holds of it stays certain only while nothing was in flight."""
        self.admitted = False
        super().end_opening(state, reason, now)

    def forget(self) -> None:
        """Take note that the transaction was aborted: nothing of it stands."""
        self._hold_nothing()
        self.position = self.committed

    def _hold_nothing(self) -> None:
        self.written, self.held = [], 0

    def remember(self, position: int) -> None:
        """Take note that a position was committed."""
        self.committed = position
        self.is_new = False
        if self._at_first_commit is not None:
            self._at_first_commit()
            self._at_first_commit = None

    def status(self) -> PartitionStatus:
        """Return what to say of this partition: what is not committed may still be aborted."""
        return replace(super().status(), position=self.committed)

    def settled(self) -> list[InFlightBatch]:
        """Take note that the transaction was committed; return what of this partition came to stand with it."""
        self.note = self.last_word()
        self.admitted = False
        return self.counted(len(self.written))

    def counted(self, count: int) -> list[InFlightBatch]:
        """Take note that the first `count` parcels written lie before the committed position; return them."""
        written, self.written = self.written[:count], self.written[count:]
        self.held -= sum(sent.size for sent in written)
        return written

    def last_word(self) -> OffsetMetadata:
        """Return what to say with the position when the open transaction is committed.

        What was read may be further than what was written; then the epoch may be newer than the position's, and an end
        of it below the position is one of the position's, too.
        """
        began, ended = self.note.began, self.note.ended
        if self.written:
            began, ended = self.written[0].landing, self.written[-1].landing + self.written[-1].records
        epoch = self.read.epoch if self.read else self.note.epoch
        # What was written has a sync, which says from where on the source is anew, or whose place tells it.
        anew_from = None if self.written else self.note.anew_from
        return self.note._replace(began=began, epoch=epoch, anew_from=anew_from, ended=ended)

    def syncs(self) -> Iterator[OffsetSync]:
        """Yield where what was written since the last commit stands."""
        log = self.place.topic, self.place.partition
        anew_from = None if self._transactional else self.note.anew_from
        return syncs(log, self.written, self.committed, self.position, not self._transactional, anew_from)

    def _put(self, item: Item) -> int:
        return self.queue.push(item) if isinstance(item, Batch) else item.next

    def _mind_gap(self) -> None:
        """Let the position move over what holds no records, when all before it is written."""
        if self.state is PartitionState.RUNNING and not self.in_flight:
            first = self.queue.first
            self.position = max(self.position, first.base_offset if isinstance(first, Batch) else self.fetch_at)

    def _verdict(self, sent: InFlightBatch, answer: ProduceAnswer) -> reasons.Verdict | None:
        verdict = reasons.why_failed(self.place.remote, sent.base_offset, sent.size, answer, anywhere=True)
        if sent.opening != self.opening:
            # What was forgotten meanwhile will be read and written again: not in the same transaction.
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
        """Note that no answer for `in_flight` will come: the transaction may hold it or not."""
        self._failed(self)
        super().lost(sent, reason, now, alone)


class AtLeastOnceChannel(TranslatedChannel):
    """One partition of one flow, copied outside of transactions: what is acknowledged is there, and may be repeated.

    `at_least_once` commits its position behind what is acknowledged. Admission is given with each opening, and taken
    away while positions cannot be committed.
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
        """Go on at a committed position, with the first request travelling alone.

        Of a new epoch brokers take any batch that begins it: one that was sent behind a lost one would come before it.
        """
        super().begin(sides, position, producer, note, at_first_commit)
        self._alone = True
        self.admitted = True

    def forget(self) -> None:
        """Take note that what was written since the last commit is to be written again, by whoever may then."""
        super().forget()
        self.is_new = False

    def can_send(self) -> bool:
        """Tell whether a batch may be sent; without a producer id nothing but waiting keeps batches in order.

        Nothing is written before it is committed where the copy begins: tomorrow that may be another place.
        """
        return super().can_send() and not self.is_new and (self._log_end.producer_id >= 0 or not self.in_flight)

    def last_word(self) -> OffsetMetadata:
        """Return what to say with the position: of the source's epoch, and of no transaction."""
        return super().last_word()._replace(began=-1)
