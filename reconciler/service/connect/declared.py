"""Kafka Connect's interface over flows that are declared in files: what is changed here holds until the next apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from reconciler.convert.plugins import CHECKPOINTS, HEARTBEATS, SOURCE
from reconciler.model.base.errors import AnabranchError, DeclaredInputError
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.connector import ConnectorRecord, ConnectorState
from reconciler.observe.connection import Connection
from reconciler.service.access import Caller
from reconciler.service.connect import overriding, views
from reconciler.service.connect.configs import CONNECTORS, connector_name, has_connector
from reconciler.service.connect.hosting import ConnectorView, ConnectRefused, offsets_stay
from reconciler.service.connect.validation import by_setting, errors_of_itself, in_words
from reconciler.service.context import ServiceContext
from reconciler.service.steering import author, steer

_DECLARED = (
    "{} is declared in the topology files, and not changed here, as the service has --no-overrides: change the file, "
    "have it reviewed, and apply it"
)


class DeclaredHost:
    """The flows of a topology as connectors: each as one that copies, and those that go with it.

    Args:
        context: the service.
    """

    def __init__(self, context: ServiceContext) -> None:
        self.worker_id = "serve"
        self._context = context

    def cluster_id(self) -> str:
        """Return the id of the first target."""
        topology = self._context.topology
        return Connection(topology.clusters[topology.flows[0].target]).metadata.cluster_id or ""

    def records(self) -> Mapping[str, ConnectorRecord]:
        """Return the connectors by name."""
        return {name: self._record(name, flow, kind) for name, (flow, kind) in self._connectors().items()}

    def view(self, name: str) -> ConnectorView | None:
        """Return what a connector does."""
        found = self._connectors().get(name)
        if found is None:
            return None
        record = self._record(name, *found)
        if record.state == "STOPPED":
            return ConnectorView("STOPPED")
        return views.view(record, [found[0].name], self._context.reading())

    def topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector writes to."""
        flow, kind = self._connectors()[name]
        if kind != SOURCE or not flow.enabled:
            return ()
        return list(dict.fromkeys(one.remote for one in self._context.summary(name).partitions))

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the offset of the last record that was copied, by partition."""
        flow, kind = self._connectors()[name]
        if kind == HEARTBEATS:
            return [views.heartbeat_offset(flow.source, flow.target)]
        return () if kind == CHECKPOINTS else views.offsets(self._context.summary(name))

    def errors(self, record: ConnectorRecord) -> Mapping[str, Sequence[str]]:
        """Return what is wrong with a connector, by setting."""
        errors = errors_of_itself(record)
        if not errors:
            try:
                overriding.override_of(self._context.topology, record)
            except DeclaredInputError as error:
                return by_setting(error, record.name)
        return errors

    def put(self, record: ConnectorRecord, caller: Caller) -> None:
        """Change a flow, or begin one."""
        is_new = record.name not in self._connectors()
        self._change(caller, "configure", record.name, lambda topology: overriding.override_of(topology, record))
        if is_new and record.state == "PAUSED":
            steer(self._context, caller, "pause", record.name, ())

    def remove(self, name: str, caller: Caller) -> None:
        """End a flow, or what goes with it."""
        flow, kind = self._connectors()[name]
        self._change(
            caller, "delete", name, lambda topology: overriding.without(topology, _as_it_is(topology, flow), kind)
        )

    def set_state(self, record: ConnectorRecord, state: ConnectorState, caller: Caller) -> None:
        """Have a flow pause, go on or stop."""
        flow, kind = self._connectors()[record.name]
        if kind != SOURCE:
            message = f"{record.name} has no state of its own: it goes with {flow.name}"
            raise ConnectRefused(HTTPStatus.CONFLICT, message)
        if "STOPPED" in (state, record.state):
            runs = state != "STOPPED"
            action = "resume" if runs else "stop"
            self._change(caller, action, record.name, lambda topology: overriding.enabled(topology, flow, runs))
        if state != "STOPPED":
            steer(self._context, caller, "pause" if state == "PAUSED" else "resume", record.name, ())

    def restart(self, name: str, caller: Caller, *, parked_only: bool) -> None:
        """Have what is parked tried again at once; what runs is left alone."""
        del parked_only
        steer(self._context, caller, "restart", self._connectors()[name][0].name, ())

    def alter_offsets(self, name: str, offsets: Sequence[Any] | None, caller: Caller) -> None:
        """Refuse: a copy with its original's offsets goes on at its own end, and nowhere else."""
        del offsets, caller
        raise offsets_stay(name)

    def _change(self, caller: Caller, action: str, name: str, make: Callable[[Topology], FlowOverride]) -> None:
        """Put the override in force that `make` returns of what is declared.

        Raises:
            ConnectRefused: 409, flows are not changed here; 400, the flow cannot be declared so.
            AnabranchError: as `Overriding.change` raises it.
        """
        changing = self._context.overriding
        if changing is None:
            self._context.audit.write(caller.name, action, "refused", {"connector": name})
            raise ConnectRefused(HTTPStatus.CONFLICT, _DECLARED.format(name))
        about = {"connector": name}
        self._context.audit.write(caller.name, action, "begins", about)
        try:
            self._context.take(changing.change(lambda topology: replace(make(topology), by=author(caller))))
        except AnabranchError as error:
            self._context.audit.write(caller.name, action, error.problems[0].code, about)
            if isinstance(error, DeclaredInputError):
                raise ConnectRefused(HTTPStatus.BAD_REQUEST, in_words(by_setting(error, name))) from None
            raise
        self._context.audit.write(caller.name, action, "done", about)

    def _connectors(self) -> dict[str, tuple[Flow, str]]:
        """Return the flows and kinds of all connectors by name."""
        topology = self._context.topology
        removed = {one.flow for one in topology.overrides if one.is_removed}
        return {
            connector_name(flow.name, kind): (flow, kind)
            for flow in topology.flows
            if flow.name not in removed
            for kind in CONNECTORS
            if has_connector(flow, kind)
        }

    def _state(self, flow: Flow) -> ConnectorState:
        if not flow.enabled:
            return "STOPPED"
        reading = self._context.exporter.reading
        known = reading.flows.get(flow.name) if reading is not None else None
        return "PAUSED" if known is not None and known[1].state == "paused" else "RUNNING"

    def _record(self, name: str, flow: Flow, kind: str) -> ConnectorRecord:
        config = overriding.config_of_connector(self._context.topology, flow, kind)
        return ConnectorRecord(name, config, self._state(flow))


def _as_it_is(topology: Topology, flow: Flow) -> Flow:
    """Return a flow with what was changed of it meanwhile; itself where it is gone."""
    return next((one for one in topology.flows if one.name == flow.name), flow)
