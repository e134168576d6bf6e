"""A channel: the state of one partition that is copied: its position, its send queue and its batches in flight.

`fetcher` fills it, `sender` empties it, `identical` opens it, `task` has its gaps filled; this module does no I/O. The
rules are those of identical offsets: a batch is sent only when its base offset equals the target's log end, with the
sequence number that the target's log continues with, and every response must name that offset. Where filling a gap
made the target's log grow by more than the gap, the following records land that much higher: a shifted run. Any other
outcome ends the opening: the queue is dropped, outstanding responses are still accepted, and the channel is opened
again from the target's log end.
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
from reconciler.replicator.partition.refusals import RefusedRecords, are_few, reduced_size, refused_records, why_parked
from reconciler.replicator.partition.send_queue import Item
from reconciler.replicator.partition.shares import Place
from reconciler.wire import FetchAnswer, Piece, ProduceAnswer

# Brokers keep the last five batches of a producer, by which they recognise a repeated batch.
WINDOW = 5
QUEUE_BYTES = 4 * 2**20
# Filling gaps is slow: behind a gap at most this many bytes are queued, so that many such partitions leave memory for
# the others.
SLOW_BYTES = 256 * 1024
# Then the next fetch waits until fewer bytes are left: a broker sends a batch whole again, and it is rewritten again.
_SLOW_ROOM = SLOW_BYTES // 4
# Brokers expire producers whose records are old, a few times an hour, and then accept any sequence number. After this
# many idle seconds the first batch is sent alone, or a second one could be accepted where the first is refused.
_FORGOTTEN = 5.0


class Channel(PartitionLifecycle):
    """One partition of one flow.

    Args:
        place: which partition.
        at_gap: called when nothing is in flight and a gap is next; the callee fills it and calls `filled`.
        batch_size: up to how many bytes small batches are merged into one; 0 merges none.
        codec: what batches are compressed with at the target; None leaves that as it is.
        refused: called with an in-flight batch and those of its records that the target never accepts; the callee calls
            `put_aside` or `not_put_aside`. Without it such records park the partition.

    Attributes:
        reads_committed: whether records of open and aborted transactions are left out.
        lost_at: when a response was last given up (monotonic seconds).
        filled_offsets: offsets that were filled with markers since the task began.
        newest_read: timestamp of the batch read last (ms), and when it was read (monotonic seconds).
        full_at: when its window was full last (monotonic seconds): then answers are what it waits for.
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
        self._refused, self._at_gap = refused, at_gap
        self._form = self._whole = BatchForm.of(batch_size, codec)
        self.filled_offsets = 0
        self.lost_at = self._answered_at = self.full_at = -math.inf
        self.newest_read = (-1, 0.0)
        self._sent_since_gap = QUEUE_BYTES
        # After `pass_on` only offset, epoch and sides are stored; the property converts them when it is read.
        self._read: ReadPosition | tuple[int, int, PartitionSides] | None = None

    @property
    def read(self) -> ReadPosition | None:
        """How far the source's log was read, and in which epoch; survives openings (`truncation`)."""
        upto = self._read
        if isinstance(upto, tuple) and not isinstance(upto, ReadPosition):
            offset, epoch, sides = upto
            upto = self._read = sides.read_upto(offset, epoch)
        return upto

    @read.setter
    def read(self, upto: ReadPosition | None) -> None:
        self._read = upto

    def leave_out(self, aside: Iterable[int]) -> None:
        """Skip the records at these source offsets, which are in the dead letter topic."""
        without = frozenset(aside)
        self._form = self._form._replace(without=without, cut=self._form.cut if without else 0)

    # --- from the source ---------------------------------------------------------------------------------------------

    @property
    def queued_bytes(self) -> int:
        """Bytes that are read and not sent yet."""
        return self.queue.bytes

    @property
    def is_slow(self) -> bool:
        """Whether a gap was filled within the last `QUEUE_BYTES` sent: more gaps are likely."""
        return self._sent_since_gap < QUEUE_BYTES

    def wants_data(self, most: int = QUEUE_BYTES) -> bool:
        """Return whether the next fetch includes this partition, which may queue `most` bytes."""
        room = _SLOW_ROOM if self.is_slow else most
        return self.state is PartitionState.RUNNING and self._blocked is None and self.queue.bytes < room

    def receive(self, answer: FetchAnswer, asked_at: int, opening: int, now: float) -> int:
        """Queue the batches of a fetch response, up to the first one that cannot be copied.

        Args:
            answer: the source's response for this partition.
            asked_at: the offset that was fetched from.
            opening: the opening in which the request was sent.
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
        """Receive one plain batch and send it at once: `receive` and `send` in one step (fast path).

        Args:
            data: a fetch response.
            piece: where this partition's records are in it.
            asked_at: as for `receive`.
            opening: likewise.
            now: monotonic seconds.

        Returns:
            The batch in flight; None, with nothing changed, where the fast path does not apply.
        """
        if opening != self.opening or asked_at != self.fetch_at or self.state is not PartitionState.RUNNING:
            return None
        form, sides = self._form, self.sides
        if self.queue.items or self._blocked is not None or len(self.in_flight) >= (1 if self._alone else WINDOW):
            return None
        if form[2:] != AS_THEY_ARE:
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
        """Queue an item; return the offset behind it."""
        return self.queue.push(item)

    def _block(self, reason: Reason, now: float) -> None:
        """Stop reading; the partition parks once all queued batches are sent and answered."""
        self._blocked = reason
        self._park_when_drained(now)

    def _park_when_drained(self, now: float) -> None:
        if self._blocked is not None and not self.queue.items and not self.in_flight:
            self.park(self._blocked, now)

    # --- gaps --------------------------------------------------------------------------------------------------------

    @property
    def shift(self) -> int:
        """Target offset minus source offset of the next record."""
        return self._log_end.shift

    def _mind_gap(self) -> None:
        """Have a gap at the head of the queue filled, when nothing is in flight."""
        if not self.queue.items:
            return
        idle = self.state is PartitionState.RUNNING and not self.in_flight and not self.filling
        if idle and isinstance(self.queue.first, Gap) and self._at_gap is not None:
            self.filling = True
            self._sent_since_gap = 0
            if (goes_on_at := self.queue.shorten(SLOW_BYTES)) is not None:
                self.fetch_at = goes_on_at
                # The batch that blocked stood behind the dropped ones, and is read again.
                self._blocked = None
            self._at_gap(self)

    def gap(self) -> tuple[Gap, LogEnd]:
        """Return the gap that is to be filled, and the target's log end in front of it."""
        first = self.queue.first
        assert isinstance(first, Gap), "at_gap is called for gaps"
        return first, self._log_end

    def filled(self, opening: int, upto: int, end: int, now: float) -> None:
        """Continue at source offset `upto`, after the target's log was filled up to `end`.

        Args:
            opening: the opening in which filling began; a result from an older one is ignored.
            upto: the gap's end, or an offset in it when only a part was filled.
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
        """Return whether the next request to the target's leader may carry a batch of this partition."""
        if self.state is not PartitionState.RUNNING or not isinstance(self.queue.first, Batch):
            return False
        return len(self.in_flight) < (1 if self._alone else WINDOW)

    def send(self, small: int = 0, now: float = -math.inf, is_far: bool = False) -> InFlightBatch:
        """Take the next batch out of the queue; it is in flight until `answered` or `lost`.

        Args:
            small: batches of fewer bytes are merged with others, whatever their number of records.
            now: monotonic seconds.
            is_far: whether the line to the target is long, and a full window what it waits for.

        Raises:
            CannotPass: the batch cannot be recoded; the channel parks when all batches in flight are answered.
        """
        batch, size = self.queue.take(self._form.limit(is_far), small)
        try:
            batch = self._form.coded(batch)
        except CannotPass as error:
            # Nothing behind it may count as copied.
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
        if len(self.in_flight) >= WINDOW:
            self.full_at = now
        return sent

    def answered(self, sent: InFlightBatch, answer: ProduceAnswer, now: float) -> bool:
        """Handle the target's response for a batch in flight.

        Returns:
            True when the batch is at its own offset in the log, whether or not this opening continues.
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
        """Handle a response without an error and at the expected offset: the short form of `answered`."""
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
        """End this opening: to retry with smaller batches or without records put aside, or with the given verdict."""
        if not sent.is_intact:
            # The error does not matter then. Reading the batch again shows whether the source's log is damaged.
            self._form = self._form._replace(checked=True)
            self.end_opening(*reasons.damaged_in_flight(self.place.remote, sent.landing), now)
            return
        is_for_good = reasons.is_for_good(answer.error)
        refused = refused_records(self.place, sent, answer) if is_for_good else ()
        if self._refused is None and refused and answer.error not in reasons.TOO_LARGE:
            verdict = why_parked(self.place, sent, refused, answer)
        elif self._refused is not None and refused:
            if (size := reduced_size(sent, refused)) is not None:
                self._go_on_with_less(sent, size, now)
                return
            self.putting_aside = True
            self.reopen(refused[0].reason, now)
            # Its other records are sent as one batch again, cut off from what stands behind them.
            self._form = self._form._replace(cut=sent.next_offset)
            self._refused(self, sent, refused)
            if answer.error not in reasons.TOO_LARGE and are_few(refused):
                # Batches were divided to find these; the others are sent whole again.
                self._form = self._form._replace(merge=self._whole.merge, largest=self._whole.largest)
            return
        elif sent.records > 1 and (answer.error in reasons.TOO_LARGE or (self._refused is not None and is_for_good)):
            self._go_on_with_less(sent, sent.size, now)
            return
        self.end_opening(*verdict, now)

    def _go_on_with_less(self, sent: InFlightBatch, size: int, now: float) -> None:
        """Send the records of a batch again in batches of at most half of `size` bytes."""
        self._form = self._form.smaller(min(size, sent.size))
        self.end_opening(*reasons.too_large_together(self.place.remote, sent.size), now)
        # Each retry sends smaller batches, so the backoff does not grow.
        self._backoff.forget()

    def put_aside(self) -> None:
        """Continue without records that were put aside; `leave_out` names them before the next opening."""
        self.putting_aside = False
        self._backoff.forget()
        self.retry_at = 0.0

    def not_put_aside(self, state: PartitionState, reason: Reason, now: float) -> None:
        """End the opening because records could not be put aside: it is retried, or parked for an operator."""
        self.putting_aside = False
        self.end_opening(state, reason, now)

    def _verdict(self, sent: InFlightBatch, answer: ProduceAnswer) -> reasons.Verdict | None:
        """Return why a batch in flight is not at its offset, None when it is."""
        return reasons.why_failed(self.place.remote, sent.landing, sent.size, answer)

    def keep_below(self, size: int, why: Callable[[], Reason], now: float) -> bool:
        """Limit batches to below `size` bytes, where a broker closes connections; return whether the next one fits."""
        if self._form.largest >= size:
            self._form = self._form._replace(merge=min(self._form.merge, size // 2), far=0, largest=size - 1)
        first = self.queue.first
        if not isinstance(first, Batch) or first.size < size:
            return True
        if not self.in_flight:
            # When it is read again, it is divided if it has several records.
            state = PartitionState.PARKED if first.record_count == 1 else PartitionState.OPENING
            self.end_opening(state, why(), now)
        return False

    def lost(self, sent: InFlightBatch, reason: Reason, now: float, alone: bool = False) -> None:
        """Handle a batch in flight that gets no response: it may or may not be in the log.

        Args:
            sent: the batch.
            reason: why there is no response.
            now: monotonic seconds.
            alone: whether it was the only batch in its request: then the batch itself exceeds the broker's limit.
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
