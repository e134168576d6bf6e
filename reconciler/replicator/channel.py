"""A channel: one partition on its way. Where it stands, what waits to be sent, what is in flight.

`reader` fills it, `writer` empties it, `takeover` opens it; this module does no I/O. The rules are those of identical
offsets: a batch is sent only at the position that equals its own base offset, with the sequence number that the
target's log continues with, and every answer must name that very offset. Whatever else happens ends this opening: the
window is dropped, answers still under way are let in, and the channel is opened anew from what the target's log says.
"""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass

from reconciler.model.status import PartitionState, PartitionStatus, Reason
from reconciler.replicator import reasons
from reconciler.replicator.batch import Batch, UnreadableBatch, next_sequence, split
from reconciler.replicator.wire import FetchAnswer, Leader, ProduceAnswer

# Brokers remember the last five batches of a producer, which is what makes a repeat recognisable.
WINDOW = 5
QUEUE_BYTES = 8 * 2**20

_BACKOFF_RETRY = (0.05, 5.0)
_BACKOFF_PARKED = (2.0, 300.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Which partition: the original topic, its remote topic and the number they share."""

    topic: str
    partition: int
    remote: str


@dataclass(frozen=True, slots=True)
class Sides:
    """Who leads the partition on both sides, and the topics' ids where the brokers have them."""

    source: Leader
    source_id: uuid.UUID | None
    target: Leader
    target_id: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the target's log stands, and the producer that it goes on with.

    Attributes:
        end: the log end, which is the next source offset.
        producer_id: to go on with.
        producer_epoch: likewise.
        sequence: of the next record.
    """

    end: int
    producer_id: int
    producer_epoch: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Parcel:
    """A batch ready to be sent, and where it must land."""

    opening: int
    base_offset: int
    next_offset: int
    records: int
    newest: int
    data: bytes


class Channel:
    """One partition of one flow.

    Args:
        place: which partition.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.sides: Sides | None = None
        self.state = PartitionState.OPENING
        self.reason: Reason | None = None
        self.position = -1
        self.end = -1
        self.fetch_at = -1
        self.opening = 0
        self.retry_at = 0.0
        self.busy = False
        self.behind_since: float | None = None
        self.queue: deque[Parcel] = deque()
        self.queued_bytes = 0
        self.in_flight: deque[Parcel] = deque()
        self._standing = Standing(-1, -1, -1, -1)
        self._alone = True
        self._failures = 0
        self._ended_as = self.state
        self._blocked: Reason | None = None

    # --- opening -----------------------------------------------------------------------------------------------------

    def open(self, sides: Sides, standing: Standing) -> None:
        """Begin at `standing`, with the first request travelling alone; while paused just note where it is."""
        if self.state is PartitionState.PAUSED:
            self.position = standing.end
            return
        self.sides = sides
        self._standing = standing
        self.position = self.fetch_at = standing.end
        self.end = max(self.end, self.position)
        self._alone = True
        self._blocked = None
        self.behind_since = None
        self.state = PartitionState.RUNNING
        self.reason = None

    def reopen(self, reason: Reason, now: float) -> None:
        """End this opening for a reason that passes by itself; it is opened anew after a short pause."""
        self._end_opening(PartitionState.OPENING, reason, now)

    def park(self, reason: Reason, now: float) -> None:
        """End this opening for a reason that needs somebody; it is tried again after a long pause."""
        self._end_opening(PartitionState.PARKED, reason, now)

    def wants_opening(self, now: float) -> bool:
        """Tell whether it is time to take over."""
        wants = self.state not in (PartitionState.RUNNING, PartitionState.PAUSED)
        return wants and not self.busy and not self.in_flight and now >= self.retry_at

    def _end_opening(self, state: PartitionState, reason: Reason, now: float) -> None:
        self._drop()
        if self.state is PartitionState.PAUSED:
            return
        # Pausing and parking are counted apart, or an outage would make the first parking long.
        self._failures = self._failures + 1 if state is self._ended_as else 1
        self._ended_as = state
        low, high = _BACKOFF_PARKED if state is PartitionState.PARKED else _BACKOFF_RETRY
        self.retry_at = now + min(high, low * 2 ** min(self._failures - 1, 16))
        self.state = state
        self.reason = reason

    def _drop(self) -> None:
        """Forget what was read in this opening, and let no answer count for the next one."""
        self.opening += 1
        self.queue.clear()
        self.queued_bytes = 0
        self._blocked = None

    # --- from people -------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Read and send nothing more until `resume`; what is in flight is still answered and counted."""
        if self.state is PartitionState.PAUSED:
            return
        self.state = PartitionState.PAUSED
        self.reason = None
        self.queue.clear()
        self.queued_bytes = 0
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
        self._failures = 0
        self.retry_at = 0.0
        self.behind_since = None
        self.state = PartitionState.OPENING
        self.reason = None

    # --- from the source ---------------------------------------------------------------------------------------------

    def wants_data(self) -> bool:
        """Tell whether the next fetch should ask for this partition."""
        return self.state is PartitionState.RUNNING and self._blocked is None and self.queued_bytes < QUEUE_BYTES

    def receive(self, answer: FetchAnswer, asked_at: int, opening: int, now: float) -> int:
        """Take a fetch answer in, up to the first batch that cannot pass.

        Args:
            answer: what the source said.
            asked_at: the offset that was asked for.
            opening: the opening in which it was asked.
            now: monotonic seconds.

        Returns:
            How many batches were queued.
        """
        if opening != self.opening or asked_at != self.fetch_at or self._blocked is not None:
            return 0
        if answer.last_stable_offset >= 0:
            self.end = answer.last_stable_offset
        queued = 0
        try:
            for batch in split(answer.records):
                if batch.next_offset <= self.fetch_at:
                    continue
                blocked = reasons.why_not(batch, self.fetch_at)
                if blocked is not None:
                    self._block(blocked, now)
                    break
                self._queue(batch)
                queued += 1
        except UnreadableBatch as error:
            self._block(reasons.old_format(error), now)
        return queued

    def _queue(self, batch: Batch) -> None:
        standing = self._standing
        data = batch.rewritten(standing.producer_id, standing.producer_epoch, standing.sequence)
        self.queue.append(
            Parcel(self.opening, batch.base_offset, batch.next_offset, batch.record_count, batch.max_timestamp, data)
        )
        self.queued_bytes += len(data)
        self.fetch_at = batch.next_offset
        self._standing = Standing(
            batch.next_offset,
            standing.producer_id,
            standing.producer_epoch,
            next_sequence(standing.sequence, batch.record_count),
        )

    def _block(self, reason: Reason, now: float) -> None:
        """Stop reading; what was read before goes out first, then the partition parks."""
        self._blocked = reason
        self._park_when_drained(now)

    def _park_when_drained(self, now: float) -> None:
        if self._blocked is not None and not self.queue and not self.in_flight:
            self.park(self._blocked, now)

    # --- to the target -----------------------------------------------------------------------------------------------

    def can_send(self) -> bool:
        """Tell whether the next request to the target's leader may carry a batch of this partition."""
        if self.state is not PartitionState.RUNNING or not self.queue:
            return False
        return len(self.in_flight) < (1 if self._alone else WINDOW)

    def send(self) -> Parcel:
        """Take the next parcel out of the queue; it is in flight until `answered` or `lost`."""
        parcel = self.queue.popleft()
        self.queued_bytes -= len(parcel.data)
        self.in_flight.append(parcel)
        return parcel

    def answered(self, parcel: Parcel, answer: ProduceAnswer, now: float) -> bool:
        """Take the target's answer for `parcel` in.

        Returns:
            True when the batch stands at its own offset, whether or not this opening goes on.
        """
        self.in_flight.remove(parcel)
        verdict = reasons.why_failed(self.place.remote, parcel.base_offset, len(parcel.data), answer)
        if verdict is not None:
            if parcel.opening == self.opening:
                self._end_opening(*verdict, now)
            return False
        if parcel.opening != self.opening:
            return True
        self.position = parcel.next_offset
        self._alone = False
        self._failures = 0
        self._park_when_drained(now)
        return True

    def lost(self, parcel: Parcel, reason: Reason, now: float) -> None:
        """Note that no answer for `parcel` will come: it may or may not be in the log."""
        self.in_flight.remove(parcel)
        if parcel.opening == self.opening:
            self.reopen(reason, now)

    # --- for people --------------------------------------------------------------------------------------------------

    def status(self) -> PartitionStatus:
        """Return what to say of this partition."""
        place = self.place
        return PartitionStatus(
            place.topic, place.partition, place.remote, self.state, self.position, self.end, self.reason
        )
