"""A worker of Kafka Connect: connectors that several workers share are one topology, which each of them runs.

The connectors are kept in the workers' cluster. Every worker follows them there, converts them, and applies what comes
of it: the first one that gets the locks does, the others find nothing left to do. Their runs share the flows.
"""

from __future__ import annotations

import signal
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.convert.connect import Connector
from reconciler.convert.conversion import Converted
from reconciler.convert.plugins import COPYING, HEARTBEATS
from reconciler.convert.settings import Settings
from reconciler.declare import load
from reconciler.metrics.collect import Reading
from reconciler.model.base.errors import AnabranchError, Locked, Unreachable
from reconciler.model.base.files import write_private
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.connector import ConnectorRecord, ConnectorState
from reconciler.model.recorded.pauses import PauseScope
from reconciler.observe.connection import Connection
from reconciler.observe.reach import unreachable_among
from reconciler.operate.applying import ApplyOptions, put_in_force
from reconciler.operate.carrying import has_moved_on
from reconciler.operate.reporter import Reporter
from reconciler.operate.watching import Lookout, status_lookout
from reconciler.service.access import Caller
from reconciler.service.audit import AuditLog
from reconciler.service.connect import views
from reconciler.service.connect.hosting import ConnectorView, offsets_stay
from reconciler.service.connect.validation import converted, errors_of, of_record
from reconciler.service.steering import author
from reconciler.state import control
from reconciler.state.connectors import Connectors

_EVERY = 1.0
_LOOK_EVERY = 2.0
_AGAIN_AFTER = 5.0
_BEFORE_AGAIN = 1.0


