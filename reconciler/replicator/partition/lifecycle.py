"""What begins and ends an opening of a partition: takeovers, troubles, and people who pause it.

`channel` is what happens within one; this is the part of it that counts openings. No I/O.
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
        sides: who leads on both sides, as of the newest opening.
        state: what is the matter with the partition now.
        reason: why it does not run, or what of its source is held back.
        position: the next source offset to be written; -1 before the first opening.
        end: the source's last stable offset.
        fetch_at: the next source offset to be read.
        opening: counts openings; what belongs to an older one is let in and changes nothing.
        retry_at: when it may be opened anew (monotonic seconds).
        busy: whether somebody opens it now.
        filling: whether somebody fills a gap now.
        putting_aside: whether somebody puts a record aside now.
        behind_since: when the source was first seen to end before the copy, if nothing else went wrong since (seconds).
        queue: what was read and is not sent yet.
        in_flight: what was sent and is not answered yet.
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
        """Have the gap filled that stands first, when nothing is in flight."""

    def open(self, sides: PartitionSides, log_end: LogEnd, lost: Gap | None = None) -> None:
        """Begin at `standing`, with the first request travelling alone; while paused just note where it is.

        Args:
            sides: who leads on both sides.
            log_end: where the target's log ends, and the producer to continue with.
            lost: records that the source deleted before they were copied: a gap to begin with, if that was declared.
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
        self.retry_at = now + self._backoff.after(state)
        self.behind_since = self.behind_since if reason.code == "AB210" else None
        self.state, self.reason = state, reason

    def _drop(self) -> None:
        """Forget what was read in this opening, and let no answer count for the next one."""
        self.opening += 1
        self.queue.clear()
        self._blocked = None

    def status(self) -> PartitionStatus:
        """Return what to say of this partition."""
        place = self.place
        return PartitionStatus(
            place.topic, place.partition, place.remote, self.state, self.position, self.end, self.reason
        )

    # --- from people -------------------------------------------------------------------------------------------------

    def pause(self, reason: Reason | None = None) -> None:
        """Read and send nothing more until `resume`; what is in flight is still answered and counted.

        Args:
            reason: who has paused it, where that is known.
        """
        if self.state is PartitionState.PAUSED:
            self.reason = reason
            return
        self.state = PartitionState.PAUSED
        self.reason = reason
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
        self._backoff.forget()
        self.retry_at = 0.0
        self.behind_since = None
        self.state = PartitionState.OPENING
        self.reason = None
