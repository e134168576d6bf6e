"""Spark for one run of `replicate`: a session, and one streaming query per flow, which is the flow's ledger.

`drive` owns the only one of a process. Spark's own log goes to a file in the run's folder, never to the terminal.
`ledger_frame` is the DataFrame behind each query, for `stream` and whoever has a Spark session of his own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Literal

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from reconciler.model.datacenter import Spark
from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.model.spec import FlowSpec
from reconciler.replicator.failures import Failures
from reconciler.replicator.source import NAME, ReplicationSource

# A task that dies is started again this often; `local[n]` alone would end the query with the first dead worker.
_TASK_FAILURES = 8
# How long the last ledgers may take to be written; nothing else rests on them.
_LEDGER_PATIENCE = 15.0
_JVM_PATIENCE = 5.0
# How long the executors of a Spark cluster may take to be there.
_SLOTS_PATIENCE = 30.0
_TICK = 0.1
_LOG_FILE = "spark.log"
_LOCAL_IP = "SPARK_LOCAL_IP"
_LOG_CONFIG = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True)
class LedgerFiles:
    """Where the ledgers of a run are kept: below `folder`, for each flow and run a folder of its own.

    Attributes:
        folder: made when it is missing.
        format: of the files that Spark writes.
    """

    folder: Path
    format: Literal["json", "parquet"] = "json"


def ledger_frame(spark: SparkSession, spec: FlowSpec) -> DataFrame:
    """Return the ledger of a flow as a streaming DataFrame; a query on it replicates the flow.

    Args:
        spark: the session; its workers must run an interpreter that has this package.
        spec: the flow.
    """
    spark.dataSource.register(ReplicationSource)
    return spark.readStream.format(NAME).option("spec", spec.to_json()).load()


class Session:
    """A Spark session with a query for each flow.

    Args:
        specs: the flows; each needs as many slots as it has tasks, all at once.
        folder: the run's folder, for Spark's log and checkpoints; it must exist.
        warn: told of every query that had to be begun anew, and of ledgers that are not written.
        ledgers: where the ledgers are kept; None when nobody wants them.
        cluster: where Spark runs; by default on this machine.

    Attributes:
        begun: how often the query of each flow was begun.
    """

    def __init__(
        self,
        specs: Sequence[FlowSpec],
        folder: Path,
        warn: Callable[[str], None],
        ledgers: LedgerFiles | None = None,
        cluster: Spark | None = None,
    ) -> None:
        self._cluster = cluster or Spark()
        self.log = folder / _LOG_FILE
        self._specs = {spec.flow.name: spec for spec in specs}
        self._warn = warn
        self._failures = Failures()
        self._ended: set[str] = set()
        self.begun: Counter[str] = Counter()
        self._folder = folder
        self._ledgers = ledgers
        self._slots = sum(spec.flow.tasks for spec in specs)
        self._opening = threading.Thread(target=self._open, name="spark", daemon=True)
        self._trouble: Exception | None = None
        self._spark: SparkSession | None = None
        self._queries: dict[str, StreamingQuery] = {}

    def open(self) -> None:
        """Begin to start Spark and return at once: that takes long, and there may be other things to do."""
        self._opening.start()

    def start(self) -> None:
        """Wait for Spark, and start all queries.

        Raises:
            EnvironmentFault: AB320, Spark does not start; AB321, it has too few slots.
        """
        self._opening.join()
        try:
            if self._trouble is not None:
                raise self._trouble
            assert self._spark is not None, "it was opened"
            self._await_slots()
            for flow, spec in self._specs.items():
                self._queries[flow] = self._begin(self._spark, spec)
        except (Py4JError, PySparkException, OSError, RuntimeError) as error:
            raise self._fault(what=f"does not start: {error}") from None

    def abandon(self) -> None:
        """Break the start off, and end the virtual machine: its only parent is this process, and it its only child.

        PySpark removes the folder through which it would report; a machine that finds that gone stays for ever.
        """
        # It may not even have begun.
        while self._opening.is_alive():
            _kill_children()
            self._opening.join(_TICK)
        _kill_children()

    def _open(self) -> None:
        try:
            self._spark = self._made()
        except Exception as error:
            # Told to whoever waits for it.
            self._trouble = error

    def _made(self) -> SparkSession:
        settings = dict(self._cluster.conf)
        # Workers must run this very interpreter, or they find neither the package nor its dependencies.
        os.environ["PYSPARK_PYTHON"] = settings.pop("spark.pyspark.python", sys.executable)
        config = self._folder / "log4j2.properties"
        config.write_text(_LOG_CONFIG.format(path=self.log), encoding="utf-8")
        if self._cluster.master is None:
            master = f"local[{self._slots},{_TASK_FAILURES}]"
            settings = self._local() | settings
        else:
            master = self._cluster.master
            settings = {"spark.task.maxFailures": str(_TASK_FAILURES), "spark.cores.max": str(self._slots)} | settings
        named = {"spark.app.name": "anabranch", "spark.master": master}
        options = named | self._settings(config) | settings
        if self._cluster.master is not None or _LOCAL_IP in os.environ:
            return self._session(options)
        os.environ[_LOCAL_IP] = "127.0.0.1"
        try:
            return self._session(options)
        finally:
            # The next run of this process may be on a cluster.
            del os.environ[_LOCAL_IP]

    def _session(self, options: Mapping[str, str]) -> SparkSession:
        builder = SparkSession.Builder()
        for key, value in options.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def check(self, now: float) -> dict[str, str]:
        """Look whether all queries run, and begin those anew that do not: nothing depends on what they knew.

        Args:
            now: monotonic seconds.

        Returns:
            Why flows fail that were begun anew again and again, by their names; they are tried more seldom.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        with self._talking():
            for flow, query in list(self._queries.items()):
                with self._as_failure(flow, now):
                    if query.isActive:
                        continue
                    if flow not in self._ended:
                        self._ended.add(flow)
                        self._failures.note(flow, first_line(query.exception()), now)
                    if self._failures.may_try(flow, now):
                        self._begin_anew(flow)
        return self._failures.lasting(now)

    def replace(self, flow: str, why: str, now: float) -> None:
        """End the query of a flow, whose tasks do not live, and begin it anew; their processes are killed.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        with self._talking(), self._as_failure(flow, now):
            self._failures.note(flow, why, now)
            self._ended.add(flow)
            self._queries[flow].stop()
            self._begin_anew(flow)

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except (Py4JNetworkError, ConnectionError):
            raise self._fault(what="has ended: its process is gone") from None

    def lacking_slots(self) -> str | None:
        """Say how many slots a Spark cluster gives, where those are too few for all tasks of all flows at once.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        if self._cluster.master is None or self._spark is None:
            return None
        with self._talking():
            # The context's own count; PySpark has no word for it.
            context = self._spark.sparkContext._jsc.sc()
            profile = context.resourceProfileManager().defaultResourceProfile()
            found = int(context.maxNumConcurrentTasks(profile))
        if found >= self._slots:
            return None
        return f"{self._cluster.master} gives {found} slots, and the flows have {self._slots} tasks, all at once"

    def _await_slots(self) -> None:
        """Wait until all tasks could run at once: a flow with fewer slots would copy a part of its topics."""
        deadline = time.monotonic() + _SLOTS_PATIENCE
        while lacking := self.lacking_slots():
            if time.monotonic() > deadline:
                self.stop()
                remedy = "start workers, raise spark.cores.max under conf, or declare fewer tasks"
                raise EnvironmentFault(Problem("AB321", "Spark", lacking, remedy))
            time.sleep(_TICK)

    @contextlib.contextmanager
    def _as_failure(self, flow: str, now: float) -> Iterator[None]:
        """Take what Spark refuses for a failure of one flow: the others go on."""
        try:
            yield
        except Py4JNetworkError:
            raise
        except (Py4JError, PySparkException) as error:
            self._ended.add(flow)
            self._failures.note(flow, first_line(error), now)

    def _begin_anew(self, flow: str) -> None:
        assert self._spark is not None, "a query was begun by a session"
        self._warn(f"flow {flow}: its Spark query is begun anew: {self._failures.last(flow)}")
        self._queries[flow] = self._begin(self._spark, self._specs[flow])

    def stop(self) -> None:
        """End the queries, Spark and its JVM, so that the process may begin a run anew.

        The tasks must have been told to stop: the ledgers that they yield then are still written.
        """
        try:
            if self._ledgers is not None and not self._await_ledgers():
                self._warn(f"the last ledgers are not written within {_LEDGER_PATIENCE:g} s; see {self.log}")
            for query in self._queries.values():
                query.stop()
            if self._spark is not None:
                self._spark.stop()
        except (Py4JError, PySparkException, ConnectionError):
            return
        finally:
            _end_jvm()

    def _await_ledgers(self) -> bool:
        """Wait until every query has ended one more round: that of the tasks' last words is written by then.

        Rounds that begin after the stop was told are over at once.
        """
        before = {flow: _rounds(query) for flow, query in self._queries.items()}
        deadline = time.monotonic() + _LEDGER_PATIENCE
        while time.monotonic() < deadline:
            if all(not q.isActive or _rounds(q) > before[flow] for flow, q in self._queries.items()):
                return True
            time.sleep(_TICK)
        return False

    def _begin(self, spark: SparkSession, spec: FlowSpec) -> StreamingQuery:
        self._ended.discard(spec.flow.name)
        self.begun[spec.flow.name] += 1
        writer = ledger_frame(spark, spec).writeStream.queryName(spec.flow.name)
        if self._ledgers is None:
            writer = writer.format("noop")
        else:
            # Spark keeps a list of its rounds beside the files, so another run needs another folder.
            path = self._ledgers.folder.absolute() / spec.flow.name / spec.run
            writer = writer.format(self._ledgers.format).option("path", str(path))
        return writer.option("checkpointLocation", str(self._folder / "checkpoints" / spec.flow.name)).start()

    def _local(self) -> dict[str, str]:
        scratch = str(self._folder / "local")
        own = ("spark.driver.host", "spark.driver.bindAddress")
        return {"spark.local.dir": scratch} | dict.fromkeys(own, "127.0.0.1")

    def _settings(self, log_config: Path) -> dict[str, str]:
        return {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            # Spark only starts rounds here: a small heap and the quick compiler save CPU seconds.
            "spark.driver.extraJavaOptions": (
                f"-Dlog4j2.configurationFile=file:{log_config} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
            ),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.speculation": "false",
            "spark.python.worker.reuse": "true",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.streaming.minBatchesToRetain": "2",
            # A query whose thread does not end must not hold the driver up for ever.
            "spark.sql.streaming.stopTimeout": "60s",
            "spark.ui.showConsoleProgress": "false",
        }

    def _fault(self, what: str) -> EnvironmentFault:
        return EnvironmentFault(Problem("AB320", "Spark", what, f"see {self.log}"))


def _end_jvm() -> None:
    """End the JVM, if it is ours: it would use the folder of the run that it was started for in later ones, too."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None or gateway.proc is None:
        return
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    # It ends when its input does.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_JVM_PATIENCE)
    except TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def _kill_children() -> None:
    for task in Path("/proc/self/task").iterdir():
        # A thread or a child may end while it is looked at.
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text(encoding="ascii").split():
                os.kill(int(child), signal.SIGKILL)


def _rounds(query: StreamingQuery) -> int:
    """Return how many rounds of a query are over and written."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def first_line(failure: object) -> str:
    """Return what Spark says of a failure, without the traces."""
    # What Py4J says by itself is which method was called.
    said = failure.java_exception.toString() if isinstance(failure, Py4JJavaError) else failure
    text = str(said).strip()
    return text.splitlines()[0] if text else "no reason given"
