"""Compares an original with its copy, and finds the source offset that comes next at the copy's log end.

`identical` calls it before anything is written behind existing records. The newest record of the copy is compared with
the original's; transaction markers behind it must fill a gap of the original, and excess markers make a shifted run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.batch import Batch
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.replicator.copy.log_tail import LogTail, next_visible
from reconciler.replicator.copy.same_log import batch_at, first_difference, share_records
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.place import kept_shift
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, TopicInfo, Wire


class Disagreement(Exception):
    """The channel cannot be opened now; `verdict` is its new state and the reason."""

    def __init__(self, state: PartitionState, code: str, text: str) -> None:
        super().__init__(text)
        self.verdict: reasons.Verdict = (state, Reason(code, text))

    @classmethod
    def of(cls, verdict: reasons.Verdict) -> Disagreement:
        """Return an exception with a verdict."""
        state, reason = verdict
        return cls(state, reason.code, reason.text)

    @classmethod
    def refused(cls, error: BrokerError, operation: str, resource: str, side: reasons.Side = "target") -> Disagreement:
        """Return what an error answer to a request means: `operation` is the ACL operation that it needs."""
        return cls.of(reasons.why_refused(error, operation, resource, side))


class NotYet(Disagreement):
    """The source's readable end is below the copy's; a new leader may need some time to advance it."""

    def __init__(self, text: str) -> None:
        super().__init__(PartitionState.OPENING, "AB210", text)


@dataclass(frozen=True, slots=True)
class Logs:
    """Both logs of one partition, as they were read.

    Attributes:
        place: which partition.
        source: the source topic.
        target: the remote topic.
        first: the source's log start.
        start: the target's log start.
        end: the target's log end.
        tail: how the target's log ends.
        record: the stored record of the copy.
    """

    place: Place
    source: TopicInfo
    target: TopicInfo
    first: int
    start: int
    end: int
    tail: LogTail
    record: CopyRecord

    @property
    def markers(self) -> int:
        """Where the trailing markers that fill gaps of this original begin; the log end when there are none."""
        return max(self.tail.markers, self.record.ours_from)

    @property
    def is_known(self) -> bool:
        """Whether the copy's source topic is on record."""
        return self.record.source_id is not None

    @property
    def name(self) -> str:
        """How messages name the original."""
        return f"{self.place.topic}/{self.place.partition}"

    @property
    def copy(self) -> str:
        """How messages name the copy."""
        return f"{self.place.remote}/{self.place.partition}"


