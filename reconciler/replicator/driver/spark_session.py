"""Spark for one run of `replicate`: a session, and one streaming query per flow, which yields its ledger.

`driver` owns the only one of a process. A query begins with five processes one after the other, each of which must
connect to Spark within ten seconds of its start. So queries begin one after the other, as many at a time as there are
processors: the next one begins when the tasks of one have reported a status. `ledger_frame` is the DataFrame behind
each query, for `stream` and programs with a Spark session of their own.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from reconciler.model.declared.datacenter import Spark
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import processors
from reconciler.replicator.driver.restarts import RestartBackoff
from reconciler.replicator.driver.spark_engine import SparkEngine, first_line
from reconciler.replicator.driver.spark_source import NAME, SECRET, SHARES, SPEC, ReplicationSource

# Seconds that the last ledgers may take to be written; nothing else depends on them.
_LEDGER_PATIENCE = 15.0
_TICK = 0.1
# A query whose tasks have reported nothing for so many seconds does not keep the others from beginning.
_BEGINS_FOR = 90.0
# Spark's message where a Python process did not connect within ten seconds (`PythonWorkerFactory`).
_NO_CONNECTION = "failed to connect back"


@dataclass(frozen=True)
class LedgerFiles:
    """Where the ledgers of a run are kept: below `folder`, for each flow and run a folder of its own.

    Attributes:
        folder: made when it is missing.
        format: of the files that Spark writes.
    """

    folder: Path
    format: Literal["json", "parquet"] = "json"


def ledger_frame(spark: SparkSession, spec: FlowSpec, shares: Path) -> DataFrame:
    """Return the ledger of a flow as a streaming DataFrame; a query on it replicates the flow.

    Args:
        spark: the session; its workers must run an interpreter that has this package.
        spec: the flow.
        shares: the file in which `refresh` keeps the shares of the run.
    """
    spark.dataSource.register(ReplicationSource)
    options = {SPEC: spec.to_json(), SECRET: spec.key, SHARES: str(shares.absolute())}
    return spark.readStream.format(NAME).options(**options).load()


def shares_file(folder: Path, flow: str) -> Path:
    """Return the file for the shares of a flow in the folder of a run."""
    return folder / f"{flow}.shares.json"


class ReplicationSession(SparkEngine):
    """A Spark session with a query for each flow.

    Args:
        specs: the flows; each needs as many slots as it has tasks, all at once.
        folder: the run's folder, for Spark's log and checkpoints, with the flows' shares; it must exist.
        warn: called for every query that had to be started again, and for ledgers that are not written.
        ledgers: where the ledgers are kept; None keeps none.
        cluster: where Spark runs; by default on this machine.

    Attributes:
        begun: how often the query of each flow was started.
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
        self._spark: SparkSession | None = None
        self._queries: dict[str, StreamingQuery] = {}
        # Flows whose queries were not started yet, in order; and those whose tasks have reported nothing since the
        # start, with the time of the start (monotonic seconds).
        self._waiting = deque(self._specs)
        self._beginning: dict[str, float] = {}

    def _prepare(self, context: SparkContext) -> None:
        self._spark = SparkSession(context)

    def check(self, now: float, reported: Collection[str] = ()) -> dict[str, str]:
        """Start queries whose turn it is, and restart those that have ended: no state depends on them.

        Args:
            now: monotonic seconds.
            reported: flows whose tasks have reported a status since their queries were started.

        Returns:
            Why flows fail repeatedly, by name; they are restarted at longer intervals.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        with self._talking():
            for flow, query in list(self._queries.items()):
                with self._as_failure(flow, now):
                    if not query.isActive and flow not in self._ended:
                        self._note(flow, query.exception(), now)
            self._begin_some(now, reported)
        return self._failures.lasting(now)

    def is_starved(self, flow: str) -> bool:
        """Return whether a flow failed the last time because the machine was too busy: then it only takes longer."""
        return _NO_CONNECTION in self._failures.last(flow)

    def _begin_some(self, now: float, reported: Collection[str]) -> None:
        """Start as many queries as the processors allow: first starts before restarts."""
        for flow, since in list(self._beginning.items()):
            if flow in reported or flow in self._ended or now - since > _BEGINS_FOR:
                del self._beginning[flow]
        ended = [flow for flow in self._specs if flow in self._ended and self._failures.may_try(flow, now)]
        room = max(1, int(processors.usable())) - len(self._beginning)
        for flow in [*self._waiting, *ended][: max(room, 0)]:
            with self._as_failure(flow, now):
                self._beginning[flow] = now
                if flow in self._ended:
                    self._warn(f"flow {flow}: its Spark query is restarted: {self._failures.last(flow)}")
                else:
                    self._waiting.remove(flow)
                self._queries[flow] = self._query(self._specs[flow])

    def _note(self, flow: str, failure: object, now: float) -> None:
        self._ended.add(flow)
        why = first_line(failure)
        if _NO_CONNECTION in why:
            why = f"{why} A Python process has ten seconds for that: {processors.described()}; see {self.log}"
        self._failures.note(flow, why, now)

    def replace(self, flow: str, why: str, now: float) -> None:
        """Stop the query of a flow whose tasks hang, and restart it; their processes are killed.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        with self._talking(), self._as_failure(flow, now):
            self._failures.note(flow, why, now)
            self._ended.add(flow)
            self._beginning.pop(flow, None)
            if flow in self._queries:
                self._queries[flow].stop()

    @contextlib.contextmanager
    def _as_failure(self, flow: str, now: float) -> Iterator[None]:
        """Count an error of Spark as a failure of one flow: the others go on."""
        try:
            yield
        except Py4JNetworkError:
            raise
        except (Py4JError, PySparkException) as error:
            self._note(flow, error, now)

    def _end(self) -> None:
        """End the queries.

        The tasks must have the command to stop: the ledgers that they yield then are still written.
        """
        if self._ledgers is not None and not self._await_ledgers():
            self._warn(f"the last ledgers are not written within {_LEDGER_PATIENCE:g} s; see {self.log}")
        for query in self._queries.values():
            query.stop()

    def _await_ledgers(self) -> bool:
        """Wait until every query has ended one more round: the ledger of the tasks' last round is written by then.

        Rounds that begin after the stop command end at once.
        """
        before = {flow: _rounds(query) for flow, query in self._queries.items()}
        deadline = time.monotonic() + _LEDGER_PATIENCE
        while time.monotonic() < deadline:
            if all(not q.isActive or _rounds(q) > before[flow] for flow, q in self._queries.items()):
                return True
            time.sleep(_TICK)
        return False

    def _query(self, spec: FlowSpec) -> StreamingQuery:
        assert self._spark is not None, "it was prepared"
        self._ended.discard(spec.flow.name)
        self.begun[spec.flow.name] += 1
        frame = ledger_frame(self._spark, spec, shares_file(self._folder, spec.flow.name))
        writer = frame.writeStream.queryName(spec.flow.name)
        if self._ledgers is None:
            writer = writer.format("noop")
        else:
            # Spark keeps a list of its rounds beside the files, so another run needs another folder.
            path = self._ledgers.folder.absolute() / spec.flow.name / spec.run
            writer = writer.format(self._ledgers.format).option("path", str(path))
        return writer.option("checkpointLocation", str(self._folder / "checkpoints" / spec.flow.name)).start()


def _rounds(query: StreamingQuery) -> int:
    """Return how many rounds of a query are over and written."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
