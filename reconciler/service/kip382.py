"""The paths that KIP-382 describes for MirrorMaker 2, for tools that know them.

A flow is the connectors MirrorSourceConnector, MirrorCheckpointConnector and MirrorHeartbeatConnector of its route;
their states are Kafka Connect's. What is configured is in the topology files; what is changed here holds until the
next apply. Source: https://cwiki.apache.org/confluence/display/KAFKA/KIP-382%3A+MirrorMaker+2.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from reconciler.convert.plugins import SOURCE
from reconciler.metrics.exposition import OPENMETRICS, PLAIN, wants_openmetrics
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.report.status.states import FlowState
from reconciler.service.access import Caller
from reconciler.service.api import flows_json
from reconciler.service.connect.configs import CONNECTORS, config_of, connector_name, has_connector
from reconciler.service.connect.routes import patched
from reconciler.service.context import Context, Operator, Reader, ServiceContext
from reconciler.service.failures import RequestFailed, answers, no_such
from reconciler.service.steering import SteeringAction, as_json, steer

_STATES: Mapping[FlowState, str] = {
    "running": "RUNNING",
    "degraded": "RUNNING",
    "opening": "RUNNING",
    "paused": "PAUSED",
    "lost": "FAILED",
    "failed over": "STOPPED",
    "disabled": "STOPPED",
    "stopped": "STOPPED",
    "destroyed": "STOPPED",
}

Alias = Annotated[str, Path(max_length=300, description="alias of a cluster")]
Connector = Annotated[str, Path(max_length=300, description=", ".join(CONNECTORS))]
Settings = Annotated[dict[str, str | int | float | bool], Body(description="settings that change")]
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

router = APIRouter(responses=answers(401, 422))


@router.get("/clusters")
def get_clusters(context: Context, _: Reader) -> list[str]:
    """Return the aliases of all clusters."""
    return list(context.topology.aliases)


@router.get("/status", responses=answers(503))
def get_all_status(context: Context, _: Reader) -> Response:
    """Return how each flow does."""
    return _status(context, context.topology.flows)


@router.get("/metrics", response_class=StreamingResponse, responses=_TEXT)
def get_all_metrics(request: Request, context: Context, _: Reader) -> StreamingResponse:
    """Return all metrics for Prometheus, in the format that the request accepts."""
    return _metrics(request, context, None)


@router.get("/cluster/{cluster}/status", responses=answers(404, 503))
def get_cluster_status(cluster: Alias, context: Context, _: Reader) -> Response:
    """Return how the flows from and to a cluster do."""
    context.cluster(cluster)
    return _status(context, [flow for flow in context.topology.flows if cluster in (flow.source, flow.target)])


@router.get("/cluster/{cluster}/metrics", response_class=StreamingResponse, responses=_TEXT | answers(404))
def get_cluster_metrics(cluster: Alias, request: Request, context: Context, _: Reader) -> StreamingResponse:
    """Return the metrics of the flows into a cluster."""
    return _metrics(request, context, {"target": context.cluster(cluster)})


_ROUTE = "/from:{source}/to:{target}"


@router.get(f"{_ROUTE}/status", responses=answers(404, 503))
def get_route_status(source: Alias, target: Alias, context: Context, _: Reader) -> Response:
    """Return how the flows from one cluster to another do."""
    return _status(context, _flows(context, source, target))


@router.get(f"{_ROUTE}/metrics", response_class=StreamingResponse, responses=_TEXT | answers(404))
def get_route_metrics(source: Alias, target: Alias, request: Request, context: Context, _: Reader) -> StreamingResponse:
    """Return the metrics of the flows from one cluster to another."""
    _flows(context, source, target)
    return _metrics(request, context, {"source": source, "target": target})


@router.get(f"{_ROUTE}/connectors", responses=answers(404))
def get_connectors(source: Alias, target: Alias, context: Context, _: Reader) -> list[str]:
    """Return the connectors of a route."""
    flows = _flows(context, source, target)
    return [name for name in CONNECTORS if any(has_connector(flow, name) for flow in flows)]


async def of_connector(source: Alias, target: Alias, connector: Connector, context: Context) -> list[Flow]:
    """Return the flows of a route.

    Raises:
        RequestFailed: 404, there is no such route, or it has no such connector.
    """
    flows = _flows(context, source, target)
    there = [name for name in CONNECTORS if any(has_connector(flow, name) for flow in flows)]
    if connector not in there:
        raise no_such(connector, "connector", there)
    return flows


OfConnector = Annotated[list[Flow], Depends(of_connector)]


@router.get(f"{_ROUTE}/connectors/{{connector}}/config", responses=answers(404))
def get_config(flows: OfConnector, connector: Connector, _: Reader) -> dict[str, str]:
    """Return what is declared of a connector, in MirrorMaker's words."""
    return config_of(flows[0], connector)


