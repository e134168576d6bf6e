"""Spark itself: a JVM with a Spark context, started in a thread of its own, and stopped.

`session` runs flows in one, `jobs` work that ends. Spark's log goes to a file, never to the terminal.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import TimeoutExpired

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import make_private, open_private, write_private
from reconciler.model.connection import hosts
from reconciler.model.declared.datacenter import Spark
from reconciler.replicator.spark import class_archive
from reconciler.replicator.spark.run_folders import LOG

# A task that dies is started again this often; `local[n]` alone would end a query with the first dead worker.
_TASK_FAILURES = 8
_JVM_PATIENCE = 5.0
# How long the executors of a Spark cluster may take to be there.
_SLOTS_PATIENCE = 30.0
_NEW_APPLICATION_AFTER = 10.0
_TICK = 0.1
_LOCAL_IP = "SPARK_LOCAL_IP"
_ENDED = "has ended: its process is gone"
# How Python's trace begins, in the message of a task's failure.
_TRACE = "Traceback (most recent call last):"
_LOG_CONFIG = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
"""


class SparkEngine:
    """A JVM with a Spark context; there is one at a time in a process.

    Args:
        slots: how many tasks run at the same time, all of them at once.
        folder: for Spark's log and files; it must exist.
        warn: called with each problem.
        cluster: where Spark runs; by default on this machine.

    Attributes:
        log: Spark's log.
        java_options: of the JVM, beside those that every start has.
    """

    def __init__(self, slots: int, folder: Path, warn: Callable[[str], None], cluster: Spark | None = None) -> None:
        self.log = folder / LOG
        self.java_options = class_archive.taking()
        self._slots = slots
        self._folder = folder
        self._warn = warn
        self._cluster = cluster or Spark()
        self._opening = threading.Thread(target=self._open, name="spark", daemon=True)
        self._trouble: Exception | None = None
        self._context: SparkContext | None = None
        self._conf = SparkConf(loadDefaults=False)

    def open(self) -> None:
        """Begin to start Spark and return at once: the start takes several seconds."""
        self._opening.start()

    def start(self) -> None:
        """Wait for Spark, and begin its work.

        Raises:
            EnvironmentFault: AB320, Spark does not start; AB321, it has too few slots; AB309, its cluster may not be
                connected to from here.
        """
        self._opening.join()
        try:
            if self._trouble is not None:
                raise self._trouble
            self._await_slots()
            self._begin()
        except (Py4JError, PySparkException, OSError, RuntimeError) as error:
            raise self._fault(what=f"does not start: {error}") from None

    def abandon(self) -> None:
        """Abort the start, and end the JVM, which is the only child of this process.

        PySpark removes the folder through which the JVM would report; a JVM that finds it gone never ends.
        """
        # The JVM may not have begun yet.
        while self._opening.is_alive():
            _kill_children()
            self._opening.join(_TICK)
        _kill_children()
        _end_jvm()

    def stop(self, patience: float = _JVM_PATIENCE) -> None:
        """Stop Spark and its JVM, so that the process may start another one.

        Args:
            patience: seconds until a JVM that has not ended is killed.
        """
        try:
            self._end()
            if self._context is not None:
                _end_counting(self._context)
                self._context.stop()
        except (Py4JError, PySparkException, ConnectionError):
            return
        finally:
            _end_jvm(patience)

    def check_java(self) -> None:
        """Check that the JVM is there, where this process has started it.

        Raises:
            EnvironmentFault: AB320, it has ended.
        """
        gateway = SparkContext._gateway
        if gateway is not None and gateway.proc is not None and gateway.proc.poll() is not None:
            raise self._fault(what=_ENDED)

    def lacking_slots(self) -> str | None:
        """Return how many slots a Spark cluster gives, where those are too few for all tasks; else None.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        found = self._count_slots()
        return None if found >= self._slots else self._lacking(found)

    def _lacking(self, found: int) -> str:
        return f"{self._cluster.address} gives {found} slots, and there are {self._slots} tasks, all at once"

    def _count_slots(self) -> int:
        """Return how many slots there are; on this machine as many as were asked for."""
        if self._cluster.master is None or self._context is None:
            return self._slots
        with self._talking():
            # The context's own count; PySpark has no method for it.
            context = self._context._jsc.sc()
            profile = context.resourceProfileManager().defaultResourceProfile()
            return int(context.maxNumConcurrentTasks(profile))

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin the work, once Spark runs."""

    def _end(self) -> None:
        """Stop the work, before Spark stops."""

    # --- its start ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            self._context = self._made()
        except Exception as error:
            # Raised in `start`, which waits for it.
            self._trouble = error

    def _made(self) -> SparkContext:
        settings = dict(self._cluster.conf)
        # Workers must run this very interpreter, or they find neither the package nor its dependencies.
        os.environ["PYSPARK_PYTHON"] = settings.pop("spark.pyspark.python", sys.executable)
        # Jobs are grouped by the thread that submits them, which must be the same on both sides.
        os.environ["PYSPARK_PIN_THREAD"] = "true"
        config = self._folder / "log4j2.properties"
        write_private(config, _LOG_CONFIG.format(path=self.log))
        address = self._cluster.address
        if address is None:
            master = f"local[{self._slots},{_TASK_FAILURES}]"
            settings = self._local() | settings
        else:
            master = address
            hosts.check(f"Spark cluster {master}", master.removeprefix("spark://").split(","))
            settings = {"spark.task.maxFailures": str(_TASK_FAILURES), "spark.cores.max": str(self._slots)} | settings
        named = {"spark.app.name": "anabranch", "spark.master": master}
        conf = SparkConf(loadDefaults=False).setAll(list((named | self._settings(config) | settings).items()))
        if address is not None or _LOCAL_IP in os.environ:
            return self._started(conf)
        os.environ[_LOCAL_IP] = "127.0.0.1"
        try:
            return self._started(conf)
        finally:
            # The next run of this process may use a cluster.
            del os.environ[_LOCAL_IP]

    def _started(self, conf: SparkConf) -> SparkContext:
        """Start the JVM with its stderr in the log: on a terminal it would write into what is drawn there."""
        if SparkContext._gateway is None:
            with open_private(self.log, "a") as log:
                gateway = launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway)
        self._conf = conf
        return SparkContext.getOrCreate(conf)

    def _local(self) -> dict[str, str]:
        """Return the settings for this machine, unless `conf` overrides them.

        Other users of the machine can connect to what Spark listens on (the driver's RPC and the block manager), but
        get nothing without a secret. Here Spark makes the secret itself, anew for each start
        (https://spark.apache.org/docs/latest/security.html). Files in its folder are readable by this user alone, so
        they need not be encrypted as well.
        """
        scratch = self._folder / "local"
        make_private(scratch)
        own = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        closed = dict.fromkeys(("spark.authenticate", "spark.network.crypto.enabled"), "true")
        # The older handshake and cipher serve peers of other releases.
        newest = {
            "spark.network.crypto.authEngineVersion": "2",
            "spark.network.crypto.saslFallback": "false",
            "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        }
        return {"spark.local.dir": str(scratch)} | own | closed | newest

    def _await_slots(self) -> None:
        """Wait until all tasks can run at once: a flow with fewer slots would copy a part of its topics."""
        deadline, some_since, is_new = time.monotonic() + _SLOTS_PATIENCE, math.inf, False
        while (found := self._count_slots()) < self._slots:
            if (now := time.monotonic()) > deadline:
                self.stop()
                remedy = "start workers, raise spark.cores.max under conf, or declare fewer tasks"
                raise EnvironmentFault(Problem("AB321", "Spark", self._lacking(found), remedy))
            some_since = min(some_since, now) if found else math.inf
            if now - some_since > _NEW_APPLICATION_AFTER and not is_new:
                # A standalone cluster gives an application one executor on each worker, with the cores that are free
                # then: those that the run before still had, it would never get.
                deadline, is_new = now + _SLOTS_PATIENCE, True
                self._begin_application()
            time.sleep(_TICK)

    def _begin_application(self) -> None:
        """End the application, and begin another one in the same JVM."""
        assert self._context is not None, "it was started"
        self._context.stop()
        self._context = SparkContext(conf=self._conf)

    def _settings(self, log_config: Path) -> dict[str, str]:
        return {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            # Spark only starts rounds here: a small heap and the quick compiler save CPU seconds.
            "spark.driver.extraJavaOptions": (
                # Spark splits this at spaces, which an address has none of.
                f"-Dlog4j2.configurationFile={log_config.absolute().as_uri()} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
                + self.java_options
            ),
            "spark.speculation": "false",
            "spark.python.worker.reuse": "true",
            # What tasks import is imported once, before the workers are forked.
            "spark.python.daemon.module": "reconciler.replicator.spark.daemon",
            "spark.ui.showConsoleProgress": "false",
        }

    # --- errors ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except (Py4JNetworkError, ConnectionError):
            raise self._fault(what=_ENDED) from None

    def _fault(self, what: str) -> EnvironmentFault:
        return EnvironmentFault(Problem("AB320", "Spark", what, f"see {self.log}"))


def _end_counting(context: SparkContext) -> None:
    """Let the accumulator thread end by itself: PySpark would wait a second for it."""
    server = context._accumulatorServer
    if server is None:
        return
    # No accumulators are used, so its connection may end in any way.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    context._accumulatorServer = None  # type: ignore[assignment]
    threading.Thread(target=server.shutdown, daemon=True).start()


def _end_jvm(patience: float = _JVM_PATIENCE) -> None:
    """End the JVM, if this process started it: it would use its run's folder in later runs, too."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    # For PySpark a killed JVM still runs.
    SparkContext._active_spark_context = None
    if gateway is None or gateway.proc is None:
        return
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    # It ends when its input does.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(patience)
    except TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def _kill_children() -> None:
    for task in Path("/proc/self/task").iterdir():
        # A thread or a child may end in between.
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text(encoding="ascii").split():
                os.kill(int(child), signal.SIGKILL)


def first_line(failure: object) -> str:
    """Return Spark's message about a failure in one line: without traces, but with the error at the end of Python's."""
    # Py4J's own message only names the method that was called.
    said = failure.java_exception.toString() if isinstance(failure, Py4JJavaError) else failure
    lines = str(said or "").strip().splitlines()
    if not lines:
        return "no reason given"
    first = lines[0].removesuffix(_TRACE)
    if first == lines[0]:
        return first
    # Frames of a trace are indented; what was raised is the line behind them.
    return first + next((line for line in lines[1:] if line and not line[0].isspace()), "no reason given")
