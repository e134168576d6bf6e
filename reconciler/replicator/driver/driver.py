"""The driver of one run: checks the clusters, starts Spark, watches the status topics, stops in order.

`cli` calls `Driver.run`. The driver reads what the tasks do from the status topic and commands them over the control
topic, and over nothing else, so it works the same wherever Spark runs them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue

from reconciler.model.base.errors import AnabranchError, DeclaredInputError, EnvironmentFault, Problem, together
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.datacenter import Spark
from reconciler.model.tasks.seal import Seal
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionStatus, TaskStatus
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.catch_up import CatchUp
from reconciler.replicator.driver.preparation import prepare
from reconciler.replicator.driver.refresh import Reconcile, Refresh
from reconciler.replicator.driver.signals import StopSignals
from reconciler.replicator.driver.supervisor import Supervisor
from reconciler.replicator.spark import run_folders
from reconciler.replicator.spark.ledger_files import LedgerFiles
from reconciler.replicator.spark.session import ReplicationSession, shares_file
from reconciler.state import control
from reconciler.state.liveness import Liveness
from reconciler.state.status import StatusReader

_TICK = 0.2
# Seconds between two looks at all flows for each of them: a hundred are looked at every two seconds.
_LOOK_FOR_EACH = 0.02
_STOP_PATIENCE = 6.0
# Those at the same clusters share what they find.
_LOOKS_AT_ONCE = 128


class RunEnding(Enum):
    """How a run ended."""

    STOPPED = "stopped"
    SUPERSEDED = "another declaration is in force"
    CAUGHT_UP = "caught up"
    PARKED = "only parked or paused partitions are left"


@dataclass(frozen=True)
class RunOutcome:
    """The end of a run.

    Attributes:
        ending: how.
        parked: flow and partition of what is parked or paused, when that is why.
        signal: number of the signal that stopped it; 0 where none did.
        held: what stands behind open transactions of the sources, where it has caught up without that.
    """

    ending: RunEnding
    parked: tuple[tuple[str, PartitionStatus], ...] = ()
    signal: int = 0
    held: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class RunWatcher:
    """The callbacks of a run.

    Attributes:
        warn: called with each warning.
        seen: called with the tasks' newest statuses, several times a second.
        phase: called when a new phase begins: `starting Spark`, `replicating`, `stopping`.
        note: called with each topic or setting that was made.
    """

    warn: Callable[[str], None]
    seen: Callable[[Sequence[TaskStatus]], None]
    phase: Callable[[str], None]
    note: Callable[[str], None]


def new_run() -> str:
    """Return a name for a new run: when, where and which process."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    Attributes:
        until_caught_up: end when the sources' ends of now are reached.
        ledgers: where the ledgers are kept; None keeps none.
        reconcile: makes what remote topics lack, at intervals; None makes nothing.
        spark: where the tasks run.
    """

    until_caught_up: bool = False
    ledgers: LedgerFiles | None = None
    reconcile: Reconcile | None = None
    spark: Spark = field(default_factory=Spark)


class Driver:
    """One run of some flows.

    Args:
        specs: the flows, all of one run.
        folder: where this run keeps Spark's log and files; made anew and removed after a clean end.
        watcher: the callbacks.
        options: how it runs.
    """

    def __init__(self, specs: Sequence[FlowSpec], folder: Path, watcher: RunWatcher, options: RunOptions) -> None:
        self._specs = specs
        self._folder = folder
        self._watcher = watcher
        self._options = options
        self._catch_up = CatchUp() if options.until_caught_up else None
        self._targets = {spec.target.alias: spec.target for spec in specs}
        self._run, self._topology = specs[0].run, specs[0].topology
        self._readers: dict[str, StatusReader] = {}
        self._hearings = {alias: Liveness() for alias in self._targets}
        self._has_announced = False
        # Other threads queue their messages here: callbacks are called from the driver's own thread alone.
        self._words: SimpleQueue[tuple[Callable[[str], None], str]] = SimpleQueue()
        self._refreshes = [
            Refresh(
                spec,
                options.reconcile,
                warn=lambda text: self._words.put((watcher.warn, text)),
                note=lambda text: self._words.put((watcher.note, text)),
                file=shares_file(folder, spec.flow.name),
            )
            for spec in specs
        ]

    def run(self, superseded: Callable[[], bool] = lambda: False) -> RunOutcome:
        """Run until stopped by a signal, caught up, or superseded.

        Args:
            superseded: called several times a second; whether another declaration is in force by now.

        Raises:
            AnabranchError: a cluster does not answer, a required topic is missing, or Spark fails.
        """
        with StopSignals() as signals:
            session = ReplicationSession(
                self._specs, self._folder, self._watcher.warn, self._options.ledgers, self._options.spark
            )
            try:
                # Spark's start takes several seconds, mostly of waiting, and nothing here depends on it.
                run_folders.make(self._folder)
                session.open()
                self._prepare()
                self._refresh()
                self._watcher.phase("starting Spark")
                session.start()
                signals.hear_again()
                signals.may_raise = False
            except BaseException as error:
                signals.may_raise = False
                # Spark's own errors are in its log.
                troubles = error.problems if isinstance(error, AnabranchError) else ()
                self._abandon(session, keeps_log=any(problem.where == "Spark" for problem in troubles))
                if signals.ended(error):
                    return RunOutcome(RunEnding.STOPPED, signal=signals.number)
                raise
            supervisor = Supervisor(self._specs, session)
            try:
                outcome = self._watch(session, supervisor, signals, superseded)
            finally:
                try:
                    self._stop(session)
                finally:
                    supervisor.close()
            if outcome.ending is RunEnding.SUPERSEDED and signals.asked:
                outcome = RunOutcome(RunEnding.STOPPED, signal=signals.number)
        run_folders.remove(self._folder)
        return outcome

    # --- before ------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        errors: list[AnabranchError] = []
        for spec in self._specs:
            try:
                if self._options.spark.master is None:
                    # The tasks read it in this same environment; checked here, it fails at once.
                    spec.source.client_rack()
                places = discovery.matching(spec)
                self._check_topics(spec, {place.topic for place in places})
                if self._catch_up is not None:
                    self._catch_up.add(spec, places)
            except AnabranchError as error:
                errors.append(error)
        for target in self._targets.values():
            try:
                prepare(
                    target,
                    self._topology,
                    [spec.flow for spec in self._specs if spec.target == target],
                    self._watcher.warn,
                )
            except AnabranchError as error:
                errors.append(error)
        if errors:
            raise together(errors)

    def _check_topics(self, spec: FlowSpec, found: set[str]) -> None:
        wanted = [name for name in spec.flow.topics.literals() if spec.flow.topics.required and name not in found]
        if wanted:
            raise DeclaredInputError(
                [
                    Problem(
                        "AB214",
                        f"flow {spec.flow.name}",
                        f"required topic {name} does not exist on {spec.source.where}",
                        "create it, or drop `required`",
                    )
                    for name in wanted
                ]
            )
        hidden = discovery.hidden(spec, found)
        for problem in hidden:
            self._watcher.warn(f"flow {spec.flow.name}: {problem}")
        if not (found or hidden):
            self._watcher.warn(f"flow {spec.flow.name}: no topic of {spec.source.alias} matches yet; waiting for one")

    def _refresh(self) -> None:
        """Refresh all flows once, then start their refresh threads."""
        self._has_announced = True
        with ThreadPoolExecutor(min(len(self._refreshes), _LOOKS_AT_ONCE)) as pool:
            list(pool.map(Refresh.look, self._refreshes))
        self._pass_on()
        for refresh in self._refreshes:
            refresh.start()

    def _abandon(self, session: ReplicationSession, keeps_log: bool = False) -> None:
        session.abandon()
        self._end_refreshes()
        self._withdraw(tuple(self._targets.values()) if self._has_announced else ())
        if not keeps_log:
            run_folders.remove(self._folder)

    # --- meanwhile ---------------------------------------------------------------------------------------------------

    def _watch(
        self, session: ReplicationSession, supervisor: Supervisor, signals: StopSignals, superseded: Callable[[], bool]
    ) -> RunOutcome:
        self._watcher.phase("replicating")
        look_at, every = 0.0, _LOOK_FOR_EACH * len(self._specs)
        while not signals.asked:
            if time.monotonic() < look_at:
                time.sleep(_TICK)
                continue
            look_at = time.monotonic() + every
            if superseded():
                return RunOutcome(RunEnding.SUPERSEDED)
            self._pass_on()
            statuses = self._heard()
            own = self._own(statuses)
            self._watcher.seen(own)
            failing = supervisor.look(own, time.monotonic())
            # `--until-caught-up` must not wait for ever.
            if self._catch_up is not None and failing:
                failure = "; ".join(f"flow {flow} fails: {why}" for flow, why in failing.items())
                raise EnvironmentFault(Problem("AB320", "Spark", failure, f"see {session.log}"))
            if self._catch_up is not None:
                left_out = {
                    (refresh.flow, topic): why for refresh in self._refreshes for topic, why in refresh.waiting.items()
                }
                progress = self._catch_up.progress(statuses, left_out)
                if not progress.missing:
                    return RunOutcome(RunEnding.CAUGHT_UP, held=tuple(self._catch_up.held()))
                if progress.missing == len(progress.parked):
                    return RunOutcome(RunEnding.PARKED, progress.parked)
            time.sleep(_TICK)
        return RunOutcome(RunEnding.STOPPED, signal=signals.number)

    def _pass_on(self) -> None:
        """Call the callbacks with the messages of other threads."""
        with contextlib.suppress(Empty):
            while True:
                tell, text = self._words.get_nowait()
                tell(text)

    def _statuses(self) -> list[TaskStatus]:
        """Return the statuses of this run's tasks."""
        return self._own(self._heard())

    def _own(self, statuses: Sequence[TaskStatus]) -> list[TaskStatus]:
        """Return the statuses that this run's tasks, or this process, may have written: others may use its name."""
        most = {spec.flow.name: spec.flow.tasks for spec in self._specs}
        own = [one for one in statuses if one.run == self._run and one.flow in most]
        return [one for one in own if one.task < one.tasks <= most[one.flow] or one.is_held]

    def _heard(self) -> list[TaskStatus]:
        """Return the statuses of this run's tasks, and of live runs that may share its flows.

        Their times are when they were read here. A target that does not answer adds nothing new.
        """
        statuses: list[TaskStatus] = []
        for alias, target in self._targets.items():
            reader = self._readers.setdefault(alias, StatusReader(target, self._topology))
            try:
                said = [one for one in reader.current() if one.is_of(self._topology)]
            except AnabranchError:
                continue
            self._hearings[alias].update(said)
            heard = self._hearings[alias].on_own_clock()
            statuses += [one for one in heard if one.run == self._run or one.is_live(time.time())]
        return statuses

    # --- afterwards --------------------------------------------------------------------------------------------------

    def _stop(self, session: ReplicationSession) -> None:
        """Command the tasks to finish what is in flight, wait for their final statuses, then stop Spark."""
        self._watcher.phase("stopping")
        session.finish()
        for refresh in self._refreshes:
            refresh.over()
        targets = tuple(self._targets.values())
        with ThreadPoolExecutor(len(targets)) as pool:
            answers = pool.map(self._stop_tasks, targets)
            reached = [target for target, is_sent in zip(targets, answers, strict=True) if is_sent]
        deadline = time.monotonic() + _STOP_PATIENCE
        while reached and time.monotonic() < deadline and not self._all_stopped(session.begun):
            time.sleep(_TICK / 4)
        session.stop()
        self._end_refreshes()
        self._withdraw(reached)
        for reader in self._readers.values():
            reader.close()

    def _withdraw(self, targets: Sequence[Cluster]) -> None:
        """Remove this run's commands from the control topics: no task reads them any more."""
        for target in targets:
            try:
                control.withdraw(target, self._seals(target))
            except AnabranchError:
                self._watcher.warn(f"{target.where} does not answer; this run's commands stay in its control topic")

    def _end_refreshes(self) -> None:
        for refresh in self._refreshes:
            refresh.end()
        self._pass_on()

    def _stop_tasks(self, target: Cluster) -> bool:
        try:
            control.stop(target, self._seals(target))
        except AnabranchError:
            return False
        return True

    def _seals(self, target: Cluster) -> list[Seal]:
        return [spec.seal for spec in self._specs if spec.target == target]

    def _all_stopped(self, begun: Collection[str]) -> bool:
        statuses = self._statuses()
        said = {(status.flow, status.task) for status in statuses if status.stopped}
        expected = {(status.flow, task) for status in statuses for task in range(status.tasks)}
        heard = {status.flow for status in statuses}
        return said >= expected and heard >= set(begun)
