"""Kafka Connect's interface over flows that are declared in files: read and steered as there, and not reconfigured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from reconciler.convert.plugins import CHECKPOINTS, HEARTBEATS, SOURCE
from reconciler.model.declared.flow import Flow
from reconciler.model.recorded.connector import ConnectorRecord, ConnectorState
from reconciler.observe.connection import Connection
from reconciler.service.access import Caller
from reconciler.service.connect import views
from reconciler.service.connect.hosting import ConnectorView, ConnectRefused
from reconciler.service.context import ServiceContext
from reconciler.service.kip382 import config_of, has_connector
from reconciler.service.steering import steer

_BESIDE = {CHECKPOINTS: "-checkpoint", HEARTBEATS: "-heartbeat"}
_DECLARED = (
    "{} is declared in the topology files, and not changed here: change the file, have it reviewed, and apply it"
)


class DeclaredHost:
    """The flows of a topology as connectors: each as one that copies, and those that go with it.

    Args:
        context: the service.
    """

    def __init__(self, context: ServiceContext) -> None:
        self.worker_id = "serve"
        self._context = context
        # The files are read once, at the start.
        self._connectors = {
            flow.name + _BESIDE.get(kind, ""): (flow, kind)
            for flow in context.topology.flows
            for kind in (SOURCE, CHECKPOINTS, HEARTBEATS)
            if has_connector(flow, kind)
        }

    def cluster_id(self) -> str:
        """Return the id of the first target."""
        topology = self._context.topology
        return Connection(topology.clusters[topology.flows[0].target]).metadata.cluster_id or ""

    def records(self) -> Mapping[str, ConnectorRecord]:
        """Return the connectors by name."""
        return {name: self._record(name) for name in self._connectors}

    def view(self, name: str) -> ConnectorView | None:
        """Return what a connector does."""
        if name not in self._connectors:
            return None
        record = self._record(name)
        if record.state == "STOPPED":
            return ConnectorView("STOPPED")
        return views.view(record, [self._flow(name).name], self._context.reading())

    def topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector writes to."""
        if self._is_beside(name):
            return ()
        return list(dict.fromkeys(one.remote for one in self._context.summary(name).partitions))

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the offset of the last record that was copied, by partition."""
        flow, kind = self._connectors[name]
        if kind == HEARTBEATS:
            return [views.heartbeat_offset(flow.source, flow.target)]
        return () if self._is_beside(name) else views.offsets(self._context.summary(name))

    def errors(self, record: ConnectorRecord) -> Mapping[str, Sequence[str]]:
        """Return nothing: no configuration is taken."""
        del record
        return {}

    def put(self, record: ConnectorRecord, caller: Caller) -> None:
        """Refuse."""
        self._refuse(record.name, caller, "configure")

    def remove(self, name: str, caller: Caller) -> None:
        """Refuse."""
        self._refuse(name, caller, "delete")

    def set_state(self, record: ConnectorRecord, state: ConnectorState, caller: Caller) -> None:
        """Have a flow pause or go on; one that is to stop is declared so."""
        if state == "STOPPED" or record.state == "STOPPED":
            self._refuse(record.name, caller, state.lower())
        if self._is_beside(record.name):
            message = f"{record.name} has no state of its own: it goes with {self._flow(record.name).name}"
            raise ConnectRefused(HTTPStatus.CONFLICT, message)
        steer(self._context, caller, "pause" if state == "PAUSED" else "resume", record.name, ())

    def restart(self, name: str, caller: Caller, *, parked_only: bool) -> None:
        """Have what is parked tried again at once; what runs is left alone."""
        del parked_only
        steer(self._context, caller, "restart", self._flow(name).name, ())

    def alter_offsets(self, name: str, offsets: Sequence[Any] | None, caller: Caller) -> None:
        """Refuse."""
        del offsets
        self._refuse(name, caller, "offsets")

    def _refuse(self, name: str, caller: Caller, action: str) -> None:
        self._context.audit.write(caller.name, action, "refused", {"connector": name})
        raise ConnectRefused(HTTPStatus.CONFLICT, _DECLARED.format(name))

    def _state(self, flow: Flow) -> ConnectorState:
        if not flow.enabled:
            return "STOPPED"
        reading = self._context.exporter.reading
        known = reading.flows.get(flow.name) if reading is not None else None
        return "PAUSED" if known is not None and known[1].state == "paused" else "RUNNING"

    def _record(self, name: str) -> ConnectorRecord:
        flow, kind = self._connectors[name]
        return ConnectorRecord(name, config_of(flow, kind) | {"name": name}, self._state(flow))

    def _is_beside(self, name: str) -> bool:
        return self._connectors[name][1] != SOURCE

    def _flow(self, name: str) -> Flow:
        """Return the flow of a connector that is there."""
        return self._connectors[name][0]
