"""Runs in a Spark task: compares some partitions of one flow, one after the other, for some seconds.

`drive` sends bounds and progress as JSON, and gets the new progress back. Secrets are resolved here, where the task
runs.
"""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.records import codecs
from reconciler.records.batch import UnreadableBatch
from reconciler.records.rewrite import RawRecord
from reconciler.replicator.partition.place import differ
from reconciler.replicator.task import malloc
from reconciler.replicator.transfer.pace import Quota
from reconciler.verify.begin import LogReader, NoBeginning, find_pair
from reconciler.verify.comparison.compaction import Compaction
from reconciler.verify.comparison.comparer import Comparer
from reconciler.verify.comparison.doubts import Doubts, KeyLookup
from reconciler.verify.comparison.looking import Meeting, Repeat, Scan
from reconciler.verify.comparison.pairing import PairingTerms
from reconciler.verify.comparison.side import Side
from reconciler.verify.feed import Feed
from reconciler.verify.patience import PASSING, patiently
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.wire import BrokerError, ConnectionLost, Loop, TopicInfo, Wire, error_name

_REQUEST_TIMEOUT = 15.0
_WAIT = 0.5
_PAUSE = 0.002
# A log may grow while it is scanned; its end is read this often at most.
_MOST_ENDS = 3
_REMEDY = "run it again"