class WorkerHost:
    """One worker.

    Args:
        cluster: that of the workers, which has the connectors.
        worker: settings of the worker's file.
        name: of the topology that the connectors declare.
        file: where this worker keeps that topology, for `replicate` and other commands.
        audit: where actions are recorded.
        reporter: receives what is applied, and what is wrong.

    Attributes:
        worker_id: host and port of its REST interface.
        is_ready: set once there is something to copy.
        stopping: set when it is to end.
        broken: what has ended it although nothing of the kind is expected.
    """

    def __init__(
        self, cluster: Cluster, worker: Settings, name: str, file: Path, audit: AuditLog, reporter: Reporter
    ) -> None:
        self.worker_id = ""
        self.is_ready = threading.Event()
        self.stopping = threading.Event()
        self.broken: BaseException | None = None
        self._cluster = cluster
        self._worker = worker
        self._name = name
        self._file = file
        self._audit = audit
        self._reporter = reporter
        self._store = Connectors(cluster, name)
        self._lock = threading.Lock()
        self._records: Mapping[str, ConnectorRecord] = {}
        # What was applied last, and what of it is paused.
        self._done: Mapping[str, ConnectorRecord] = {}
        self._paused: set[str] = set()
        self._topology: Topology | None = None
        self._trouble = ""
        # Connectors that were never applied, as a cluster of theirs does not answer.
        self._held: Mapping[str, str] = {}
        self._due = 0.0
        self._reading: Reading | None = None

    # --- what stands behind the interface ----------------------------------------------------------------------------

    def cluster_id(self) -> str:
        """Return the id of the workers' cluster."""
        return Connection(self._cluster).metadata.cluster_id or ""

    def records(self) -> Mapping[str, ConnectorRecord]:
        """Return the connectors by name, as they are kept now."""
        with self._lock:
            self._records = self._store.current()
            return self._records

    def view(self, name: str) -> ConnectorView | None:
        """Return what a connector does; None until it was applied, and reports."""
        record = self._records.get(name)
        if record is None:
            return None
        if record.state == "STOPPED":
            return ConnectorView("STOPPED")
        if name in self._held:
            return ConnectorView("FAILED", trace=self._held[name])
        done = self._done.get(name)
        if self._trouble and (done is None or done.config != record.config):
            return ConnectorView("FAILED", trace=self._trouble)
        # What is changed runs as it was until that is applied.
        if done is None:
            return None
        return views.view(record, self._flows_of(record), self._reading)

    def topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector writes to."""
        reading, kind = self._reading, self._connector(name).kind
        if reading is None or kind not in COPYING or name not in reading.flows:
            return ()
        return list(dict.fromkeys(one.remote for one in reading.flows[name][1].partitions))

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the offset of the last record that was copied, by partition."""
        connector, reading = self._connector(name), self._reading
        if connector.kind == HEARTBEATS:
            return [views.heartbeat_offset(connector.alias("source"), connector.alias("target"))]
        if reading is None or connector.kind not in COPYING or name not in reading.flows:
            return ()
        return views.offsets(reading.flows[name][1])

    def errors(self, record: ConnectorRecord) -> Mapping[str, Sequence[str]]:
        """Return what is wrong with a connector beside the others, by setting."""
        others = [one for one in self.records().values() if one.name != record.name]
        return errors_of(record, others, self._worker, self._name)

    def put(self, record: ConnectorRecord, caller: Caller) -> None:
        """Keep a connector."""
        self._write(record, caller, "configure")

    def remove(self, name: str, caller: Caller) -> None:
        """Forget a connector."""
        with self._audited(caller, "delete", {"connector": name}), self._lock:
            self._store.remove(name)

    def set_state(self, record: ConnectorRecord, state: ConnectorState, caller: Caller) -> None:
        """Have a connector run, pause or stop."""
        self._write(replace(record, state=state), caller, state.lower())

    def _write(self, record: ConnectorRecord, caller: Caller, action: str) -> None:
        with self._audited(caller, action, {"connector": record.name}), self._lock:
            self._store.write(replace(record, by=author(caller), since=time.time()))

    def restart(self, name: str, caller: Caller, *, parked_only: bool) -> None:
        """Have what a connector copies tried again at once."""
        topology = self._topology
        if topology is None:
            return
        names = self._flows_of(self._records[name])
        for flow in topology.flows:
            if flow.name in names:
                with self._audited(caller, "restart", {"connector": name, "flow": flow.name}):
                    scopes = [PauseScope(flow.name)]
                    control.restart(topology.clusters[flow.target], topology.name, scopes, parked_only, author(caller))

    @contextmanager
    def _audited(self, caller: Caller, action: str, about: Mapping[str, str]) -> Iterator[None]:
        self._audit.write(caller.name, action, "begins", about)
        yield
        self._audit.write(caller.name, action, "done", about)

    def alter_offsets(self, name: str, offsets: Sequence[Any] | None, caller: Caller) -> None:
        """Refuse: a copy with its original's offsets goes on at its own end, and nowhere else."""
        del offsets, caller
        raise offsets_stay(name)

    def _connector(self, name: str) -> Connector:
        return of_record(self._records[name])

    def _flows_of(self, record: ConnectorRecord) -> list[str]:
        """Return the names of the flows that a connector copies, or goes with."""
        connector = of_record(record)
        if connector.kind in COPYING:
            return [record.name]
        ends = connector.alias("source"), connector.alias("target")
        flows = self._topology.flows if self._topology is not None else ()
        return [flow.name for flow in flows if flow.enabled and (flow.source, flow.target) == ends]

    # --- what it does by itself --------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Apply what the connectors declare, again and again, until it is to end."""
        while not self.stopping.wait(_EVERY):
            try:
                records = self.records()
                if time.monotonic() >= self._due:
                    self._apply_what_can_be(records)
                    self._pause(records)
            except Locked:
                self._due = time.monotonic() + _BEFORE_AGAIN
            except AnabranchError as error:
                if has_moved_on(error):
                    # Another worker has applied the same connectors meanwhile: what is left is planned again.
                    self._due = time.monotonic() + _BEFORE_AGAIN
                else:
                    self._fail(error)

    def _fail(self, error: AnabranchError) -> None:
        self._due = time.monotonic() + _AGAIN_AFTER
        if self._trouble != str(error):
            self._trouble = str(error)
            self._reporter.warn(error.problems)

    def _apply_what_can_be(self, records: Mapping[str, ConnectorRecord]) -> None:
        """Apply the connectors; new ones whose clusters do not answer do not keep the others from it."""
        try:
            self._apply(records)
        except Unreachable:
            held = self._away(records)
            if not held:
                raise
            self._held = held
            self._due = time.monotonic() + _AGAIN_AFTER
            self._apply({name: one for name, one in records.items() if name not in held})
        else:
            self._held = {}

    def _away(self, records: Mapping[str, ConnectorRecord]) -> dict[str, str]:
        """Return why connectors that were never applied cannot be: a cluster of theirs does not answer."""
        made = converted(records.values(), self._worker, self._name)
        if made is None:
            return {}
        topology = self._loaded(made)
        away = unreachable_among(list(topology.clusters.values()))
        return {
            flow.name: str(away[alias])
            for flow in topology.flows
            for alias in (flow.source, flow.target)
            if alias in away and flow.name not in self._done
        }

    def _loaded(self, made: Converted) -> Topology:
        file = self._file.with_suffix(".next.yaml")
        write_private(file, made.text)
        return load([file])

    def _apply(self, records: Mapping[str, ConnectorRecord]) -> None:
        if _declared(records) == _declared(self._done):
            return
        made = converted(records.values(), self._worker, self._name)
        if made is None:
            # The last flow that ends is declared as stopped: else it would stay in force.
            stopped = [replace(one, state="STOPPED") for one in self._done.values()]
            made = converted(stopped, self._worker, self._name)
        if made is not None:
            topology = self._loaded(made)
            put_in_force(topology, ApplyOptions(), self._reporter)
            # What runs reads it anew, and must find what is in force.
            write_private(self._file, made.text)
            self._topology = topology
            if any(flow.enabled for flow in topology.flows):
                self.is_ready.set()
        self._done, self._trouble = dict(records), ""

    def _pause(self, records: Mapping[str, ConnectorRecord]) -> None:
        """Have flows pause, or go on, as their connectors are to since this worker looked last."""
        topology = self._topology
        if topology is None:
            return
        for flow in topology.flows:
            record = records.get(flow.name)
            if record is None or not flow.enabled:
                continue
            wanted, cluster = record.state == "PAUSED", topology.clusters[flow.target]
            if wanted != (flow.name in self._paused):
                tell = control.pause if wanted else control.resume
                tell(cluster, topology.name, [PauseScope(flow.name)], record.by)
                (self._paused.add if wanted else self._paused.discard)(flow.name)

    def watch(self) -> None:
        """Read what the flows report, again and again, until it is to end."""
        lookout: Lookout | None = None
        watched: Topology | None = None
        while not self.stopping.is_set():
            topology = self._topology
            try:
                if topology is not watched and topology is not None:
                    if lookout is not None:
                        lookout.close()
                    lookout, watched = status_lookout(topology, ()), topology
                if lookout is not None and watched is not None:
                    self._reading = Reading.of(watched, lookout.look())
            except AnabranchError as error:
                self._reporter.warn(error.problems)
            self.stopping.wait(_LOOK_EVERY)
        if lookout is not None:
            lookout.close()

    def begin(self) -> Callable[[], None]:
        """Begin to follow and to watch; return what ends both.

        Raises:
            AnabranchError: the workers' cluster does not answer, or refuses.
        """
        self.records()
        threads = [threading.Thread(target=self._whole, args=[work], daemon=True) for work in (self.follow, self.watch)]
        for thread in threads:
            thread.start()

        def end() -> None:
            """End both; raise what has ended one of them."""
            self.stopping.set()
            for thread in threads:
                thread.join()
            self._store.close()
            if self.broken is not None:
                raise self.broken

        return end

    def _whole(self, work: Callable[[], None]) -> None:
        """Do one part of a worker's work; where it ends by a fault of ours the whole worker ends, as if stopped.

        Half of it would answer requests, and never carry them out.
        """
        try:
            work()
        except BaseException as error:
            self.broken = error
            self.stopping.set()
            # The main thread may wait for connectors, or copy: its handler of SIGTERM ends either in order.
            interrupt_main(signal.SIGTERM)


def _declared(records: Mapping[str, ConnectorRecord]) -> dict[str, tuple[Mapping[str, str], bool]]:
    """Return what of connectors is declared; a pause is not."""
    return {name: (one.config, one.state == "STOPPED") for name, one in records.items()}
