"""Spark for one run of `replicate`: the rounds of each flow, started, started again, and ended.

`driver` owns the only session of a process. A few flows begin at a time for each processor: the next one begins when
the tasks of one have reported a status, so that on a busy machine the first ones copy early.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JNetworkError

from reconciler.model.declared.datacenter import Spark
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.spark import processors
from reconciler.replicator.spark.class_archive import ArchiveMaker
from reconciler.replicator.spark.engine import SparkEngine, first_line
from reconciler.replicator.spark.flow_rounds import FlowRounds
from reconciler.replicator.spark.ledger_files import LedgerFiles
from reconciler.replicator.spark.restarts import RestartBackoff

# Seconds that the last ledgers may take to be written; nothing else depends on them.
_LEDGER_PATIENCE = 15.0
_TICK = 0.1
# So many flows begin at a time, for each processor.
_BEGIN_AT_ONCE = 4
# A flow whose tasks have reported nothing for so many seconds does not keep the others from beginning.
_BEGINS_FOR = 90.0


def shares_file(folder: Path, flow: str) -> Path:
    """Return the file for the shares of a flow in the folder of a run."""
    return folder / f"{flow}.shares.json"


class ReplicationSession(SparkEngine):
    """A Spark session with the rounds of each flow.

    Args:
        specs: the flows; each needs as many slots as it has tasks, all at once.
        folder: the run's folder, for Spark's log and files, with the flows' shares; it must exist.
        warn: called for every flow that had to be started again, and for ledgers that are not written.
        ledgers: where the ledgers are kept; None keeps none.
        cluster: where Spark runs; by default on this machine.

    Attributes:
        begun: how often the rounds of each flow were started.
    """

    def __init__(
        self,
        specs: Sequence[FlowSpec],
        folder: Path,
        warn: Callable[[str], None],
        ledgers: LedgerFiles | None = None,
        cluster: Spark | None = None,
    ) -> None:
        super().__init__(sum(spec.flow.tasks for spec in specs), folder, warn, cluster)
        self._specs = {spec.flow.name: spec for spec in specs}
        self._failures = RestartBackoff()
        self._ended: set[str] = set()
        self.begun: Counter[str] = Counter()
        self._ledgers = ledgers
        # How many ledgers each flow has yielded.
        self._kept: Counter[str] = Counter()
        # Why ledgers were not written, from the threads of the rounds.
        self._unkept: list[str] = []
        self._rounds: dict[str, FlowRounds] = {}
        self._archive = ArchiveMaker()
        # Flows that were not started yet, in order; and those whose tasks have reported nothing since the start, with
        # the time of the start (monotonic seconds).
        self._waiting = deque(self._specs)
        self._beginning: dict[str, float] = {}

    def check(self, now: float, reported: Collection[str] = ()) -> dict[str, str]:
        """Start flows whose turn it is, and restart those whose rounds have ended: no state depends on them.

        Args:
            now: monotonic seconds.
            reported: flows whose tasks have reported a status since they were started.

        Returns:
            Why flows fail repeatedly, by name; they are restarted at longer intervals.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        if not self._waiting and not self._beginning:
            # All flows copy: nothing waits for the processors.
            self._archive.begin()
        while self._unkept:
            self._warn(self._unkept.pop(0))
        with self._talking():
            for flow, rounds in self._rounds.items():
                if not rounds.is_active and flow not in self._ended:
                    self._note(flow, rounds.failure, now)
                    # Its other tasks: all begin anew.
                    rounds.cancel()
            self._begin_some(now, reported)
        return self._failures.lasting(now)

    def _begin_some(self, now: float, reported: Collection[str]) -> None:
        """Start as many flows as the processors allow: first starts before restarts."""
        for flow, since in list(self._beginning.items()):
            if flow in reported or flow in self._ended or now - since > _BEGINS_FOR:
                del self._beginning[flow]
        ended = [flow for flow in self._specs if flow in self._ended and self._failures.may_try(flow, now)]
        room = max(1, int(_BEGIN_AT_ONCE * processors.usable())) - len(self._beginning)
        for flow in [*self._waiting, *ended][: max(room, 0)]:
            self._beginning[flow] = now
            if flow in self._ended:
                self._warn(f"flow {flow}: its Spark job is restarted: {self._failures.last(flow)}")
                self._ended.discard(flow)
            else:
                self._waiting.remove(flow)
            self.begun[flow] += 1
            self._rounds[flow] = self._begun(self._specs[flow])

    def _begun(self, spec: FlowSpec) -> FlowRounds:
        assert self._context is not None, "it was started"
        name = spec.flow.name
        file = shares_file(self._folder, name)
        rounds = FlowRounds(self._context, spec, file, partial(self._keep, spec), self.begun[name])
        rounds.start()
        return rounds

    def _keep(self, spec: FlowSpec, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write the ledger of a round; where that fails the flow goes on."""
        if self._ledgers is None:
            return
        name = spec.flow.name
        try:
            self._ledgers.write(name, spec.run, self._kept[name], rows)
        except OSError as error:
            self._unkept.append(f"flow {name}: the ledger of a round, {len(rows)} rows, is not written: {error}")
        self._kept[name] += 1

    def _note(self, flow: str, failure: Exception | None, now: float) -> None:
        """Note that the rounds of a flow have failed; a connection that has ended is Spark's own end.

        Raises:
            Py4JNetworkError: Spark has ended.
        """
        if isinstance(failure, Py4JNetworkError):
            raise failure
        self._ended.add(flow)
        self._failures.note(flow, first_line(failure), now)

    def replace(self, flow: str, why: str, now: float) -> None:
        """End the rounds of a flow whose tasks hang, and restart it; their processes are killed.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        self._failures.note(flow, why, now)
        self._ended.add(flow)
        self._beginning.pop(flow, None)
        if flow in self._rounds:
            with self._talking():
                self._rounds[flow].cancel()

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
        """Wait until the last round of each flow is over: its ledger is written by then."""
        deadline = time.monotonic() + _LEDGER_PATIENCE
        while time.monotonic() < deadline:
            if not any(rounds.is_active for rounds in self._rounds.values()):
                return True
            time.sleep(_TICK)
        return False
