"""A channel: one partition on its way. Where it stands, what waits to be sent, what is in flight.

`reader` fills it, `writer` empties it, `takeover` opens it, `task` has its gaps filled; this module does no I/O. The
rules are those of identical offsets: a batch is sent only at the position that equals its own base offset, with the
sequence number that the target's log continues with, and every answer must name that very offset. Where a gap at the
source made the target's log grow by more than its size, the records behind it land that much higher, a shifted run.
Whatever else happens ends this opening: the window is dropped, answers still under way are let in, and the channel is
opened anew from what the target's log says.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

from reconciler.model.status import PartitionState, PartitionStatus, Reason
from reconciler.replicator import reasons
from reconciler.replicator.batch import Batch
from reconciler.replicator.intake import CannotPass, Form, items
from reconciler.replicator.parcel import Parcel
from reconciler.replicator.pauses import Pauses
from reconciler.replicator.place import Place, ReadUpto, Sides, Standing
from reconciler.replicator.queued import Item, Queue
from reconciler.replicator.visible import Gap
from reconciler.replicator.wire import FetchAnswer, ProduceAnswer

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


class Channel:
    """One partition of one flow.

    Args:
        place: which partition.
        at_gap: called when nothing is in flight and a gap is next: somebody must fill it and call `filled`.
        batch_size: up to how many bytes small batches are merged into one; 0 merges none.
        codec: what batches are compressed with at the target; None leaves that as it is.
        refused: called with the only record of a parcel that the target will never take, and why: somebody must call
            `put_aside` or `not_put_aside`. Without it such a record parks the partition.

    Attributes:
        position: the next source offset to be written; -1 before the first opening.
        end: the source's last stable offset.
        fetch_at: the next source offset to be read.
        opening: counts openings; what belongs to an older one is let in and changes nothing.
        reads_committed: whether records of open and aborted transactions are left out.
        filling: whether somebody fills a gap now.
        putting_aside: whether somebody puts a record aside now.
        behind_since: when the source was first seen to end before the copy, if nothing else went wrong since (seconds).
        lost_at: when an answer was given up last (monotonic seconds).
        filled_offsets: offsets that were filled with markers in this round.
        newest_read: timestamp of the batch read last (ms), and when that was (monotonic seconds).
        read: how far the source's log was read, and in which epoch; it outlives openings (`truncation`).
    """

    _transactional = False
    reads_committed = True

    def __init__(
        self,
        place: Place,
        at_gap: Callable[[Channel], None] | None = None,
        batch_size: int = 0,
        codec: int | None = None,
        refused: Callable[[Channel, Parcel, Reason], None] | None = None,
    ) -> None:
        self.place = place
        self._refused = refused
        self._form = self._whole = Form(batch_size, codec=codec)
        self._at_gap = at_gap
        self.sides: Sides | None = None
        self.state = PartitionState.OPENING
        self.reason: Reason | None = None
        self.position = self.end = self.fetch_at = -1
        self.opening = self.filled_offsets = 0
        self.retry_at = 0.0
        self.lost_at = self._answered_at = -math.inf
        self.busy = self.filling = self.putting_aside = False
        self.behind_since: float | None = None
        self.newest_read = (-1, 0.0)
        self.queue = Queue()
        self.in_flight: deque[Parcel] = deque()
        self._standing = Standing(-1, -1, -1, -1)
        self._alone = True
        self._sent_since_gap = QUEUE_BYTES
        self._pauses = Pauses()
        self.read: ReadUpto | None = None
        self._blocked: Reason | None = None

    # --- opening -----------------------------------------------------------------------------------------------------

    def open(self, sides: Sides, standing: Standing, lost: Gap | None = None) -> None:
        """Begin at `standing`, with the first request travelling alone; while paused just note where it is.

        Args:
            sides: who leads on both sides.
            standing: where the target's log stands.
            lost: records that the source deleted before they were copied: a gap to begin with, if that was declared.
        """
        if self.state is PartitionState.PAUSED:
            self.position = standing.position
            return
        self.sides = sides
        self._standing = standing
        self.position = self.fetch_at = standing.position
        self.end = max(self.end, self.position)
        self._alone = True
        self._blocked = None
        self.behind_since = None
        self.state = PartitionState.RUNNING
        self.reason = None
        if lost is not None:
            self.fetch_at = self.queue.push(lost)
            self._mind_gap()

    def leave_out(self, aside: Iterable[int]) -> None:
        """Read past the records at these source offsets, which were put aside."""
        self._form = self._form._replace(without=frozenset(aside))

    def reopen(self, reason: Reason, now: float) -> None:
        """End this opening for a reason that passes by itself; it is opened anew after a short pause."""
        self.end_opening(PartitionState.OPENING, reason, now)

    def park(self, reason: Reason, now: float) -> None:
        """End this opening for a reason that needs somebody; it is tried again after a long pause."""
        self.end_opening(PartitionState.PARKED, reason, now)

    @property
    def is_at_work(self) -> bool:
        """Whether somebody waits for an answer on its behalf."""
        return bool(self.busy or self.filling or self.in_flight or self.putting_aside)

    def wants_opening(self, now: float) -> bool:
        """Tell whether it is time to take over."""
        return (
            not self.is_at_work
            and self.state not in (PartitionState.RUNNING, PartitionState.PAUSED)
            and now >= self.retry_at
        )

    def end_opening(self, state: PartitionState, reason: Reason, now: float) -> None:
        """End this opening as a verdict says: parked, or to be opened anew."""
        self._drop()
        if self.state is PartitionState.PAUSED:
            return
        self.retry_at = now + self._pauses.after(state)
        self.behind_since = self.behind_since if reason.code == "AB210" else None
        self.state, self.reason = state, reason

    def _drop(self) -> None:
        """Forget what was read in this opening, and let no answer count for the next one."""
        self.opening += 1
        self.queue.clear()
        self._blocked = None

    # --- from people -------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Read and send nothing more until `resume`; what is in flight is still answered and counted."""
        if self.state is PartitionState.PAUSED:
            return
        self.state = PartitionState.PAUSED
        self.reason = None
        self.queue.clear()
        self._blocked = None
        # No fetch answer on its way fits this.
        self.fetch_at = -1

    def resume(self) -> None:
        """Go on after a pause, from what the target's log says."""
        if self.state is PartitionState.PAUSED:
            self._try_again()

    def retry_now(self) -> None:
        """Take over anew at once, however long the wait was to be; a paused channel stays paused."""
        if self.state is not PartitionState.PAUSED:
            self._try_again()

    def _try_again(self) -> None:
        self._drop()
        self._pauses.forget()
        self.retry_at = 0.0
        self.behind_since = None
        self.state = PartitionState.OPENING
        self.reason = None

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

    def _put(self, item: Item) -> int:
        """Queue what was read; return the offset behind it."""
        return self.queue.push(item)

    def _block(self, reason: Reason, now: float) -> None:
        """Stop reading; what was read before goes out first, then the partition parks."""
        self._blocked = reason
        self._park_when_drained(now)

    def _park_when_drained(self, now: float) -> None:
        if self._blocked is not None and not self.queue and not self.in_flight:
            self.park(self._blocked, now)

    # --- gaps --------------------------------------------------------------------------------------------------------

    @property
    def shift(self) -> int:
        """How far the next record's target offset is above its source offset."""
        return self._standing.shift

    def _mind_gap(self) -> None:
        """Have the gap filled that stands first, when nothing is in flight."""
        idle = self.state is PartitionState.RUNNING and not self.in_flight and not self.filling
        if idle and isinstance(self.queue.first, Gap) and self._at_gap is not None:
            self.filling = True
            self._sent_since_gap = 0
            if (goes_on_at := self.queue.shorten(SLOW_BYTES)) is not None:
                self.fetch_at = goes_on_at
                # What could not pass stood behind what was forgotten.
                self._blocked = None
            self._at_gap(self)

    def gap(self) -> tuple[Gap, Standing]:
        """Return the gap that is to be filled, and how the target's log stands where it begins."""
        first = self.queue.first
        assert isinstance(first, Gap), "at_gap is called for gaps"
        return first, self._standing

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
        self.filled_offsets += end - self._standing.end
        self._standing = self._standing._replace(end=end, shift=end - upto)
        self.position = upto
        self._alone = True
        self._pauses.forget()
        self._mind_gap()
        self._park_when_drained(now)

    # --- to the target -----------------------------------------------------------------------------------------------

    def can_send(self) -> bool:
        """Tell whether the next request to the target's leader may carry a batch of this partition."""
        if self.state is not PartitionState.RUNNING or not isinstance(self.queue.first, Batch):
            return False
        return len(self.in_flight) < (1 if self._alone else WINDOW)

    def send(self, small: int = 0, now: float = -math.inf) -> Parcel:
        """Take the next parcel out of the queue; it is in flight until `answered` or `lost`.

        Args:
            small: batches of fewer bytes are merged with others, of whatever number of records they are.
            now: monotonic seconds.
        """
        if not self.in_flight and not self._transactional and now - self._answered_at > _FORGOTTEN:
            self._alone = True
        batch, size = self.queue.take(self._form.merge, small)
        batch = self._form.coded(batch)
        self._sent_since_gap += size
        standing = self._standing
        head = batch.header(standing.producer_id, standing.producer_epoch, standing.sequence, self._transactional)
        count, span = batch.record_count, (batch.base_offset, batch.next_offset)
        times = batch.first_timestamp, batch.max_timestamp
        parcel = Parcel(self.opening, *span, standing.end, count, *times, batch.size, head, batch.body, batch.parts)
        self._standing = standing.behind(count)
        self.in_flight.append(parcel)
        return parcel

    def answered(self, parcel: Parcel, answer: ProduceAnswer, now: float) -> bool:
        """Take the target's answer for `parcel` in.

        Returns:
            True when the batch stands at its own offset, whether or not this opening goes on.
        """
        self.in_flight.remove(parcel)
        verdict = self._verdict(parcel, answer)
        if verdict is not None:
            if parcel.opening == self.opening:
                self._end_refused(parcel, answer.error, verdict, now)
            return False
        if parcel.opening != self.opening:
            return True
        self.position = parcel.next_offset
        self._alone, self._answered_at = False, now
        self._pauses.forget()
        self._mind_gap()
        self._park_when_drained(now)
        return True

    def _end_refused(self, parcel: Parcel, error: int, verdict: reasons.Verdict, now: float) -> None:
        """End this opening: to go on with smaller batches, without a record that is put aside, or as a verdict says."""
        is_for_good = self._refused is not None and reasons.is_for_good(error)
        if parcel.records > 1 and (is_for_good or error in reasons.TOO_LARGE):
            self._form = self._form.smaller(parcel.size)
            self.end_opening(*reasons.too_large_together(self.place.remote, parcel.size), now)
            # Each time there is less in a batch: no reason to wait longer and longer.
            self._pauses.forget()
            return
        if self._refused is not None and is_for_good:
            self.putting_aside = True
            self.reopen(verdict[1], now)
            self._refused(self, parcel, verdict[1])
            if error not in reasons.TOO_LARGE:
                # Batches were divided to find this one; the others may be whole again.
                self._form = self._form._replace(merge=self._whole.merge, largest=self._whole.largest)
            return
        self.end_opening(*verdict, now)

    def put_aside(self) -> None:
        """Go on without a record that stands elsewhere now: `leave_out` names it before the next opening."""
        self.putting_aside = False
        self._pauses.forget()
        self.retry_at = 0.0

    def not_put_aside(self, state: PartitionState, reason: Reason, now: float) -> None:
        """Take note that a record could not be put aside: it will be tried again, or somebody is needed."""
        self.putting_aside = False
        self.end_opening(state, reason, now)

    def _verdict(self, parcel: Parcel, answer: ProduceAnswer) -> reasons.Verdict | None:
        """Return why `parcel` does not stand where it must, None when it does."""
        return reasons.why_failed(self.place.remote, parcel.landing, parcel.size, answer)

    def lost(self, parcel: Parcel, reason: Reason, now: float) -> None:
        """Note that no answer for `parcel` will come: it may or may not be in the log."""
        self.in_flight.remove(parcel)
        self.lost_at = now
        if parcel.opening == self.opening:
            self.reopen(reason, now)

    def status(self) -> PartitionStatus:
        """Return what to say of this partition."""
        place = self.place
        return PartitionStatus(
            place.topic, place.partition, place.remote, self.state, self.position, self.end, self.reason
        )
