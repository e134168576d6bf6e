"""Begins and ends the openings of a partition: after takeovers, on errors, and when an operator pauses it.

`channel` adds what happens within an opening. No I/O.
"""

from __future__ import annotations

from collections import deque

from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason
from reconciler.records.read_committed import Gap
from reconciler.replicator.partition.backoff import Backoff
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.send_queue import Queue
from reconciler.replicator.partition.shares import Place


class PartitionLifecycle:
    """The openings of one partition.

    Args:
        place: which partition.

    Attributes:
        sides: the leaders on both sides, as of the newest opening.
        state: the partition's state.
        reason: why it does not run, or which transaction holds its source back.
        position: the next source offset to be written; -1 before the first opening.
        end: the source's last stable offset.
        fetch_at: the next source offset to be read.
        opening: counts openings; responses that belong to an older one are accepted and change nothing.
        retry_at: when it may be opened again (monotonic seconds).
        busy: whether a takeover is under way.
        filling: whether a gap is being filled.
        putting_aside: whether records are being written to the dead letter topic.
        behind_since: when the source's end was first below the copy's, if no other error occurred since (seconds).
        queue: batches and gaps that are read and not sent yet.
        in_flight: batches that are sent and not answered yet.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.sides: PartitionSides | None = None
        self.state = PartitionState.OPENING
        self.reason: Reason | None = None
        self.position = self.end = self.fetch_at = -1
        self.opening = 0
        self.retry_at = 0.0
        self.busy = self.filling = self.putting_aside = False
        self.behind_since: float | None = None
        self.queue = Queue()
        self.in_flight: deque[InFlightBatch] = deque()
        self._log_end = LogEnd(-1, -1, -1, -1)
        self._alone = True
        self._backoff = Backoff()
        self._blocked: Reason | None = None

    def _mind_gap(self) -> None:
        """Have a gap at the head of the queue filled, when nothing is in flight."""

    def open(self, sides: PartitionSides, log_end: LogEnd, lost: Gap | None = None) -> None:
        """Begin an opening at `log_end`, with the first request alone in flight; while paused only set the position.

        Args:
            sides: the leaders on both sides.
            log_end: where the target's log ends, and the producer to continue with.
            lost: offsets that the source deleted before they were copied, filled as a first gap if the flow allows it.
        """
        if self.state is PartitionState.PAUSED:
            self.position = log_end.position
            return
        self.sides = sides
        self._log_end = log_end
        self.position = self.fetch_at = log_end.position
        self.end = max(self.end, self.position)
        self._alone = True
        self._blocked = None
        self.behind_since = None
        self.state = PartitionState.RUNNING
        self.reason = None
        if lost is not None:
            self.fetch_at = self.queue.push(lost)
            self._mind_gap()

    def reopen(self, reason: Reason, now: float) -> None:
        """End this opening for a temporary reason; it is opened again after a short backoff."""
        self.end_opening(PartitionState.OPENING, reason, now)

    def park(self, reason: Reason, now: float) -> None:
        """End this opening for a reason that needs an operator; it is tried again after a long backoff."""
        self.end_opening(PartitionState.PARKED, reason, now)

    @property
    def is_at_work(self) -> bool:
        """Whether a response is outstanding for it."""
        return bool(self.busy or self.filling or self.in_flight or self.putting_aside)

    def wants_opening(self, now: float) -> bool:
        """Return whether it is time for a takeover."""
        return (
            not self.is_at_work
            and self.state not in (PartitionState.RUNNING, PartitionState.PAUSED)
            and now >= self.retry_at
        )

    def end_opening(self, state: PartitionState, reason: Reason, now: float) -> None:
        """End this opening with the state and reason of a verdict."""
        self._drop()
        if self.state is PartitionState.PAUSED:
            return
        self.retry_at = now + self._backoff.after(state)
        self.behind_since = self.behind_since if reason.code == "AB210" else None
        self.state, self.reason = state, reason

    def _drop(self) -> None:
        """Drop the queue, and let no outstanding response count for the next opening."""
        self.opening += 1
        self.queue.clear()
        self._blocked = None

    def status(self) -> PartitionStatus:
        """Return the partition's status; it is paused once nothing is outstanding."""
        place = self.place
        is_draining = self.state is PartitionState.PAUSED and self.is_at_work
        state = PartitionState.RUNNING if is_draining else self.state
        return PartitionStatus(place.topic, place.partition, place.remote, state, self.position, self.end, self.reason)

    # --- from operators ----------------------------------------------------------------------------------------------

    def pause(self, reason: Reason | None = None) -> None:
        """Read and send nothing more until `resume`; batches in flight are still answered and counted.

        Args:
            reason: which operator paused it, where that is known.
        """
        if self.state is PartitionState.PAUSED:
            self.reason = reason
            return
        self.state = PartitionState.PAUSED
        self.reason = reason
        self.queue.clear()
        self._blocked = None
        # No outstanding fetch response matches this offset.
        self.fetch_at = -1

    def resume(self) -> None:
        """Continue after a pause, with a takeover from the target's log end."""
        if self.state is PartitionState.PAUSED:
            self._try_again()

    def retry_now(self) -> None:
        """Take over at once, without the rest of the backoff; a paused channel stays paused."""
        if self.state is not PartitionState.PAUSED:
            self._try_again()

    def _try_again(self) -> None:
        self._drop()
        self._backoff.forget()
        self.retry_at = 0.0
        self.behind_since = None
        self.state = PartitionState.OPENING
        self.reason = None
