"""What runs in a Spark task: compares some partitions of one flow, one after the other, for some seconds.

`drive` sends it as JSON what is to be compared and how far that is, and gets back how far it came. Secrets are resolved
here, where the task runs.
"""

from __future__ import annotations

import json
import math
import signal
import time
from functools import partial
from typing import NamedTuple

from reconciler.model.cluster import Cluster
from reconciler.model.errors import AnabranchError, Problem
from reconciler.model.spec import FlowSpec
from reconciler.replicator.batch import UnreadableBatch
from reconciler.replicator.pace import Quota
from reconciler.replicator.place import differ
from reconciler.replicator.wire import ConnectionLost, ErrorCode, Loop, TopicInfo, Wire, error_name
from reconciler.verify.begin import Log, find_pair
from reconciler.verify.compaction import Compaction
from reconciler.verify.comparer import Comparer, Terms
from reconciler.verify.feed import Feed
from reconciler.verify.side import Side
from reconciler.verify.slices import Bounds, Progress

_REQUEST_TIMEOUT = 15.0
_WAIT = 0.5
_PAUSE = 0.002
_REMEDY = "run it again"


class Failed(Exception):
    """One partition cannot be compared any further: carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def compare(text: str) -> str:
    """Compare what a request names; Spark's workers call it.

    Args:
        text: JSON with `spec` (a flow specification), `seconds` to work for, `rate` in bytes per second or null, and
            `slices`: of each partition its bounds and its progress.

    Returns:
        JSON: the progress of each partition, in the same order; null where nothing was done.
    """
    # A terminal's Ctrl-C reaches the workers too; it is the driver that stops them, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = json.loads(text)
    spec = FlowSpec.from_json(told["spec"])
    slices = [(Bounds.from_json(one["bounds"]), Progress.from_json(one["progress"])) for one in told["slices"]]
    worked = run(spec, slices, time.monotonic() + told["seconds"], Quota(told["rate"]))
    return json.dumps([progress.to_json() for progress in worked] + [None] * (len(slices) - len(worked)))


def run(spec: FlowSpec, slices: list[tuple[Bounds, Progress]], until: float, quota: Quota) -> list[Progress]:
    """Compare partitions of a flow until a time; return the progress of those that were begun.

    Args:
        spec: the flow.
        slices: bounds and progress of each partition.
        until: monotonic seconds; the first one is always begun.
        quota: what may be read in a second.
    """
    loop = Loop()
    wires: list[Wire] = []
    worked: list[Progress] = []
    try:
        name = f"anabranch-verify-{spec.flow.name}"
        wires = [Wire(loop, cluster, name, _REQUEST_TIMEOUT) for cluster in (spec.source, spec.target)]
        for bounds, progress in slices:
            if worked and time.monotonic() >= until:
                break
            one = _Partition(loop, (wires[0], wires[1]), bounds, progress)
            # Whether a record is a repeated one only what went by before it tells.
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
    """Compares one partition for a while.

    Args:
        loop: of this task.
        wires: to the source and to the target.
        bounds: what is compared.
        progress: how far; moved on.
    """

    def __init__(self, loop: Loop, wires: tuple[Wire, Wire], bounds: Bounds, progress: Progress) -> None:
        self._loop = loop
        self._source, self._target = wires
        self._bounds = bounds
        self._progress = progress
        self._arrived = loop.bell()

    async def work(self, until: float, quota: Quota) -> None:
        """Compare until a time; what stands against it goes into the progress."""
        progress = self._progress
        try:
            sides = _Sides(
                await _described(self._source, self._bounds.topic, self._bounds.partition, self._bounds.source_id),
                await _described(self._target, self._bounds.remote, self._bounds.partition, self._bounds.target_id),
            )
            while not progress.is_done:
                if not progress.is_paired:
                    await self._pair(sides)
                elif await self._compare(sides, until, quota):
                    break
        except Failed as error:
            progress.failure = error.problem

    async def _pair(self, sides: _Sides) -> None:
        bounds = self._bounds
        number = bounds.partition
        source = Log(self._source, sides.source, number, bounds.source_end, bounds.committed)
        target = Log(self._target, sides.target, number, bounds.target_end, True)
        try:
            await find_pair(source, target, bounds, self._progress)
        except (ConnectionLost, ErrorCode, UnreadableBatch) as error:
            where = f"{self._source.cluster.where} and {self._target.cluster.where}, {bounds.remote}/{number}"
            raise Failed(_problem(error, where, self._target.cluster)) from None

    async def _compare(self, sides: _Sides, until: float, quota: Quota) -> bool:
        """Compare from where both sides stand; return whether the time is up."""
        bounds, progress = self._bounds, self._progress
        source = Side("source", progress.source, bounds.source_end)
        target = Side("target", progress.target, bounds.target_end)
        source.expired, target.expired = progress.source_expired, progress.target_expired
        terms = Terms(
            *(bounds.is_identical, bounds.record, bounds.copied_to, bounds.source_end),
            *(bounds.repeats, bounds.source_compacts, bounds.target_compacts),
        )
        compaction = Compaction.from_json(progress.compaction)
        comparer = Comparer(source, target, terms, progress.findings, compaction, progress.moved)
        feeds = {
            "source": Feed(self._loop, self._source, sides.source, bounds.partition, source, bounds.committed),
            "target": Feed(self._loop, self._target, sides.target, bounds.partition, target, True),
        }
        jobs = [self._loop.spawn(partial(feed.run, self._arrived, quota)) for feed in feeds.values()]
        try:
            return await self._advance(comparer, feeds, until)
        finally:
            for feed in feeds.values():
                feed.stopped = True
                feed.room.ring()
            while not all(job.is_done for job in jobs):
                await self._loop.sleep(_PAUSE)
            progress.source, progress.target = source.next, target.next
            progress.source_expired, progress.target_expired = source.expired, target.expired
            progress.moved, progress.compaction = comparer.places.moved, comparer.compaction.to_json()

    async def _advance(self, comparer: Comparer, feeds: dict[str, Feed], until: float) -> bool:
        progress, began = self._progress, (comparer.source.next, comparer.target.next)
        while (side := comparer.advance()) is not None:
            feed = feeds[side.name]
            if feed.trouble is not None:
                raise Failed(_problem(feed.trouble, feed.where, self._cluster(side)))
            if feed.jumped is not None:
                self._jump(side, feed.jumped)
                if not progress.is_paired:
                    return False
                feed.jumped = None
            # However short the time is, each piece gets further.
            if time.monotonic() >= until and (comparer.source.next, comparer.target.next) != began:
                return True
            for one in feeds.values():
                one.room.ring()
            await self._arrived.wait(_WAIT)
        progress.is_done = True
        return False

    def _jump(self, side: Side, first: int) -> None:
        """Take note that everything below an offset was deleted meanwhile."""
        if self._bounds.is_identical:
            side.jump(first)
            return
        # Which record the other side has to go on with is to be found out again.
        self._progress.is_paired = False
        side.next = max(side.next, first)

    def _cluster(self, side: Side) -> Cluster:
        return (self._source if side.name == "source" else self._target).cluster


async def _described(wire: Wire, topic: str, partition: int, topic_id: str | None) -> TopicInfo:
    """Return who leads a partition.

    Raises:
        Failed: nobody does, or the topic is another than it was.
    """
    where = f"{wire.cluster.where}, {topic}/{partition}"
    try:
        found = (await wire.topics([topic]))[topic]
    except (ConnectionLost, ErrorCode) as error:
        raise Failed(_problem(error, where, wire.cluster)) from None
    leader = found.partitions.get(partition)
    code = found.error or (leader.error if leader else 0)
    if code or leader is None:
        said = f"cannot be read: {error_name(code) if code else 'it is not there any more'}"
        raise Failed(Problem("AB609", where, said, "see that it has a leader and may be read, and run it again"))
    if differ(topic_id, None if found.topic_id is None else str(found.topic_id)):
        said = "was deleted and made anew since the comparison began"
        raise Failed(Problem("AB609", where, said, "begin the comparison anew, without the file of --resume"))
    return found


def _problem(error: Exception, where: str, cluster: Cluster) -> Problem:
    if isinstance(error, ConnectionLost):
        return Problem("AB310", cluster.where, f"does not answer: {error}", "check that it runs, and run it again")
    if isinstance(error, ErrorCode):
        return Problem("AB609", where, f"cannot be read: {error}", f"grant READ and DESCRIBE, and {_REMEDY}")
    if isinstance(error, UnreadableBatch):
        return Problem("AB609", where, f"cannot be read: {error}", "it may be whole at another replica")
    return Problem("AB609", where, f"cannot be compared: {type(error).__name__}: {error}", _REMEDY)