class Failed(Exception):
    """One partition cannot be compared any further; holds the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def compare(text: str) -> str:
    """Compare the partitions of a request; Spark's workers call it.

    Args:
        text: JSON with `spec` (a flow specification), `seconds` to work for, `rate` in bytes per second or null, and
            `slices`: of each partition its bounds and its progress.

    Returns:
        JSON: the progress of each partition, in the same order; null for partitions that were not begun.
    """
    # A terminal's Ctrl-C reaches the workers too; it is the driver that stops them, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    malloc.keep()
    request = json.loads(text)
    spec = FlowSpec.from_json(request["spec"])
    slices = [
        (SliceBounds.from_json(one["bounds"]), SliceProgress.from_json(one["progress"])) for one in request["slices"]
    ]
    worked = run(spec, slices, time.monotonic() + request["seconds"], Quota(request["rate"]))
    return json.dumps([progress.to_json() for progress in worked] + [None] * (len(slices) - len(worked)))


def run(
    spec: FlowSpec, slices: list[tuple[SliceBounds, SliceProgress]], until: float, quota: Quota
) -> list[SliceProgress]:
    """Compare partitions of a flow until a time; return the progress of those that were begun.

    Args:
        spec: the flow.
        slices: bounds and progress of each partition.
        until: monotonic seconds; the first one is always begun.
        quota: bytes per second that may be read.
    """
    loop = Loop()
    wires: list[Wire] = []
    worked: list[SliceProgress] = []
    try:
        name = f"anabranch-verify-{spec.flow.name}"
        wires = [Wire(loop, cluster, name, _REQUEST_TIMEOUT) for cluster in (spec.source, spec.target)]
        codecs.limit_decompressed(spec.flow.largest_batch)
        for wire in wires:
            wire.allow(spec.flow.largest_batch)
        for bounds, progress in slices:
            if worked and time.monotonic() >= until:
                break
            one = _Partition(loop, (wires[0], wires[1]), bounds, progress)
            # A repeated record is recognised only by records that went by before it, so such a partition is not split.
            loop.run(partial(one.work, math.inf if bounds.repeats else until, quota))
            worked.append(progress)
    except AnabranchError as error:
        # A secret, or what `security` needs on this machine.
        slices[len(worked)][1].failure = error.problems[0]
        worked.append(slices[len(worked)][1])
    finally:
        for wire in wires:
            wire.close()
        loop.close()
    return worked


class _Sides(NamedTuple):
    source: TopicInfo
    target: TopicInfo


class _Partition:
    """Compares one partition for some seconds.

    Args:
        loop: of this task.
        wires: to the source and to the target.
        bounds: of the partition.
        progress: of the partition; changed here.
    """

    def __init__(self, loop: Loop, wires: tuple[Wire, Wire], bounds: SliceBounds, progress: SliceProgress) -> None:
        self._loop = loop
        self._source, self._target = wires
        self._bounds = bounds
        self._progress = progress
        self._arrived = loop.bell()

    async def work(self, until: float, quota: Quota) -> None:
        """Compare until a time; a failure is stored in the progress."""
        progress = self._progress
        try:
            sides = _Sides(
                await _described(
                    self._loop, self._source, self._bounds.topic, self._bounds.partition, self._bounds.source_id
                ),
                await _described(
                    self._loop, self._target, self._bounds.remote, self._bounds.partition, self._bounds.target_id
                ),
            )
            while not progress.is_done:
                if not progress.is_paired:
                    await self._pair(sides, quota)
                elif await self._compare(sides, until, quota):
                    break
        except Failed as error:
            progress.failure = error.problem

    async def _pair(self, sides: _Sides, quota: Quota) -> None:
        bounds = self._bounds
        source, target = (self._log(sides, name, quota) for name in ("source", "target"))
        try:
            await find_pair(source, target, bounds, self._progress)
        except (ConnectionLost, BrokerError, UnreadableBatch, NoBeginning) as error:
            where = f"{self._source.cluster.where} and {self._target.cluster.where}, {bounds.remote}/{bounds.partition}"
            raise Failed(_problem(error, where, self._target.cluster)) from None

    def _log(self, sides: _Sides, name: str, quota: Quota) -> LogReader:
        bounds, number = self._bounds, self._bounds.partition
        if name == "source":
            return LogReader(self._loop, self._source, sides.source, number, bounds.source_end, bounds.committed, quota)
        return LogReader(self._loop, self._target, sides.target, number, bounds.target_end, True, quota)

    async def _compare(self, sides: _Sides, until: float, quota: Quota) -> bool:
        """Compare from the current positions; return whether the time is up."""
        bounds, progress = self._bounds, self._progress
        source = Side("source", progress.source, bounds.source_end)
        target = Side("target", progress.target, bounds.target_end)
        source.expired, target.expired = progress.source_expired, progress.target_expired
        terms = PairingTerms(
            *(bounds.is_identical, bounds.record, bounds.copied_to, bounds.source_end),
            *(bounds.repeats, bounds.source_compacts, bounds.target_compacts, bounds.is_shared),
        )
        compaction = Compaction.from_json(progress.compaction)
        comparer = Comparer(source, target, terms, progress.findings, compaction, progress.moved)
        comparer.meeting, comparer.failed_meetings = progress.meeting, progress.failed_meetings
        try:
            while True:
                async with self._reading(sides, (source, target), quota) as feeds:
                    is_late = await self._advance(comparer, feeds, until)
                if comparer.wanted == "meeting":
                    await self._meet(sides, comparer, quota)
                elif comparer.wanted == "repeat":
                    await self._look_back(sides, comparer, quota)
                elif comparer.wanted == "keys":
                    await self._look_at_keys(sides, comparer, quota)
                else:
                    return is_late
        finally:
            progress.source, progress.target = source.next, target.next
            progress.source_expired, progress.target_expired = source.expired, target.expired
            progress.moved, progress.compaction = comparer.places.moved, comparer.compaction.to_json()
            # The meeting is searched again if retention has deleted the next records.
            progress.meeting = comparer.meeting if progress.is_paired else None
            progress.failed_meetings = comparer.failed_meetings

    @asynccontextmanager
    async def _reading(self, topics: _Sides, sides: Sequence[Side], quota: Quota) -> AsyncIterator[dict[str, Feed]]:
        """Fill sides in the background while the context is open."""
        feeds = {side.name: self._feed(topics, side) for side in sides}
        jobs = [self._loop.spawn(partial(feed.run, self._arrived, quota)) for feed in feeds.values()]
        try:
            yield feeds
        finally:
            for feed in feeds.values():
                feed.stopped = True
                feed.room.ring()
            while not all(job.is_done for job in jobs):
                await self._loop.sleep(_PAUSE)

    def _feed(self, topics: _Sides, side: Side) -> Feed:
        if side.name == "source":
            committed = self._bounds.committed
            return Feed(self._loop, self._source, topics.source, self._bounds.partition, side, committed)
        return Feed(self._loop, self._target, topics.target, self._bounds.partition, side, True)

    # --- searches -----------------------------------------------------------------------------------------------------

    async def _meet(self, topics: _Sides, comparer: Comparer, quota: Quota) -> None:
        """Find the next place at which both sides are the same again."""
        sides = [Side(side.name, side.next, side.end) for side in (comparer.source, comparer.target)]
        one = Meeting(*sides)
        await self._look(topics, one, sides, quota)
        comparer.met(one.found)

    async def _look_back(self, topics: _Sides, comparer: Comparer, quota: Quota) -> None:
        """Find how far the target repeats records that are no longer in memory."""
        source, target = comparer.source, comparer.target
        stamp = target.window(1)[0].timestamp
        # A record without a timestamp may be anywhere.
        first = await self._asked(self._log(topics, source.name, quota), stamp) if stamp >= 0 else 0
        if not 0 <= first < source.next:
            comparer.strays.looked_back(None)
            return
        first = max(first, self._bounds.source_first)
        sides = [Side(source.name, first, source.next), Side(target.name, target.next, target.end)]
        one = Repeat(*sides)
        await self._look(topics, one, sides, quota)
        comparer.strays.looked_back(one)

    async def _look_at_keys(self, topics: _Sides, comparer: Comparer, quota: Quota) -> None:
        """Decide which records that a compacted target lacks are lost, and add these to the findings."""
        first, behind = self._bounds.target_first, comparer.target.next
        doubts = Doubts(comparer.compaction, first, behind, comparer.judged)
        if (before := doubts.before()) is not None:
            await self._scan(topics, before, doubts.stood_before, quota)
        await self._scan(topics, doubts.behind(), doubts.came_later, quota)
        if doubts:
            await self._scan(topics, doubts.at_source(), doubts.is_at_source, quota)
        doubts.report(self._progress.findings)
        comparer.compaction = Compaction()

    async def _scan(self, topics: _Sides, look: KeyLookup, see: Callable[[RawRecord], None], quota: Quota) -> None:
        at = look.first
        for _ in range(_MOST_ENDS):
            end = await self._asked(self._log(topics, look.name, quota)) if look.end is None else look.end
            if end <= at:
                return
            side = Side(look.name, at, end)
            await self._look(topics, Scan(side, see), (side,), quota)
            at = end

    async def _look(self, topics: _Sides, taker: Meeting | Repeat | Scan, sides: Sequence[Side], quota: Quota) -> None:
        async with self._reading(topics, sides, quota) as feeds:
            while (side := taker.advance()) is not None:
                feed = feeds[side.name]
                self._raise_trouble(feed, side)
                if feed.jumped is not None:
                    side.jump(feed.jumped)
                    feed.jumped = None
                for one in feeds.values():
                    one.room.ring()
                await self._arrived.wait(_WAIT)

    async def _asked(self, log: LogReader, stamp: int | None = None) -> int:
        """Return the first offset at a timestamp in ms, or -1; without a timestamp, the readable end of a log."""
        try:
            return await (log.readable_to() if stamp is None else log.at_time(stamp))
        except (ConnectionLost, BrokerError) as error:
            where = f"{log.wire.cluster.where}, {log.topic.name}/{log.partition}"
            raise Failed(_problem(error, where, log.wire.cluster)) from None

    def _raise_trouble(self, feed: Feed, side: Side) -> None:
        if feed.trouble is not None:
            raise Failed(_problem(feed.trouble, feed.where, self._cluster(side)))

    # --- one after the other ------------------------------------------------------------------------------------------

    async def _advance(self, comparer: Comparer, feeds: dict[str, Feed], until: float) -> bool:
        progress, began = self._progress, (comparer.source.next, comparer.target.next)
        while (side := comparer.advance()) is not None:
            feed = feeds[side.name]
            self._raise_trouble(feed, side)
            if feed.jumped is not None:
                self._jump(side, feed.jumped)
                if not progress.is_paired:
                    return False
                feed.jumped = None
            # Each piece makes progress, however short its time is.
            is_further = (comparer.source.next, comparer.target.next) != began
            if time.monotonic() >= until and is_further and not comparer.unread[1]:
                return True
            for one in feeds.values():
                one.room.ring()
            await self._arrived.wait(_WAIT)
        progress.is_done = not comparer.wanted
        return False

    def _jump(self, side: Side, first: int) -> None:
        """Handle that all records below an offset were deleted meanwhile."""
        if self._bounds.is_identical:
            side.jump(first)
            return
        # The matching record of the other side must be found again.
        self._progress.is_paired = False
        side.next = max(side.next, first)

    def _cluster(self, side: Side) -> Cluster:
        return (self._source if side.name == "source" else self._target).cluster


async def _described(loop: Loop, wire: Wire, topic: str, partition: int, topic_id: str | None) -> TopicInfo:
    """Return a topic with the leader of a partition.

    Raises:
        Failed: the partition has no leader, or the topic was made again.
    """
    where = f"{wire.cluster.where}, {topic}/{partition}"

    async def ask() -> TopicInfo:
        found = (await wire.topics([topic]))[topic]
        leader = found.partitions.get(partition)
        if not found.error and leader is not None and leader.error in PASSING:
            raise BrokerError(leader.error)
        return found

    try:
        found = await patiently(loop, ask)
    except (ConnectionLost, BrokerError) as error:
        raise Failed(_problem(error, where, wire.cluster)) from None
    leader = found.partitions.get(partition)
    code = found.error or (leader.error if leader else 0)
    if code or leader is None:
        what = f"cannot be read: {error_name(code) if code else 'it is not there any more'}"
        raise Failed(Problem("AB609", where, what, "see that it has a leader and may be read, and run it again"))
    if differ(topic_id, None if found.topic_id is None else str(found.topic_id)):
        what = "was deleted and made anew since the comparison began"
        raise Failed(Problem("AB609", where, what, "begin the comparison anew, without the file of --resume"))
    return found


def _problem(error: Exception, where: str, cluster: Cluster) -> Problem:
    if isinstance(error, ConnectionLost):
        return Problem("AB310", cluster.where, f"does not answer: {error}", "check that it runs, and run it again")
    if isinstance(error, BrokerError):
        return Problem("AB609", where, f"cannot be read: {error}", f"grant READ and DESCRIBE, and {_REMEDY}")
    if isinstance(error, UnreadableBatch):
        return Problem("AB609", where, f"cannot be read: {error}", "it may be whole at another replica")
    if isinstance(error, NoBeginning):
        remedy = "let the flows fill topics of their own (policy)"
        return Problem("AB609", where, f"cannot be compared: {error}", remedy)
    return Problem("AB609", where, f"cannot be compared: {type(error).__name__}: {error}", _REMEDY)
