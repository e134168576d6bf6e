"""Pause, resume and restart on behalf of a caller, written to the audit log before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import PauseScope
from reconciler.operate.flows.steering import Steered, Tell, steered
from reconciler.operate.targets import InvalidArgument
from reconciler.service.access import Caller
from reconciler.service.context import ServiceContext
from reconciler.state import control
from reconciler.state.journals.user import user

SteeringAction = Literal["pause", "resume", "restart"]


def steer(
    context: ServiceContext, caller: Caller, action: SteeringAction, flow: str, topics: Sequence[str]
) -> list[Steered]:
    """Carry out an action, wait until the running tasks have confirmed it or 15 s are over, and return the result.

    Args:
        context: the service.
        caller: its author; on record at the target with a pause.
        action: what.
        flow: name of the flow.
        topics: topics or partitions (`TOPIC/PARTITION`) of it; none means the whole flow.

    Raises:
        InvalidArgument: no such flow, topic or partition.
        AnabranchError: a cluster does not answer or refuses, or the audit log cannot be written.
    """
    about: Mapping[str, Any] = {"flow": flow, "topics": list(topics)}
    context.audit.write(caller.name, action, "begins", about)
    try:
        found = steered(context.topology, flow, topics, _tell(action, caller, bool(topics)))
    except (AnabranchError, InvalidArgument) as error:
        result = error.problems[0].code if isinstance(error, AnabranchError) else "AB735"
        context.audit.write(caller.name, action, result, about)
        raise
    unconfirmed = sum(one.unconfirmed for one in found)
    context.audit.write(caller.name, action, "unconfirmed" if unconfirmed else "done", about)
    return found


def author(caller: Caller) -> str:
    """Return the author of a change as journals have it: the caller, and the user that the service runs as."""
    return f"{caller.name} through {user()}"


def _tell(action: SteeringAction, caller: Caller, is_named: bool) -> Tell:
    by = author(caller)

    def tell(cluster: Cluster, topology: str, scopes: Sequence[PauseScope]) -> int:
        if action == "pause":
            return control.pause(cluster, topology, scopes, by)
        if action == "resume":
            return control.resume(cluster, topology, scopes, by)
        # Of a whole flow those alone that do not run, as `anabranch restart` does.
        return control.restart(cluster, topology, scopes, not is_named, by)

    return tell


def as_json(found: Sequence[Steered]) -> list[dict[str, Any]]:
    """Return what became of flows as JSON types."""
    return [
        {
            "flow": one.flow.name,
            "scopes": [asdict(scope) for scope in one.scopes],
            "tasks": one.live,
            "unconfirmed": one.unconfirmed,
        }
        for one in found
    ]