@router.get(f"{_ROUTE}/connectors/{{connector}}/status", responses=answers(404, 503))
def get_connector_status(flows: OfConnector, connector: Connector, context: Context, _: Reader) -> dict[str, Any]:
    """Return the state of a connector and its tasks, as Kafka Connect has it."""
    reading = context.reading()
    one = context.summary(flows[0].name)
    state = _STATES.get(one.state, "UNASSIGNED")
    tasks = [task for task, _ in reading.tasks if task.flow == flows[0].name]
    troubles = "\n".join(f"{part.topic}/{part.partition}: {part.reason}" for part in one.troubled[:20] if part.reason)
    found: dict[str, Any] = {
        "name": connector,
        "connector": {"state": state, "worker_id": tasks[0].run if tasks else ""},
        "tasks": [{"id": task.task, "state": state, "worker_id": task.run} for task in tasks],
        "type": "source",
    }
    if troubles:
        found["connector"]["trace"] = troubles
    return found


_REFUSED = answers(403, 404, 409)


@router.put(f"{_ROUTE}/connectors/{{connector}}/config", responses=answers(400, 403, 404, 409, 413, 502, 503))
def put_config(
    flows: OfConnector, connector: Connector, settings: Settings, request: Request, context: Context, caller: Operator
) -> dict[str, str]:
    """Change settings of a connector until the next apply; the others stay as they are."""
    if len(flows) > 1:
        names = ", ".join(flow.name for flow in flows)
        message = f"several flows have this route: {names}"
        raise RequestFailed(HTTPStatus.CONFLICT, Problem("AB738", connector, message, "use /connectors/NAME/config"))
    name = connector_name(flows[0].name, connector)
    patched(request.app.state.connectors, name, settings, caller)
    return config_of(context.flow(flows[0].name), connector)


@router.delete(f"{_ROUTE}/connectors/{{connector}}", status_code=409, responses=_REFUSED)
def delete_connector(_flows: OfConnector, connector: Connector, _: Operator) -> JSONResponse:
    """Refuse: KIP-382 has no such path, and which flows there are is in the topology files."""
    message = "the connector is declared in the topology files, and not deleted here"
    problem = Problem("AB738", connector, message, "use /connectors/NAME, or change the file")
    raise RequestFailed(HTTPStatus.CONFLICT, problem)


_STEERING = answers(403, 404, 409, 502, 503)


@router.put(f"{_ROUTE}/connectors/{{connector}}/pause", status_code=202, responses=_STEERING)
def put_pause(flows: OfConnector, connector: Connector, context: Context, caller: Operator) -> list[dict[str, Any]]:
    """Pause the flows of a route."""
    return _steer(context, caller, "pause", flows, connector)


@router.put(f"{_ROUTE}/connectors/{{connector}}/resume", status_code=202, responses=_STEERING)
def put_resume(flows: OfConnector, connector: Connector, context: Context, caller: Operator) -> list[dict[str, Any]]:
    """Let the flows of a route go on."""
    return _steer(context, caller, "resume", flows, connector)


@router.put(f"{_ROUTE}/connectors/{{connector}}/restart", status_code=202, responses=_STEERING)
def put_restart(flows: OfConnector, connector: Connector, context: Context, caller: Operator) -> list[dict[str, Any]]:
    """Have what is parked of the flows of a route tried again at once."""
    return _steer(context, caller, "restart", flows, connector)


def _steer(
    context: ServiceContext, caller: Caller, action: SteeringAction, flows: list[Flow], connector: str
) -> list[dict[str, Any]]:
    if connector != SOURCE and action != "restart":
        message = f"{connector} has no state of its own: it goes with the flow's {SOURCE}"
        problem = Problem("AB738", connector, message, f"{action} {SOURCE}")
        raise RequestFailed(HTTPStatus.CONFLICT, problem)
    return [one for flow in flows if flow.enabled for one in as_json(steer(context, caller, action, flow.name, ()))]


def _flows(context: ServiceContext, source: str, target: str) -> list[Flow]:
    for alias in (source, target):
        context.cluster(alias)
    flows = [flow for flow in context.topology.flows if (flow.source, flow.target) == (source, target)]
    if not flows:
        routes = [f"from:{flow.source}/to:{flow.target}" for flow in context.topology.flows]
        route = f"from:{source}/to:{target}"
        raise no_such(route, "route", list(dict.fromkeys(routes)))
    return flows


def _status(context: ServiceContext, flows: Iterable[Flow]) -> Response:
    names = frozenset(flow.name for flow in flows)

    def made() -> dict[str, Any]:
        found = flows_json(context)
        return {**found, "flows": [one for one in found["flows"] if one["name"] in names]}

    return context.answer(("route", names), made)


def _metrics(request: Request, context: ServiceContext, only: Mapping[str, str] | None) -> StreamingResponse:
    is_openmetrics = wants_openmetrics(request.headers.get("accept", ""))
    pieces = context.exporter.text(is_openmetrics=is_openmetrics, only=only)
    return StreamingResponse(pieces, media_type=OPENMETRICS if is_openmetrics else PLAIN)
