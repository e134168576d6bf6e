"""Runs a comparison: surveys the flows, has Spark compare their partitions in pieces, and saves the progress.

A partition is compared from its beginning to its end in pieces of some seconds; as many partitions at the same time as
there are slots.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.declared.datacenter import Spark
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.offsets.verification import NOWHERE, Compared, Counts, Difference, Findings, Sofar, Verification
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.spark.jobs import SparkJobs
from reconciler.verify import work
from reconciler.verify.incomplete import lacking, reasons
from reconciler.verify.origin import Origin, made_anew, objections, origin_of
from reconciler.verify.resume import FlowState, Resume
from reconciler.verify.slices import SliceBounds, SliceNames, SliceProgress
from reconciler.verify.survey import Survey, VerifyFilter

_PIECE_SECONDS = 3.0
# So many small partitions go to a worker at once.
_MOST_AT_ONCE = 64
_MOST_TRIES = 3
_SAVE_EVERY = 1.0
_PAUSE = 0.2
_NO_RECORD = CopyRecord(None, None)


@dataclass(frozen=True)
class Options:
    """How to compare.

    Attributes:
        folder: for Spark's log; it must exist.
        wanted: the part of the flows to compare.
        slots: how many partitions at the same time, at most.
        rate: bytes per second that are read at most, on both sides together; None means no limit.
        resume: the file that holds the progress; None for none.
        spark: where Spark runs.
        copied_only: whether what is not copied does not count.
    """

    folder: Path
    wanted: VerifyFilter = field(default_factory=VerifyFilter)
    slots: int = 1
    rate: float | None = None
    resume: Path | None = None
    spark: Spark = field(default_factory=Spark)
    copied_only: bool = False


@dataclass(frozen=True)
class VerifyWatcher:
    """Callbacks of a comparison.

    Attributes:
        warn: called with problems that make the comparison less complete.
        phase: called with what it does now.
        seen: called with the progress, by several threads, one at a time.
        looked: called with originals and copies once all are known, before they are compared; it may raise.
    """

    warn: Callable[[Problem], None]
    phase: Callable[[str], None]
    seen: Callable[[Sofar], None]
    looked: Callable[[Collection[tuple[str, str]]], None] = lambda _: None


class Verify:
    """One comparison.

    Args:
        topology: the topology.
        flows: those to compare.
        options: how.
        watcher: its callbacks.
    """

    def __init__(self, topology: Topology, flows: Sequence[Flow], options: Options, watcher: VerifyWatcher) -> None:
        self._topology = topology
        self._options = options
        self._watcher = watcher
        self._specs = {flow.name: FlowSpec.compile(topology, flow, "verify") for flow in flows}
        self._resume = Resume(options.resume, topology.name, options.wanted)
        self._flows: dict[str, FlowState] = {}
        # Saved progress of flows that are not compared this time.
        self._others: dict[str, FlowState] = {}
        self._unseen: list[Problem] = []
        self._origins: dict[str, Origin] = {}
        self._lock = threading.Lock()
        self._busy: set[tuple[str, int]] = set()
        self._tries: Counter[tuple[str, int]] = Counter()
        self._saved_at = 0.0
        self._stopped = False

    def run(self) -> Verification:
        """Compare everything.

        Raises:
            EnvironmentFault: AB320 or AB321, Spark does not start, or fails; AB610, AB611, AB614 or AB615, the file of
                `--resume`.
        """
        kept = self._resume.load()
        self._flows = {name: flow for name, flow in kept.items() if name in self._specs}
        self._others = {name: flow for name, flow in kept.items() if name not in self._specs}
        self._check_origins()
        for flow in self._flows.values():
            for _, progress in flow.partitions:
                progress.failure = None
        # Nothing here rests on Spark, whose start takes longer.
        jobs = SparkJobs(self._options.slots, self._options.folder, self._warn, self._options.spark)
        jobs.open()
        try:
            self._look()
            self._report_topics()
            self._save(at_once=True)
            left = sum(not progress.is_done for flow in self._flows.values() for _, progress in flow.partitions)
            if left:
                jobs.need(left)
                self._watcher.phase("starting Spark")
                jobs.start()
        except BaseException:
            jobs.abandon()
            raise
        if left:
            self._compare(jobs, min(self._options.slots, left))
        else:
            jobs.abandon()
        return self._result()

    def _warn(self, text: str) -> None:
        self._watcher.warn(Problem("AB330", "", text, ""))

    def _check_origins(self) -> None:
        """Check that saved progress is of these flows, clusters and topics.

        Raises:
            EnvironmentFault: AB610 or AB614, it was not.
        """
        if self._options.resume is None:
            return
        path, problems = str(self._options.resume), list[Problem]()
        for name, spec in self._specs.items():
            try:
                now = self._origins[name] = origin_of(spec)
                kept = self._flows.get(name)
                if kept is None:
                    continue
                # The origin is missing only for a flow of which nothing was read.
                against = [*objections(path, spec, kept.origin, now)] if kept.origin else []
                problems += against or made_anew(path, spec, [bounds for bounds, _ in kept.partitions])
            except AnabranchError as error:
                # Its saved progress is used again when its clusters answer.
                self._unseen += error.problems
                if name in self._flows:
                    self._others[name] = self._flows.pop(name)
        if problems:
            raise EnvironmentFault(problems)

    def _look(self) -> None:
        """Survey the flows without saved progress, and again those that could not be read completely."""
        for name, spec in self._specs.items():
            kept = self._flows.get(name, FlowState())
            for problem in kept.warnings:
                self._watcher.warn(problem)
            is_out_of_reach = self._options.resume is not None and name not in self._origins
            if is_out_of_reach or (name in self._flows and not kept.unseen):
                continue
            self._watcher.phase(f"looking at {spec.flow.source} and {spec.flow.target}")
            warnings, rate = list(kept.warnings), self._options.rate
            try:
                found = Survey(spec, self._options.wanted, partial(self._warn_once, warnings), rate).look()
            except AnabranchError as error:
                self._unseen += error.problems
                continue
            partitions = [(bounds, SliceProgress.begin(bounds)) for bounds in found.bounds]
            without, unseen, notices = list(found.without), list(found.unreadable), list(found.notices)
            seen = FlowState(partitions, without, unseen, notices, warnings, self._origins.get(name))
            self._flows[name] = kept.with_more(seen)

    def _report_topics(self) -> None:
        flows = self._flows.values()
        if self._unseen or any(flow.unseen for flow in flows):
            # Topics that could not be read may have any name.
            return
        known = {(bounds.topic, bounds.remote) for flow in flows for bounds, _ in flow.partitions}
        self._watcher.looked(known | {(place.topic, place.remote) for flow in flows for place in flow.without})

    def _warn_once(self, known: list[Problem], problem: Problem) -> None:
        if problem not in known:
            known.append(problem)
            self._watcher.warn(problem)

    def _compare(self, jobs: SparkJobs, slots: int) -> None:
        self._watcher.phase("comparing")
        self._watcher.seen(self._sofar())
        pool = ThreadPoolExecutor(slots, thread_name_prefix="verify")
        try:
            workers = [pool.submit(self._work, jobs, slots) for _ in range(slots)]
            for worker in wait(workers, return_when=FIRST_EXCEPTION).done:
                worker.result()
        finally:
            self._stopped = True
            with contextlib.suppress(Exception):
                jobs.cancel()
            pool.shutdown(cancel_futures=True)
            jobs.stop()
            self._save(at_once=True)

    def _work(self, jobs: SparkJobs, slots: int) -> None:
        """Compare pieces until every partition is done or in the hands of another thread."""
        while not self._stopped:
            with self._lock:
                name, numbers = self._next(slots)
                is_last = not numbers and not self._busy
                self._busy |= {(name, number) for number in numbers}
            if is_last:
                return
            if not numbers:
                # Partitions of other threads may be left over.
                time.sleep(_PAUSE)
                continue
            try:
                self._have_compared(jobs, name, numbers, slots)
            finally:
                with self._lock:
                    self._busy -= {(name, number) for number in numbers}

    def _next(self, slots: int) -> tuple[str, list[int]]:
        """Return a flow and the numbers of some of its partitions that are not being compared."""
        waiting = {
            name: [
                number
                for number, (_, progress) in enumerate(flow.partitions)
                if not progress.is_done and progress.failure is None and (name, number) not in self._busy
            ]
            for name, flow in self._flows.items()
        }
        name = max(waiting, key=lambda one: len(waiting[one]), default="")
        numbers = waiting.get(name, [])
        share = -(-sum(map(len, waiting.values())) // slots)
        return name, numbers[: min(_MOST_AT_ONCE, share)]

    def _have_compared(self, jobs: SparkJobs, name: str, numbers: Sequence[int], slots: int) -> None:
        partitions = self._flows[name].partitions
        rate = self._options.rate
        slices = [partitions[number] for number in numbers]
        request = {
            "spec": self._specs[name].to_json(),
            "seconds": _PIECE_SECONDS,
            "rate": None if rate is None else rate / slots,
            "slices": [{"bounds": bounds.to_json(), "progress": progress.to_json()} for bounds, progress in slices],
        }
        answer = json.loads(jobs.run(work.compare, json.dumps(request)))
        with self._lock:
            for number, value in zip(numbers, answer, strict=True):
                if value is not None:
                    progress = SliceProgress.from_json(value)
                    before = partitions[number][1]
                    if (progress.source, progress.target) != (before.source, before.target):
                        # It has got further: this is another failure.
                        self._tries[name, number] = 0
                    self._tries[name, number] += progress.failure is not None
                    if progress.failure is not None and self._tries[name, number] < _MOST_TRIES:
                        progress.failure = None
                    partitions[number] = partitions[number][0], progress
            self._save()
            self._watcher.seen(self._sofar())

    def _save(self, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self._saved_at > _SAVE_EVERY:
            self._saved_at = now
            self._resume.save(self._others | self._flows)

    def _sofar(self) -> Sofar:
        offsets = of = different = 0
        counts = Counts()
        for flow in self._flows.values():
            for bounds, progress in flow.partitions:
                whole = bounds.source_end - bounds.source_first
                of += whole
                offsets += whole if progress.is_done else min(whole, progress.source - bounds.source_first)
                counts += progress.findings.counts
                different += bool(progress.findings.by_kind)
        return Sofar(offsets, of, counts, different)

    def _result(self) -> Verification:
        found: list[Compared] = []
        for name, spec in self._specs.items():
            names = SliceNames(name, spec.flow.source, spec.flow.target)
            flow = self._flows.get(name, FlowState())
            is_behind = any(progress.findings.counts.behind for _, progress in flow.partitions)
            why = reasons(spec) if is_behind else {}
            mine = [
                replace(
                    names.compared(*one),
                    lacks=() if one[1].failure else lacking(spec, one, why, failed_over=bool(flow.notices)),
                )
                for one in flow.partitions
            ]
            mine += [_without_copy(names, place) for place in flow.without]
            found += sorted(mine, key=lambda one: (one.topic, one.partition))
        unseen = [*self._unseen, *(problem for flow in self._flows.values() for problem in flow.unseen)]
        notices = tuple(problem for flow in self._flows.values() for problem in flow.notices)
        unseen = list(dict.fromkeys(unseen))
        return Verification(self._topology.name, tuple(found), tuple(unseen), notices, self._options.copied_only)


def _without_copy(names: SliceNames, place: Place) -> Compared:
    bounds = SliceBounds(place.topic, place.partition, place.remote, place.offsets, None, None, 0, 0, 0, 0, _NO_RECORD)
    findings = Findings()
    what = "the remote topic, or this partition of it, does not exist"
    findings.add(Difference("no-copy", NOWHERE, NOWHERE, what))
    return names.compared(bounds, SliceProgress(0, 0, True, findings=findings, is_done=True))