class Agreement:
    """Compares logs.

    Args:
        source: a wire to the source.
        target: a wire to the target.
    """

    def __init__(self, source: Wire, target: Wire) -> None:
        self._source = source
        self._target = target

    async def reach(self, logs: Logs, wait: bool) -> Run:
        """Return the run that continues at the target's log end: its source offset and its shift.

        Args:
            logs: both sides, of one source topic as far as that is known.
            wait: whether to retry when there are markers beyond the source's readable end.

        Raises:
            Disagreement: the logs are not the same, or that cannot be decided.
            NotYet: the source's readable end is below the copy's.
            ConnectionLost: no answer.
            BrokerError: a broker refuses.
            UnreadableBatch: a batch cannot be read.
        """
        runs = logs.record.runs
        await self._compare(logs)
        markers, end = logs.markers, logs.end
        going_on = runs.at_target(end)
        if markers == end or (runs.runs and going_on.target == end):
            return Run(end - going_on.shift, going_on.shift)
        shift = runs.at_target(markers).shift
        begins = markers - shift
        visible, is_seen = await self._visible(logs, max(begins, logs.first))
        if is_seen and visible <= begins:
            text = (
                f"another producer ended a transaction in {logs.copy}: offset {markers} is a marker, and the original "
                f"has a record at {begins}; {reasons.recreating(logs.place.remote)}"
            )
            raise Disagreement(PartitionState.PARKED, "AB211", text)
        wanted = end - kept_shift(shift)
        if wait and not is_seen and wanted > visible:
            text = f"{logs.copy} has markers up to offset {end}, and {logs.name} shows nothing beyond {visible} yet"
            raise NotYet(text)
        position = min(max(wanted, begins), visible)
        return Run(position, end - position)

    async def _visible(self, logs: Logs, offset: int) -> tuple[int, bool]:
        """Return the first visible record from an offset on that was not put aside, as `next_visible` does."""
        try:
            while True:
                found, is_seen = await next_visible(self._source, logs.source, logs.place.partition, offset)
                offset = logs.record.behind_aside(found)
                if not is_seen or offset == found:
                    return found, is_seen
        except BrokerError as error:
            raise Disagreement.refused(error, "READ", f"topic {logs.place.topic}", "source") from None

    async def _compare(self, logs: Logs) -> None:
        """Compare the newest record of the copy with the original's; without one, the copy's record decides."""
        ours = logs.tail.last
        if ours is None or ours.next_offset <= logs.record.ours_from:
            # Records deleted below the copy's log start may be of another log, unless the source has none there.
            if logs.start > logs.first and not logs.is_known:
                raise _nothing_in_common(logs)
            return
        newest = ours.next_offset - 1
        shift = logs.record.runs.at_target(newest).shift
        if newest - shift < logs.first:
            if not logs.is_known:
                raise _nothing_in_common(logs)
            return
        try:
            theirs = await batch_at(self._source, logs.source, logs.place.partition, newest - shift)
        except BrokerError as error:
            raise Disagreement.refused(error, "READ", f"topic {logs.place.topic}", "source") from None
        if theirs is None:
            text = f"offset {newest - shift} of {logs.name} is not readable yet"
            raise Disagreement(PartitionState.OPENING, "AB220", text)
        if theirs.is_control or theirs.base_offset > newest - shift:
            if theirs.is_control and theirs.base_offset <= newest - shift:
                raise _different(logs, newest, "everything: the original has a transaction marker there")
            if not logs.is_known:
                raise _nothing_in_common(logs)
            return
        self._same(logs, theirs, ours, shift)

    @staticmethod
    def _same(logs: Logs, theirs: Batch, ours: Batch, shift: int) -> None:
        try:
            difference = first_difference(theirs, ours, shift)
            in_common = logs.is_known or share_records(theirs, ours, shift)
        except DecompressedTooLarge as error:
            reason = reasons.oversized(ours.base_offset - shift, error)
            raise Disagreement(PartitionState.PARKED, reason.code, reason.text) from None
        except ValueError as error:
            text = f"cannot compare {logs.copy} with its source at offset {ours.base_offset}: {error}"
            raise Disagreement(PartitionState.PARKED, "AB209", text) from None
        if difference is not None:
            raise _different(logs, difference.offset, difference.what)
        if not in_common:
            raise _nothing_in_common(logs)


def _different(logs: Logs, offset: int, what: str) -> Disagreement:
    text = (
        f"{logs.copy} is not a copy of {logs.place.topic}: its record at offset {offset} differs in {what}; the source "
        f"was recreated, or another producer wrote to the copy; {reasons.recreating(logs.place.remote)}"
    )
    return Disagreement(PartitionState.PARKED, "AB209", text)


def _nothing_in_common(logs: Logs) -> Disagreement:
    text = (
        f"{logs.name} and its copy {logs.copy} have no record in common below {logs.end}, and the copy's source topic "
        "is not on record: cannot decide whether they are the same log"
    )
    return Disagreement(PartitionState.PARKED, "AB215", text)


def within(record: CopyRecord, start: int, end: int) -> CopyRecord:
    """Return `record` without the runs that lie wholly below the copy's log start, or beyond its end.

    The latter belong to records that the target has lost since.
    """
    runs = tuple(run for run in record.runs.runs if run.target <= end)
    kept = tuple(run for run, after in pairwise(runs) if after.target > start) + runs[-1:]
    return replace(record, runs=Runs(kept))
