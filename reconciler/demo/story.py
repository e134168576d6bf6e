"""The demo's story: clusters, orders, plan, apply, replicate, proof. `cli/trying/demo` prints it; nothing is simulated.

Clusters are embedded, everything else is what a user runs: the example file, the commands, Spark.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reconciler import declare
from reconciler.declare.documents.resources import examples
from reconciler.declare.rewrite import with_bootstraps
from reconciler.demo.compare import Comparison, compare
from reconciler.demo.orders import Shop, Traffic, create_topics
from reconciler.embedded import EmbeddedCluster, start_all, stop_all
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.tasks.status import TaskStatus
from reconciler.state.status import StatusReader

PATTERNS = ("fan-out", "aggregation", "active-active", "xdcr")
TOPICS = ("orders", "payments", "users")

_START_PATIENCE = 180.0
_CATCH_UP_PATIENCE = 120.0
_STOP_PATIENCE = 30.0
_TICK = 0.25
_COMPARE_AT_ONCE = 6
_SETTLED_LOOKS = 2
_BETWEEN_LOOKS = 1.1

Seen = Callable[[Sequence[TaskStatus]], None]


class Story:
    """One demo, from a pattern's example to the proof. Use it as a context manager: leaving it ends everything.

    Args:
        pattern: one of `PATTERNS`.
    """

    def __init__(self, pattern: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="anabranch-demo-")
        self._example = examples()[pattern].read_text(encoding="utf-8")
        self.file = Path(self._folder.name) / f"{pattern}.yaml"
        self.file.write_text(self._example, encoding="utf-8")
        self.topology: Topology = declare.load((self.file,))
        self._clusters: dict[str, EmbeddedCluster] = {}
        self._traffic: Traffic | None = None
        self._replicator: subprocess.Popen[bytes] | None = None
        self._readers: list[StatusReader] = []

    def __enter__(self) -> Story:
        return self

    def __exit__(self, *_: object) -> None:
        if self._traffic is not None:
            self._traffic.stop()
        if self._replicator is not None and self._replicator.poll() is None:
            self._replicator.kill()
            self._replicator.wait()
        for reader in self._readers:
            reader.close()
        stop_all(tuple(self._clusters.values()))
        self._folder.cleanup()

    @property
    def log(self) -> Path:
        """The file of the replicator's log."""
        return Path(self._folder.name) / "replicate.log"

    def start_clusters(self) -> None:
        """Start an embedded cluster for each declared one, and write the file with their addresses.

        Raises:
            EnvironmentFault: AB301 to AB305, Java, the jars, a broker or ports are missing.
        """
        self._clusters = {alias: EmbeddedCluster(alias) for alias in self.topology.clusters}
        start_all(tuple(self._clusters.values()))
        bootstraps = {alias: cluster.bootstrap for alias, cluster in self._clusters.items()}
        self.file.write_text(with_bootstraps(self._example, bootstraps), encoding="utf-8")
        self.topology = declare.load((self.file,))

    def open_shops(self) -> list[Shop]:
        """Create the shops' topics and let orders come in for as long as the story runs.

        Raises:
            EnvironmentFault: AB341, a cluster refuses a topic.
        """
        shops = []
        for alias, cluster in self.topology.clusters.items():
            flows = [flow for flow in self.topology.flows if flow.source == alias]
            topics = tuple(t for t in TOPICS if any(f.takes(t, self.topology.aliases) for f in flows))
            if topics:
                shops.append(Shop(cluster, topics))
        for shop in shops:
            create_topics(shop)
        self._traffic = Traffic(shops)
        self._traffic.start()
        return shops

    def start_replicator(self) -> None:
        """Start `anabranch replicate` on the file."""
        command = [sys.executable, "-m", "reconciler.cli.main", "replicate", str(self.file)]
        command += ["--state-dir", str(Path(self._folder.name) / "state")]
        with self.log.open("wb") as log:
            self._replicator = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._readers = [StatusReader(self.topology.clusters[alias], self.topology.name) for alias in self._targets()]

    def watch(self, seconds: float, seen: Seen) -> None:
        """Show the status of the tasks until all of them have run for `seconds`.

        Raises:
            EnvironmentFault: AB342, the replicator has ended, or reports nothing.
        """
        deadline = time.monotonic() + _START_PATIENCE
        end: float | None = None
        before: object = None
        flows = {flow.name for flow in self.topology.flows_into(self._targets())}
        while end is None or time.monotonic() < end:
            statuses = self._look(seen)
            if end is None and {status.flow for status in statuses if status.records} >= flows:
                end = time.monotonic() + seconds
            # Where Spark does not start, or a flow fails, the replicator reports it itself; a busy machine is slow.
            now = sorted((status.flow, status.task, status.records) for status in statuses)
            if now != before or any(status.starting for status in statuses):
                before, deadline = now, time.monotonic() + _START_PATIENCE
            if end is None and time.monotonic() > deadline:
                raise self._fault(what=f"not every flow copied something, and nothing moves for {_START_PATIENCE:g} s")
            time.sleep(_TICK)

    def finish(self, seen: Seen) -> None:
        """Let no more orders come in, wait until everything is copied, and end the replicator in order.

        Raises:
            EnvironmentFault: AB342, something is never copied, or the replicator does not end well.
        """
        assert self._traffic is not None, "the shops are open"
        self._traffic.stop()
        deadline = time.monotonic() + _CATCH_UP_PATIENCE
        settled = 0
        # Remote topics are copied on, so the ends themselves move a little longer: still twice, a moment apart.
        before: object = None
        while settled < _SETTLED_LOOKS:
            statuses = self._look(seen)
            partitions = [partition for status in statuses for partition in status.partitions]
            stand = [(partition.position, partition.end) for partition in partitions]
            done = bool(partitions) and all(partition.lag == 0 for partition in partitions)
            settled = settled + 1 if done and stand == before else 0
            before = stand
            if time.monotonic() > deadline:
                raise self._fault(what=f"the copies did not catch up within {_CATCH_UP_PATIENCE:g} s")
            time.sleep(_BETWEEN_LOOKS)
        self._end_replicator()

    def prove(self) -> list[Comparison]:
        """Compare each original with each of its copies, record by record.

        Raises:
            EnvironmentFault: AB340, one of them cannot be read.
        """
        clusters, aliases = self.topology.clusters, self.topology.aliases
        with ThreadPoolExecutor(_COMPARE_AT_ONCE) as pool:
            pending = [
                pool.submit(compare, clusters[flow.source], topic, clusters[flow.target], flow.remote_topic(topic))
                for flow in self.topology.flows_into(self._targets())
                for topic in TOPICS
                if flow.takes(topic, aliases)
            ]
            return [found.result() for found in pending]

    def _targets(self) -> list[str]:
        return sorted({flow.target for flow in self.topology.flows if flow.enabled})

    def _look(self, seen: Seen) -> list[TaskStatus]:
        assert self._replicator is not None, "the replicator was started"
        if self._replicator.poll() is not None:
            raise self._fault(what=f"it ended with exit code {self._replicator.returncode}")
        statuses = [status for reader in self._readers for status in reader.current()]
        seen(statuses)
        return statuses

    def _end_replicator(self) -> None:
        assert self._replicator is not None, "the replicator was started"
        self._replicator.send_signal(signal.SIGTERM)
        try:
            code = self._replicator.wait(_STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            raise self._fault(what=f"it did not end within {_STOP_PATIENCE:g} s of SIGTERM") from None
        if code != 0:
            raise self._fault(what=f"it ended with exit code {code}")

    def _fault(self, what: str) -> EnvironmentFault:
        tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        load, processors = os.getloadavg()[0], os.cpu_count() or 1
        message = f"{what} (load {load:.0f} on {processors} processors); its last words are below"
        remedy = f"see its logs, which are kept in {self._kept_logs()}"
        return EnvironmentFault(Problem("AB342", "anabranch replicate", message, remedy), tail)

    def _kept_logs(self) -> Path:
        """Copy the logs out of the demo's folder, which is deleted; return where they are."""
        kept = Path(tempfile.mkdtemp(prefix="anabranch-demo-logs-"))
        folder = Path(self._folder.name)
        for log in sorted(folder.rglob("*.log")):
            with contextlib.suppress(OSError):
                shutil.copy(log, kept / "-".join(log.relative_to(folder).parts))
        return kept
