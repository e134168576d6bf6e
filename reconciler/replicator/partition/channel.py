"""A channel: one partition on its way. Where it stands, what waits to be sent, what is in flight.

`fetcher` fills it, `sender` empties it, `identical` opens it, `task` has its gaps filled; this module does no I/O. The
rules are those of identical offsets: a batch is sent only at the position that equals its own base offset, with the
sequence number that the target's log continues with, and every answer must name that very offset. Where a gap at the
source made the target's log grow by more than its size, the records behind it land that much higher, a shifted run.
Whatever else happens ends this opening: the window is dropped, answers still under way are let in, and the channel is
opened anew from what the target's log says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.batch import HEADER_SIZE, Batch
from reconciler.records.one_record_batches import one_plain
from reconciler.records.read_committed import Gap
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.intake import AS_THEY_ARE, BatchForm, CannotPass, items
from reconciler.replicator.partition.lifecycle import PartitionLifecycle
from reconciler.replicator.partition.place import LogEnd, PartitionSides, ReadPosition
from reconciler.replicator.partition.refusals import RefusedRecords, are_few, much, refused_records, why_parked
from reconciler.replicator.partition.send_queue import Item
from reconciler.replicator.partition.shares import Place
from reconciler.wire import FetchAnswer, Piece, ProduceAnswer

# Brokers remember the last five batches of a producer, which is what makes a repeat recognisable.
WINDOW = 5
QUEUE_BYTES = 4 * 2**20
# Behind a gap that is being filled, which is slow, no more is kept and read than this: what many such partitions hold
# would leave no room for the others.
SLOW_BYTES = 256 * 1024
# Then nothing is asked for before so little is left: a broker sends a batch whole again, and it is rewritten again.
_SLOW_ROOM = SLOW_BYTES // 4
# Brokers forget producers of old records, a few times an hour, and then take any sequence: who has been quiet for so
# many seconds sends one batch alone, or a second one might be taken where the first is refused.
_FORGOTTEN = 5.0


class Channel(PartitionLifecycle):
    """One partition of one flow.

    Args:
        place: which partition.
        at_gap: called when nothing is in flight and a gap is next: somebody must fill it and call `filled`.
        batch_size: up to how many bytes small batches are merged into one; 0 merges none.
        codec: what batches are compressed with at the target; None leaves that as it is.
        refused: called with a parcel and those of its records that the target will never take: somebody must call
            `put_aside` or `not_put_aside`. Without it such records park the partition.

    Attributes:
        reads_committed: whether records of open and aborted transactions are left out.
        lost_at: when an answer was given up last (monotonic seconds).
        filled_offsets: offsets that were filled with markers in this round.
        newest_read: timestamp of the batch read last (ms), and when that was (monotonic seconds).
    """

    _transactional = False
    reads_committed = True

    def __init__(
        self,
        place: Place,
        at_gap: Callable[[Channel], None] | None = None,
        batch_size: int = 0,
        codec: int | None = None,
        refused: Callable[[Channel, InFlightBatch, Sequence[RefusedRecords]], None] | None = None,
    ) -> None:
        super().__init__(place)
        self._refused = refused
        self._form = self._whole = BatchForm(batch_size, codec=codec)
        self._at_gap = at_gap
        self.filled_offsets = 0
        self.lost_at = self._answered_at = -math.inf
        self.newest_read = (-1, 0.0)
        self._sent_since_gap = QUEUE_BYTES
        # Of what was passed on offset, epoch and the sides of then, until somebody asks.
        self._read: ReadPosition | tuple[int, int, PartitionSides] | None = None

    @property
    def read(self) -> ReadPosition | None:
        """How far the source's log was read, and in which epoch; it outlives openings (`truncation`)."""
        upto = self._read
        if isinstance(upto, tuple) and not isinstance(upto, ReadPosition):
            offset, epoch, sides = upto
            upto = self._read = sides.read_upto(offset, epoch)
        return upto

    @read.setter
    def read(self, upto: ReadPosition | None) -> None:
        self._read = upto

    def leave_out(self, aside: Iterable[int]) -> None:
        """Read past the records at these source offsets, which were put aside."""
        without = frozenset(aside)
        self._form = self._form._replace(without=without, cut=self._form.cut if without else 0)

    # --- from the source ---------------------------------------------------------------------------------------------

    @property
    def queued_bytes(self) -> int:
        """Bytes that were read and not sent yet."""
        return self.queue.bytes

    @property
    def is_slow(self) -> bool:
        """Whether there was a gap a short while ago: there may be many more."""
        return self._sent_since_gap < QUEUE_BYTES

    def wants_data(self, most: int = QUEUE_BYTES) -> bool:
        """Tell whether the next fetch should ask for this partition, of which `most` bytes may wait to be sent."""
        room = _SLOW_ROOM if self.is_slow else most
        return self.state is PartitionState.RUNNING and self._blocked is None and self.queue.bytes < room

    def receive(self, answer: FetchAnswer, asked_at: int, opening: int, now: float) -> int:
        """Take a fetch answer in, up to the first batch that cannot pass.

        Args:
            answer: what the source said.
            asked_at: the offset that was asked for.
            opening: the opening in which it was asked.
            now: monotonic seconds.

        Returns:
            How many batches and gaps were queued.
        """
        if opening != self.opening or asked_at != self.fetch_at or self._blocked is not None:
            return 0
        end = answer.last_stable_offset if self.reads_committed else answer.high_watermark
        if end >= 0:
            self.end = end
        queued, item = 0, None
        try:
            for item in items(answer, self.fetch_at, self._form):
                self.fetch_at = self._put(item)
                queued += 1
                self.newest_read = (item.max_timestamp, now) if isinstance(item, Batch) else self.newest_read
        except CannotPass as error:
            self._block(error.reason, now)
        if item is not None and self.sides is not None:
            self.read = self.sides.read_upto(self.fetch_at, item.leader_epoch if isinstance(item, Batch) else -1)
        self._mind_gap()
        return queued

    def pass_on(self, data: bytes, piece: Piece, asked_at: int, opening: int, now: float) -> InFlightBatch | None:
        """Take in one plain batch and send it at once: what `receive` and `send` do where nothing else is to be done.

        Args:
            data: a fetch answer.
            piece: what it says of this partition.
            asked_at: as for `receive`.
            opening: likewise.
            now: monotonic seconds.

        Returns:
            What is in flight now; None where there is more to do, and then nothing was done.
        """
        if opening != self.opening or asked_at != self.fetch_at or self.state is not PartitionState.RUNNING:
            return None
        form, sides = self._form, self.sides
        if self.queue.items or self._blocked is not None or len(self.in_flight) >= (1 if self._alone else WINDOW):
            return None
        if form[1:] != AS_THEY_ARE:
            return None
        batch = one_plain(data, piece.start, piece.end, form.merge)
        if batch is None or batch.base_offset != asked_at or sides is None:
            return None
        if piece.stable >= 0:
            self.end = piece.stable
        self.newest_read = batch.max_timestamp, now
        self.fetch_at = upto = batch.next_offset
        self._read = upto, batch.leader_epoch, sides
        return self._sent(batch, piece.end - piece.start, now)

    def _put(self, item: Item) -> int:
        """Queue what was read; return the offset behind it."""
        return self.queue.push(item)

    def _block(self, reason: Reason, now: float) -> None:
        """Stop reading; what was read before goes out first, then the partition parks."""
        self._blocked = reason
        self._park_when_drained(now)

    def _park_when_drained(self, now: float) -> None:
        if self._blocked is not None and not self.queue.items and not self.in_flight:
            self.park(self._blocked, now)

    # --- gaps --------------------------------------------------------------------------------------------------------

    @property
    def shift(self) -> int:
        """How far the next record's target offset is above its source offset."""
        return self._log_end.shift

    def _mind_gap(self) -> None:
        """Have the gap filled that stands first, when nothing is in flight."""
        if not self.queue.items:
            return
        idle = self.state is PartitionState.RUNNING and not self.in_flight and not self.filling
        if idle and isinstance(self.queue.first, Gap) and self._at_gap is not None:
            self.filling = True
            self._sent_since_gap = 0
            if (goes_on_at := self.queue.shorten(SLOW_BYTES)) is not None:
                self.fetch_at = goes_on_at
                # What could not pass stood behind what was forgotten.
                self._blocked = None
            self._at_gap(self)

    def gap(self) -> tuple[Gap, LogEnd]:
        """Return the gap that is to be filled, and how the target's log stands where it begins."""
        first = self.queue.first
        assert isinstance(first, Gap), "at_gap is called for gaps"
        return first, self._log_end

    def filled(self, opening: int, upto: int, end: int, now: float) -> None:
        """Go on at source offset `upto`, for which the target's log was filled up to its end `end`.

        Args:
            opening: the opening in which it was begun; a result of an older one changes nothing.
            upto: the gap's end, or a place in it when only a part was filled.
            end: the target's log end.
            now: monotonic seconds.
        """
        self.filling = False
        if opening != self.opening or self.state is not PartitionState.RUNNING:
            return
        self.queue.pass_gap(upto)
        self.filled_offsets += end - self._log_end.end
        self._log_end = self._log_end._replace(end=end, shift=end - upto)
        self.position = upto
        self._alone = True
        self._backoff.forget()
        self._mind_gap()
        self._park_when_drained(now)

    # --- to the target -----------------------------------------------------------------------------------------------

    def can_send(self) -> bool:
        """Tell whether the next request to the target's leader may carry a batch of this partition."""
        if self.state is not PartitionState.RUNNING or not isinstance(self.queue.first, Batch):
            return False
        return len(self.in_flight) < (1 if self._alone else WINDOW)

    def send(self, small: int = 0, now: float = -math.inf) -> InFlightBatch:
        """Take the next parcel out of the queue; it is in flight until `answered` or `lost`.

        Args:
            small: batches of fewer bytes are merged with others, of whatever number of records they are.
            now: monotonic seconds.

        Raises:
            CannotPass: not in the codec that the target gets; the channel parks when what is in flight is answered.
        """
        batch, size = self.queue.take(self._form.merge, small)
        try:
            batch = self._form.coded(batch)
        except CannotPass as error:
            # Nothing behind it may be taken for copied.
            self.queue.clear()
            self.fetch_at = batch.base_offset
            self._block(error.reason, now)
            raise
        return self._sent(batch, size, now)

    def _sent(self, batch: Batch, size: int, now: float) -> InFlightBatch:
        if not self.in_flight and not self._transactional and now - self._answered_at > _FORGOTTEN:
            self._alone = True
        self._sent_since_gap += size
        end, producer_id, producer_epoch, sequence, _ = log_end = self._log_end
        head, body = batch.header(producer_id, producer_epoch, sequence, self._transactional), batch.body
        count, first, upto = batch.record_count, batch.base_offset, batch.next_offset
        oldest, newest, whole = batch.first_timestamp, batch.max_timestamp, HEADER_SIZE + len(body)
        sent = InFlightBatch(self.opening, first, upto, end, count, oldest, newest, whole, head, body, batch.parts)
        self._log_end = log_end.behind(count)
        self.in_flight.append(sent)
        return sent

    def answered(self, sent: InFlightBatch, answer: ProduceAnswer, now: float) -> bool:
        """Take the target's answer for `in_flight` in.

        Returns:
            True when the batch stands at its own offset, whether or not this opening goes on.
        """
        self.in_flight.remove(sent)
        verdict = self._verdict(sent, answer)
        if verdict is not None:
            if sent.opening == self.opening:
                self._end_refused(sent, answer, verdict, now)
            return False
        if sent.opening == self.opening:
            self._goes_on(sent, now)
        return True

    def stands(self, sent: InFlightBatch, now: float) -> None:
        """Take in that `in_flight` stands where it must: `answered`, where the answer says no more than that."""
        if self.in_flight[0] is sent:
            self.in_flight.popleft()
        else:
            self.in_flight.remove(sent)
        if sent.opening == self.opening:
            self._goes_on(sent, now)

    def _goes_on(self, sent: InFlightBatch, now: float) -> None:
        self.position = sent.next_offset
        self._alone, self._answered_at = False, now
        self._backoff.forget()
        if not self.in_flight:
            self._mind_gap()
            if self._blocked is not None:
                self._park_when_drained(now)

    def _end_refused(self, sent: InFlightBatch, answer: ProduceAnswer, verdict: reasons.Verdict, now: float) -> None:
        """End this opening: to go on with smaller batches, without records that are put aside, or as a verdict says."""
        if not sent.is_intact:
            # Whatever the target says of it. Reading it again tells whether the source's log is damaged.
            self._form = self._form._replace(checked=True)
            self.end_opening(*reasons.damaged_in_flight(self.place.remote, sent.landing), now)
            return
        is_for_good = reasons.is_for_good(answer.error)
        refused = refused_records(self.place, sent, answer) if is_for_good else ()
        if self._refused is None and refused and answer.error not in reasons.TOO_LARGE:
            verdict = why_parked(self.place, sent, refused, answer)
        elif self._refused is not None and refused:
            if (size := much(sent, refused)) is not None:
                self._go_on_with_less(sent, size, now)
                return
            self.putting_aside = True
            self.reopen(refused[0].reason, now)
            # All others of its records pass together, whatever stands behind them.
            self._form = self._form._replace(cut=sent.next_offset)
            self._refused(self, sent, refused)
            if answer.error not in reasons.TOO_LARGE and are_few(refused):
                # Batches were divided to find these; the others may be whole again.
                self._form = self._form._replace(merge=self._whole.merge, largest=self._whole.largest)
            return
        elif sent.records > 1 and (answer.error in reasons.TOO_LARGE or (self._refused is not None and is_for_good)):
            self._go_on_with_less(sent, sent.size, now)
            return
        self.end_opening(*verdict, now)

    def _go_on_with_less(self, sent: InFlightBatch, size: int, now: float) -> None:
        """Have what a parcel held sent again in batches of half as many bytes as `size`."""
        self._form = self._form.smaller(min(size, sent.size))
        self.end_opening(*reasons.too_large_together(self.place.remote, sent.size), now)
        # Each time there is less in a batch: no reason to wait longer and longer.
        self._backoff.forget()

    def put_aside(self) -> None:
        """Go on without records that stand elsewhere now: `leave_out` names them before the next opening."""
        self.putting_aside = False
        self._backoff.forget()
        self.retry_at = 0.0

    def not_put_aside(self, state: PartitionState, reason: Reason, now: float) -> None:
        """Take note that not all could be put aside: that will be tried again, or somebody is needed."""
        self.putting_aside = False
        self.end_opening(state, reason, now)

    def _verdict(self, sent: InFlightBatch, answer: ProduceAnswer) -> reasons.Verdict | None:
        """Return why `in_flight` does not stand where it must, None when it does."""
        return reasons.why_failed(self.place.remote, sent.landing, sent.size, answer)

    def keep_below(self, size: int, why: Callable[[], Reason], now: float) -> bool:
        """Keep batches below a size on which a broker closes connections, as `why` says; tell whether the next is."""
        if self._form.largest >= size:
            self._form = self._form._replace(merge=min(self._form.merge, size // 2), largest=size - 1)
        first = self.queue.first
        if not isinstance(first, Batch) or first.size < size:
            return True
        if not self.in_flight:
            # Read again it is divided, if it can be.
            state = PartitionState.PARKED if first.record_count == 1 else PartitionState.OPENING
            self.end_opening(state, why(), now)
        return False

    def lost(self, sent: InFlightBatch, reason: Reason, now: float, alone: bool = False) -> None:
        """Note that no answer for `in_flight` will come: it may or may not be in the log.

        Args:
            sent: what was sent.
            reason: why there is none.
            now: monotonic seconds.
            alone: whether nothing else was in the request: then it is the parcel that is larger than a broker takes.
        """
        self.in_flight.remove(sent)
        self.lost_at = now
        if sent.opening != self.opening:
            return
        if alone and reason.code == reasons.LARGE_REQUESTS:
            if sent.records == 1:
                self.park(reason, now)
                return
            self._form = self._form.smaller(sent.size)
        self.reopen(reason, now)
