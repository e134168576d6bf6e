"""What a change of a connector changes of its flow: the override that the flow is to have. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reconciler.convert.changed import changed_entry
from reconciler.convert.clusters import brokers_in
from reconciler.convert.connect import Connector
from reconciler.convert.plugins import SINK, SOURCE
from reconciler.convert.settings import WITHOUT_EQUAL
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.service.connect.configs import CONNECTORS, config_of, connector_name, flow_name, has_connector
from reconciler.service.connect.validation import of_record

_ENDS = ("source", "target")


def config_of_connector(topology: Topology, flow: Flow, kind: str) -> dict[str, str]:
    """Return the configuration of a connector of a flow, with the brokers of both ends."""
    brokers = {
        f"{end}.cluster.bootstrap.servers": ",".join(topology.clusters[alias].declared_addresses)
        for end, alias in zip(_ENDS, (flow.source, flow.target), strict=True)
    }
    return config_of(flow, kind) | {"name": connector_name(flow.name, kind)} | brokers


def override_of(topology: Topology, record: ConnectorRecord) -> FlowOverride:
    """Return the override with which a flow does what a connector is to do.

    Args:
        topology: what is in force over the files.
        record: the connector as it is to be; errors of its own are excluded.

    Raises:
        DeclaredInputError: AB141 or AB142, it is of no flow or cluster here, or a setting cannot be converted.
    """
    connector = of_record(record)
    flow = _flow_of(topology, connector)
    if flow is None:
        return _new(topology, connector, is_enabled=_is_enabled(record))
    _check_ends(topology, connector, (flow.source, flow.target))
    before = _connectors(topology, flow)
    after = [one for one in before if one.name != record.name] + [_without_brokers(connector)]
    return _overridden(topology, flow, changed_entry(before, after) | {"enabled": _is_enabled(record)})


def without(topology: Topology, flow: Flow, kind: str) -> FlowOverride:
    """Return the override with which a flow is as if a connector of it were not there.

    Args:
        topology: what is in force over the files.
        flow: which one.
        kind: of the connector.

    Raises:
        DeclaredInputError: as of `changed_entry`.
    """
    if kind == SOURCE:
        return replace(_overridden(topology, flow, {}), is_removed=True)
    before = _connectors(topology, flow)
    return _overridden(topology, flow, changed_entry(before, [one for one in before if one.kind != kind]))


def enabled(topology: Topology, flow: Flow, is_enabled: bool) -> FlowOverride:
    """Return the override with which a flow runs, or does not."""
    return _overridden(topology, flow, {"enabled": is_enabled})


def _overridden(topology: Topology, flow: Flow, entry: dict[str, Any]) -> FlowOverride:
    """Return what a flow has beside its files already, and what comes to it."""
    known = next((one for one in topology.overrides if one.flow == flow.name), None)
    found = known or FlowOverride(flow.name, flow.source, flow.target)
    return replace(found.changed(entry), is_removed=False)


def _is_enabled(record: ConnectorRecord) -> bool:
    return record.state != "STOPPED" and record.config.get("enabled", "true").strip().lower() != "false"


def _flow_of(topology: Topology, connector: Connector) -> Flow | None:
    """Return the flow of a connector; None where one that copies begins a new one.

    Raises:
        DeclaredInputError: AB142, it is of a kind that no flow here has, or goes with no flow by its name.
    """
    flows = {flow.name: flow for flow in topology.flows}
    if connector.kind in (SOURCE, SINK):
        return flows.get(connector.name)
    is_beside = connector.kind in CONNECTORS
    flow = flows.get(flow_name(connector.name, connector.kind) or "") if is_beside else None
    if flow is None:
        like = connector_name("NAME", connector.kind) if is_beside else ""
        wanted = f"{like}, as the connector that goes with the flow NAME" if is_beside else "one of MirrorMaker 2's"
        names = ", ".join(flows) or "none"
        message = f"expected {wanted}; found {connector.name} of {connector.kind}, and the flows {names}"
        raise _wrong(connector, "name", message, "give it that name, or run `connect-distributed`")
    return flow


def _new(topology: Topology, connector: Connector, *, is_enabled: bool) -> FlowOverride:
    ends = connector.alias("source"), connector.alias("target")
    for end, alias in zip(_ENDS, ends, strict=True):
        if alias not in topology.clusters:
            message = f"expected a cluster of the topology files: {', '.join(topology.aliases)}; found {alias}"
            raise _wrong(connector, f"{end}.cluster.alias", message, "name one of them, or declare the cluster")
    _check_ends(topology, connector, ends)
    entry = changed_entry([], [_without_brokers(connector)]) | {"enabled": is_enabled}
    return FlowOverride(connector.name, *ends, entry, is_new=True)


def _check_ends(topology: Topology, connector: Connector, ends: tuple[str, str]) -> None:
    """Check that a connector is between these clusters.

    Raises:
        DeclaredInputError: AB142, it names others, or other brokers of them.
    """
    for end, alias in zip(_ENDS, ends, strict=True):
        if connector.alias(end) != alias:
            message = f"expected {alias}, as the flow has it; found {connector.alias(end)}"
            raise _wrong(connector, f"{end}.cluster.alias", message, "a flow keeps its ends: begin another one")
        declared = topology.clusters[alias].declared_addresses
        key = f"{end}.cluster.bootstrap.servers"
        given = connector.settings.first(key)
        if given is not None and sorted(brokers_in(given.value)) != sorted(declared):
            message = f"expected the brokers of cluster {alias} in the topology files: {', '.join(declared)}"
            raise _wrong(connector, key, message, "leave it out, or change the file")


def _wrong(connector: Connector, key: str, message: str, remedy: str) -> DeclaredInputError:
    return DeclaredInputError(Problem(WITHOUT_EQUAL, f"{connector.where} ({key})", message, remedy))


def _connectors(topology: Topology, flow: Flow) -> Sequence[Connector]:
    """Return the connectors that a flow has now."""
    return [
        _without_brokers(
            of_record(ConnectorRecord(connector_name(flow.name, kind), config_of_connector(topology, flow, kind)))
        )
        for kind in CONNECTORS
        if has_connector(flow, kind)
    ]


def _without_brokers(connector: Connector) -> Connector:
    """Return a connector without the brokers of its ends, which were compared with the files'."""
    keys = [f"{end}.cluster.bootstrap.servers" for end in _ENDS]
    return replace(connector, settings=connector.settings.without(keys))
