"""Flows as connectors of MirrorMaker 2: which ones a flow has, how they are called, and their configurations. Pure."""

from __future__ import annotations

from reconciler.convert.plugins import CHECKPOINTS, HEARTBEATS, MIRROR_PACKAGE, SOURCE
from reconciler.model.declared.flow import Flow

CONNECTORS = (SOURCE, CHECKPOINTS, HEARTBEATS)
_BESIDE = {SOURCE: "", CHECKPOINTS: "-checkpoint", HEARTBEATS: "-heartbeat"}


def connector_name(flow: str, kind: str) -> str:
    """Return the name of a connector of a flow."""
    return flow + _BESIDE[kind]


def flow_name(connector: str, kind: str) -> str | None:
    """Return the name of the flow that a connector of a kind goes with by its name; None where it goes with none."""
    suffix = _BESIDE[kind]
    return connector.removesuffix(suffix) if connector.endswith(suffix) else None


def has_connector(flow: Flow, connector: str) -> bool:
    """Return whether a flow does what a connector does."""
    if connector == CHECKPOINTS:
        return bool(flow.groups.include)
    return connector == SOURCE or bool(flow.heartbeats or flow.groups.include)


def config_of(flow: Flow, connector: str) -> dict[str, str]:
    """Return what is declared of a connector of a flow, in MirrorMaker's words."""
    found = {
        "name": connector,
        "connector.class": f"{MIRROR_PACKAGE}.{connector}",
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
        "enabled": "true" if flow.enabled else "false",
    }
    if connector == SOURCE:
        found |= {
            "topics": ",".join(map(str, flow.topics.include)),
            "topics.exclude": ",".join(map(str, flow.topics.exclude)),
            "tasks.max": str(flow.tasks),
            "refresh.topics.interval.seconds": f"{flow.refresh_interval:g}",
        }
    if connector == CHECKPOINTS:
        found |= {
            "groups": ",".join(map(str, flow.groups.include)),
            "groups.exclude": ",".join(map(str, flow.groups.exclude)),
            "sync.group.offsets.enabled": "true" if flow.groups.sync_offsets else "false",
            "emit.checkpoints.interval.seconds": f"{flow.groups.interval:g}",
        }
    if connector == HEARTBEATS:
        found |= {"emit.heartbeats.interval.seconds": f"{flow.heartbeats or flow.groups.interval:g}"}
    return found
