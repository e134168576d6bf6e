"""What a task keeps between its rounds: connections, figures, and what earlier rounds have read. `task` owns it."""

from __future__ import annotations

import time
from collections.abc import Callable

from reconciler.model.declared.clients import LineSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import TaskStatus
from reconciler.replicator.copy.copy_records import CopyRecords
from reconciler.replicator.lease.lease import BEAT_TIMEOUT, ON_THE_WAY, Lease, group_of
from reconciler.replicator.partition.place import ReadPosition
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.task.metrics import TaskMetrics, Totals
from reconciler.replicator.task.shared_journals import SharedJournals
from reconciler.state.journals import process
from reconciler.state.listener import Listener
from reconciler.wire import GroupWire, Loop, Wire


class Connections:
    """The connections and state that a task keeps between its rounds; journals are shared with others of its process.

    Args:
        spec: the flow.
        task: number of the task.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB304, a secret or the rack cannot be resolved.
    """

    def __init__(self, spec: FlowSpec, task: int) -> None:
        self.rack = spec.source.client_rack()
        self._source = spec.source
        self._largest_batch = spec.flow.largest_batch
        self._client = f"anabranch-{spec.flow.name}-{task}"
        writes = spec.target.clients.producer
        self._journals = SharedJournals.hold(spec.target, spec.topology, spec.digest)
        try:
            self.listener = Listener(spec.target, spec.seal, self._journals.commands)
        except BaseException:
            self._journals.release()
            raise
        self.status = self._journals.status
        # The newest status of a round that had partitions open.
        self.last_status: TaskStatus | None = None
        self.totals = Totals()
        self.since = time.time()
        self.metrics = TaskMetrics()
        # How far each source's log was read in earlier rounds: identical offsets store no position for that.
        self.read: dict[Place, ReadPosition] = {}
        self.loop = Loop()
        group = group_of(spec.topology, spec.flow.name)
        # A lease has time-outs of its own: those declared for requests must not make it run out.
        member = f"{writes.client_id or self._client}-lease@{process.own_name()}"
        beats, joins = (GroupWire(self.loop, spec.target, member, BEAT_TIMEOUT) for _ in range(2))
        self.lease = Lease(self.loop, beats, joins, group, spec.run, self._cut)
        self._fetch: dict[tuple[bool, int], Wire] = {}
        self.ask_source = self._wire(spec.source, spec.source.clients.consumer, "-ask")
        # Everything that writes to remote partitions goes over these three.
        self.produce = self._wire(spec.target, writes, "", self.lease.is_valid)
        # Connected by a sender under load.
        self.produce_more = self._wire(spec.target, writes, "", self.lease.is_valid)
        self.ask_target = self._wire(spec.target, writes, "-ask", self.lease.is_valid)
        self._writing = (self.produce, self.produce_more, self.ask_target)
        self._wires = (beats, joins, self.ask_source, *self._writing)
        self.memory = CopyRecords(self.loop, self._journals.copies, spec.flow.name)

    def fetches(self, flow: Flow) -> tuple[Wire, ...]:
        """Return the connections over which a flow's records are read."""
        fetch = [self.fetch(committed=True)]
        if flow.isolation_level != "read_committed":
            fetch.append(self.fetch(committed=False))
        return tuple(fetch)

    def fetch(self, committed: bool, lane: int = 0) -> Wire:
        """Return the connection for fetches. A long poll blocks it, so `read_uncommitted` fetches have their own."""
        key = committed, lane
        if key not in self._fetch:
            self._fetch[key] = self._wire(self._source, self._source.clients.consumer, "" if committed else "-all")
        return self._fetch[key]

    def _wire(self, cluster: Cluster, line: LineSettings, use: str, may_send: Callable[[], bool] | None = None) -> Wire:
        """Return connections to a cluster; a declared client id is sent unchanged, as quotas match whole ids alone."""
        client = line.client_id or f"{self._client}{use}"
        wire = Wire(self.loop, cluster, client, line.request_timeout_ms / 1000, may_send, line)
        wire.allow(self._largest_batch)
        return wire

    def close(self, in_doubt: bool = False) -> None:
        """Give the lease back and close everything.

        Args:
            in_doubt: whether requests may be in flight that no part waits for: then no other task may write before they
                have arrived.
        """
        if in_doubt:
            self._cut("the task failed")
            time.sleep(ON_THE_WAY)
        self.loop.run(self.lease.leave)
        for wire in (*self._wires, *self._fetch.values()):
            wire.close()
        self.loop.close()
        self.memory.close()
        self.listener.close()
        self._journals.release()

    def _cut(self, why: str) -> None:
        for wire in self._writing:
            wire.drop(why)
