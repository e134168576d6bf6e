"""Spark for one run of `replicate`: the rounds of each slot, started, started again, and ended.

`driver` owns the only session of a process. Tasks of several flows may share a slot (`slots`), so what is started again
is a slot.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JNetworkError

from reconciler.model.declared.datacenter import Spark
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.spark import control_groups
from reconciler.replicator.spark.class_archive import ArchiveMaker
from reconciler.replicator.spark.engine import SparkEngine, first_line
from reconciler.replicator.spark.ledger_files import LedgerFiles
from reconciler.replicator.spark.restarts import RestartBackoff
from reconciler.replicator.spark.slot_rounds import SlotContext, SlotRounds
from reconciler.replicator.spark.slots import flows_of, slots_of
from reconciler.replicator.task.rounds import TaskFailure

# Seconds that the last ledgers may take to be written; nothing else depends on them.
_LEDGER_PATIENCE = 15.0
# What fails in several slots of a flow within so many seconds is one failure: of its clusters, mostly.
_TOGETHER = 10.0
_TICK = 0.1


def shares_file(folder: Path, flow: str) -> Path:
    """Return the file for the shares of a flow in the folder of a run."""
    return folder / f"{flow}.shares.json"


class ReplicationSession(SparkEngine):
    """A Spark session with the rounds of all flows of a run.

    Args:
        specs: the flows; each task needs a slot, all at once, unless it shares one (`slots`).
        folder: the run's folder, for Spark's log and files, with the flows' shares; it must exist.
        warn: called for every flow that had to be started again, and for ledgers that are not written.
        ledgers: where the ledgers are kept; None keeps none.
        cluster: where Spark runs; by default on this machine.

    Attributes:
        begun: how often the tasks of each flow were started, all of them or some.
    """

    def __init__(
        self,
        specs: Sequence[FlowSpec],
        folder: Path,
        warn: Callable[[str], None],
        ledgers: LedgerFiles | None = None,
        cluster: Spark | None = None,
    ) -> None:
        on_this_machine = cluster is None or cluster.master is None
        self._slots_of = slots_of(specs, control_groups.processors() if on_this_machine else None)
        super().__init__(len(self._slots_of), folder, warn, cluster)
        self._specs = {spec.flow.name: spec for spec in specs}
        self.begun: Counter[str] = Counter()
        self._ledgers = ledgers
        # The threads of the slots use these, too.
        self._lock = threading.Lock()
        self._failures = RestartBackoff()
        # By flow, the slot whose failure was counted last, and when (monotonic seconds).
        self._counted: dict[str, tuple[int, float]] = {}
        # How many ledgers each flow has yielded; what is to be warned of, and which flows count as started again.
        self._kept: Counter[str] = Counter()
        self._news: list[str] = []
        self._again: list[str] = []
        # By slot: its rounds, where they run, and why the last ones have ended.
        self._rounds: dict[int, SlotRounds] = {}
        self._ended: dict[int, str] = {}
        self._archive = ArchiveMaker(folder / "archive")

    def check(self, now: float, reported: Collection[str] = ()) -> dict[str, str]:
        """Start the slots, and those again whose rounds have ended: no state depends on them.

        Args:
            now: monotonic seconds.
            reported: flows whose tasks have reported a status since they were started.

        Returns:
            Why flows fail repeatedly, by name; they are restarted at longer intervals.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        if self._specs.keys() <= set(reported):
            # All flows copy: nothing waits for the processors.
            self._archive.begin()
        with self._lock:
            news, again, self._news, self._again = self._news, self._again, [], []
        for text in news:
            self._warn(text)
        self.begun.update(again)
        self.check_java()
        with self._talking():
            for slot, rounds in [*self._rounds.items()]:
                if not rounds.is_active:
                    self._note(slot, rounds, rounds.failure, now)
            self._start_slots(now)
        with self._lock:
            return self._failures.lasting(now)

    def _start_slots(self, now: float) -> None:
        """Start the slots that do not run, unless all their flows have failed just now."""
        for slot, tasks in enumerate(self._slots_of):
            if slot in self._rounds:
                continue
            flows = flows_of(tasks)
            with self._lock:
                resting = [flow for flow in flows if not self._failures.may_try(flow, now)]
            if len(resting) == len(flows):
                continue
            if slot in self._ended:
                for flow in flows:
                    self._warn(f"flow {flow}: its Spark job is restarted: {self._ended[slot]}")
            self.begun.update(flows)
            self._rounds[slot] = self._begun(slot, resting)

    def _begun(self, slot: int, resting: Collection[str]) -> SlotRounds:
        assert self._context is not None, "it was started"
        shares = {flow: shares_file(self._folder, flow) for flow in self._specs}
        context = SlotContext(self._context, self._specs, shares, self._keep, partial(self._failed, slot), self._rest)
        # A part of a round, so that they do not end theirs together.
        first = (slot + 1) / (len(self._slots_of) + 1)
        number = sum(self.begun.values())
        rounds = SlotRounds(context, self._slots_of[slot], f"slot {slot}, {number}", first, resting)
        rounds.start()
        return rounds

    # --- in the threads of the slots ---------------------------------------------------------------------------------

    def _keep(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write the ledger of a round, by flow; where that fails the flow goes on."""
        if self._ledgers is None:
            return
        for flow, some in groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0)):
            of_flow = list(some)
            with self._lock:
                number = self._kept[flow]
                self._kept[flow] += 1
            try:
                self._ledgers.write(flow, self._specs[flow].run, number, of_flow)
            except OSError as error:
                why = f"flow {flow}: the ledger of a round, {len(of_flow)} rows, is not written: {error}"
                with self._lock:
                    self._news.append(why)

    def _failed(self, slot: int, failure: TaskFailure) -> None:
        """Note a task that has failed in a slot whose other tasks go on."""
        with self._lock:
            self._count(failure.flow, slot, failure.why, time.monotonic())
            self._news.append(f"flow {failure.flow}: its task {failure.task} is restarted: {failure.why}")
            self._again.append(failure.flow)

    def _rest(self, flow: str) -> float:
        with self._lock:
            return self._failures.rest(flow, time.monotonic())

    # --- the end of rounds -------------------------------------------------------------------------------------------

    def _note(self, slot: int, rounds: SlotRounds, failure: Exception | None, now: float) -> None:
        """Note that the rounds of a slot have failed; a connection that has ended is Spark's own end.

        Raises:
            OSError, Py4JNetworkError: Spark has ended.
        """
        if isinstance(failure, (ConnectionError, Py4JNetworkError)):
            raise failure
        self._ended[slot] = first_line(failure)
        del self._rounds[slot]
        with self._lock:
            for flow in rounds.flows:
                self._count(flow, slot, self._ended[slot], now)

    def _count(self, flow: str, slot: int, why: str, now: float) -> None:
        """Count a failure of a flow, unless it comes with that of another slot."""
        before, at = self._counted.get(flow, (slot, now))
        if before == slot or now - at > _TOGETHER:
            self._counted[flow] = slot, now
            self._failures.note(flow, why, now)

    def replace(self, flow: str, why: str, now: float) -> None:
        """End the rounds of a flow whose tasks hang, and restart it; their processes are killed.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        with self._lock:
            self._failures.note(flow, why, now)
        for slot, rounds in [*self._rounds.items()]:
            if flow in rounds.flows:
                # The other flows of the slot are restarted because of this one.
                self._ended[slot] = why if len(rounds.flows) == 1 else f"of flow {flow}, {why}"
                del self._rounds[slot]
                with self._talking():
                    rounds.cancel()

    def finish(self) -> None:
        """Let the rounds that run be the last ones; called before the tasks get the command to stop."""
        for rounds in self._rounds.values():
            rounds.finish()

    def _end(self) -> None:
        """End the rounds.

        The tasks must have the command to stop: the ledgers that they yield then are still written.
        """
        self.finish()
        self._archive.end()
        if self._ledgers is not None and not self._await_ledgers():
            self._warn(f"the last ledgers are not written within {_LEDGER_PATIENCE:g} s; see {self.log}")
        for rounds in self._rounds.values():
            rounds.cancel()

    def _await_ledgers(self) -> bool:
        """Wait until the last round of each slot is over: its ledger is written by then."""
        deadline = time.monotonic() + _LEDGER_PATIENCE
        while time.monotonic() < deadline:
            if not any(rounds.is_active for rounds in self._rounds.values()):
                return True
            time.sleep(_TICK)
        return False
