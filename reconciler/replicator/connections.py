"""What a task keeps open between its rounds: connections, and what it knows from earlier rounds. `task` owns it."""

from __future__ import annotations

import time

from reconciler.model.flow import Flow
from reconciler.model.spec import FlowSpec
from reconciler.replicator.lease import BEAT_TIMEOUT, ON_THE_WAY, Lease, group_of
from reconciler.replicator.memory import Memory
from reconciler.replicator.meter import Meters, Totals
from reconciler.replicator.place import Place, ReadUpto
from reconciler.replicator.wire import GroupWire, Loop, Wire
from reconciler.state import process
from reconciler.state.control import Listener
from reconciler.state.copies import Copies
from reconciler.state.status import StatusWriter

# Decides how soon a broken connection is noticed, and with it how long a request may stay in doubt.
_REQUEST_TIMEOUT = 4.0


class Connections:
    """All that a task keeps open between its rounds.

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
        self._client = client = f"anabranch-{spec.flow.name}-{task}"
        self.listener = Listener(spec.target, spec.run, spec.flow.name)
        self.status = StatusWriter(spec.target, spec.digest)
        self.totals = Totals()
        self.meters = Meters()
        # How far each source's log was read in earlier rounds: identical offsets store no position that could say it.
        self.read: dict[Place, ReadUpto] = {}
        self.loop = Loop()
        group = group_of(spec.topology, spec.flow.name)
        member = f"{client}-lease@{process.own_name()}"
        beats, joins = (GroupWire(self.loop, spec.target, member, BEAT_TIMEOUT) for _ in range(2))
        self.lease = Lease(self.loop, beats, joins, group, spec.run, self._cut)
        self._fetch: dict[tuple[bool, int], Wire] = {}
        self.ask_source = Wire(self.loop, spec.source, f"{client}-ask", _REQUEST_TIMEOUT)
        # Everything that writes to remote partitions goes over these two.
        self.produce = Wire(self.loop, spec.target, client, _REQUEST_TIMEOUT, self.lease.is_valid)
        self.ask_target = Wire(self.loop, spec.target, f"{client}-ask", _REQUEST_TIMEOUT, self.lease.is_valid)
        self._wires = (beats, joins, self.ask_source, self.produce, self.ask_target)
        self.memory = Memory(self.loop, Copies(spec.target), spec.flow.name)

    def bulk(self, flow: Flow) -> tuple[Wire, ...]:
        """Return what records of a flow go over."""
        fetch = [self.fetch(committed=True)]
        if flow.isolation_level != "read_committed":
            fetch.append(self.fetch(committed=False))
        return self.produce, *fetch

    def fetch(self, committed: bool, lane: int = 0) -> Wire:
        """Return what to read over. A long poll holds a connection up: who reads open transactions has his own."""
        key = committed, lane
        if key not in self._fetch:
            name = self._client if committed else f"{self._client}-all"
            self._fetch[key] = Wire(self.loop, self._source, name, _REQUEST_TIMEOUT)
        return self._fetch[key]

    def close(self, in_doubt: bool = False) -> None:
        """Give the lease back and close everything.

        Args:
            in_doubt: whether requests may be under way that nobody waits for: then nobody else may write before they
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

    def _cut(self, why: str) -> None:
        for wire in (self.produce, self.ask_target):
            wire.drop(why)
