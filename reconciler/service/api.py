"""Our own paths, below `/api/v1`: what `status`, `lag`, `drift` and `plan` print as JSON; pause, resume, restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.operate.planning import plan
from reconciler.report.pictures.graph import graph_svg
from reconciler.report.plan.drift import drift_json
from reconciler.report.plan.to_json import plan_json
from reconciler.report.status.groups import groups_json
from reconciler.report.status.lag import lag_rows
from reconciler.report.status.to_json import lag_json
from reconciler.report.status.topics import topic_rows
from reconciler.service.context import Context, Operator, Reader, ServiceContext
from reconciler.service.failures import RequestFailed, answers
from reconciler.service.readiness import readiness
from reconciler.service.steering import SteeringAction, as_json, steer

_LONGEST_NAME = 300
_MOST_TOPICS = 1_000
_MOST_ROWS = 10_000

FlowName = Annotated[str, Path(max_length=_LONGEST_NAME, description="name of a flow")]
TopicName = Annotated[str | None, Query(max_length=_LONGEST_NAME, description="original or remote topic")]
Limit = Annotated[int, Query(ge=1, le=_MOST_ROWS)]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
_DENIED = (401, 422, 503)


class SteeringScope(BaseModel):
    """What of a flow is meant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    topics: list[Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]] = Field(
        default_factory=list,
        max_length=_MOST_TOPICS,
        description="topics, or partitions as TOPIC/PARTITION, by original or remote name; none means the whole flow",
    )


class LogRooms(BaseModel):
    """Which rooms log debug lines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rooms: Annotated[str, Field(max_length=_LONGEST_NAME, description="as of --verbose; empty for warnings alone")]


router = APIRouter(prefix="/api/v1", responses=answers(*_DENIED))


@router.get("/caller")
def get_caller(caller: Reader) -> dict[str, Any]:
    """Return the caller, and what it may do."""
    return {"name": caller.name, "role": caller.role}


@router.get("/topology")
def get_topology(context: Context, _: Reader) -> dict[str, Any]:
    """Return clusters and flows as they are declared."""
    topology = context.topology
    return {
        "name": topology.name,
        "owner": topology.owner,
        "clusters": [{"alias": one.alias, "datacenter": one.datacenter} for one in topology.clusters.values()],
        "flows": [_declared(flow) for flow in topology.flows],
    }


def _declared(flow: Flow) -> dict[str, Any]:
    return {"name": flow.name, "source": flow.source, "target": flow.target, "enabled": flow.enabled}


@router.get("/status")
def get_status(context: Context, _: Reader) -> Response:
    """Return what `anabranch status -o json` prints: all flows with all partitions."""
    return context.answer("status", context.status)


@router.get("/flows")
def get_flows(context: Context, _: Reader) -> Response:
    """Return the flows with their figures, without partitions."""
    return context.answer("flows", lambda: flows_json(context))


def flows_json(context: ServiceContext) -> dict[str, Any]:
    """Return the flows with their figures, without partitions, as JSON types."""
    found = context.status()
    return {**found, "flows": [_without_partitions(one) for one in found["flows"]]}


def _without_partitions(flow: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flow.items() if name != "partitions"}


@router.get("/flows/{flow}", responses=answers(404))
def get_flow(flow: FlowName, context: Context, _: Reader) -> Response:
    """Return a flow with its figures, without partitions."""
    context.summary(flow)

    def made() -> dict[str, Any]:
        found = next(one for one in context.status()["flows"] if one["name"] == flow)
        return {**_without_partitions(found), "count": len(found["partitions"])}

    return context.answer(("flow", flow), made)


@router.get("/flows/{flow}/topics", responses=answers(404))
def get_topics(flow: FlowName, context: Context, _: Reader) -> Response:
    """Return the topics of a flow, those that are furthest behind first."""
    context.summary(flow)
    return context.answer(("topics", flow), lambda: [row.to_json() for row in topic_rows([context.summary(flow)])])


@router.get("/flows/{flow}/partitions", responses=answers(404))
def get_partitions(
    flow: FlowName,
    context: Context,
    _: Reader,
    topic: TopicName = None,
    limit: Limit = 1_000,
    offset: Offset = 0,
) -> Response:
    """Return the partitions of a flow as `anabranch lag -o json` does, those that are furthest behind first."""
    context.summary(flow)
    return _lag(context, [context.flow(flow)], topic, limit, offset)


@router.get("/lag")
def get_lag(
    context: Context,
    _: Reader,
    topic: TopicName = None,
    limit: Limit = 1_000,
    offset: Offset = 0,
) -> Response:
    """Return the partitions of all flows as `anabranch lag -o json` does, those that are furthest behind first."""
    return _lag(context, context.reading().view.flows, topic, limit, offset)


def _lag(context: ServiceContext, flows: Sequence[Flow], topic: str | None, limit: int, offset: int) -> Response:
    def made() -> dict[str, Any]:
        view = context.reading().view
        rows = lag_rows(flows, view.statuses, view.now, topic)
        return {**lag_json(rows[offset : offset + limit], view.now, sorted(view.failures)), "count": len(rows)}

    return context.answer(("lag", tuple(flow.name for flow in flows), topic, limit, offset), made)


@router.get("/flows/{flow}/groups", responses=answers(404))
def get_groups(flow: FlowName, context: Context, _: Reader) -> dict[str, Any]:
    """Return the groups that a flow takes along: seconds since their positions were synced, or why they are not."""
    context.summary(flow)
    view = context.reading().view
    return groups_json(context.flow(flow), view.last_looks, view.now)


@router.get("/flows/{flow}/readiness", responses=answers(404))
def get_readiness(flow: FlowName, context: Context, _: Reader) -> Response:
    """Return what a failover of a flow would leave behind now, and how many groups it could move exactly."""
    declared, one = context.flow(flow), context.summary(flow)
    return context.answer(("readiness", flow), lambda: readiness(declared, one, context.reading().view))


@router.get("/flows/{flow}/history", responses=answers(404))
def get_history(flow: FlowName, context: Context, _: Reader) -> dict[str, list[Any]]:
    """Return the figures of a flow over the last half hour, as this process has read them: one list for each figure."""
    context.flow(flow)
    points = context.history.points(flow)
    return {
        "time": [one.time for one in points],
        "lag": [one.lag for one in points],
        "lagSeconds": [one.lag_seconds for one in points],
        "recordsPerSecond": [one.records_per_second for one in points],
        "p99Ms": [one.p99_ms for one in points],
    }


@router.get("/changes")
def get_changes(context: Context, _: Reader, after: Annotated[int, Query(ge=0, le=2**53)] = 0) -> list[dict[str, Any]]:
    """Return how flows changed since this process began, the newest last; at most 500."""
    return [asdict(one) for one in context.history.changes(after)]


@router.get("/drift", responses=answers(429, 502))
def get_drift(
    context: Context,
    _: Reader,
    now: Annotated[bool, Query(description="compare now, and not at the next time")] = False,
) -> dict[str, Any]:
    """Return what `anabranch drift -o json` prints, with the time at which it was found."""
    if now:
        with context.alone("drift"):
            context.exporter.look_for_drift(now=True)
    found = context.exporter.drift
    if found is None:
        message = "the targets were not compared yet with the last apply"
        problem = Problem("AB325", "drift", message, "ask with now=true, or start the service with --drift-every")
        raise RequestFailed(HTTPStatus.SERVICE_UNAVAILABLE, problem)
    return {"time": found[0], **drift_json(found[1])}


@router.get("/plan", responses=answers(409, 429, 500, 502))
def get_plan(context: Context, _: Reader) -> dict[str, Any]:
    """Return what `anabranch plan -o json` prints; it reads all clusters, and changes nothing."""
    with context.alone("plan"):
        return plan_json(plan(context.declared).plan)


@router.get("/graph.svg", response_class=Response, responses={200: {"content": {"image/svg+xml": {}}}})
def get_graph(context: Context, _: Reader, style: bool = True) -> Response:
    """Return the picture that `anabranch graph -o svg` draws; without its stylesheet with `style=false`."""
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response(graph_svg(context.topology, style), media_type="image/svg+xml", headers=headers)


def _steer(
    context: ServiceContext, caller: Operator, action: SteeringAction, flow: str, scope: SteeringScope
) -> dict[str, Any]:
    context.flow(flow)
    return {"flows": as_json(steer(context, caller, action, flow, scope.topics))}


_Scope = Annotated[SteeringScope, Body()]
_WHOLE = SteeringScope()
_STEERING = answers(400, 403, 404, 409, 413, 502)


@router.post("/flows/{flow}/pause", responses=_STEERING)
def post_pause(flow: FlowName, context: Context, caller: Operator, scope: _Scope = _WHOLE) -> dict[str, Any]:
    """Pause a flow, topics or partitions until they are resumed; returns when the running tasks have confirmed it."""
    return _steer(context, caller, "pause", flow, scope)


@router.post("/flows/{flow}/resume", responses=_STEERING)
def post_resume(flow: FlowName, context: Context, caller: Operator, scope: _Scope = _WHOLE) -> dict[str, Any]:
    """Let what was paused go on."""
    return _steer(context, caller, "resume", flow, scope)


@router.post("/flows/{flow}/restart", responses=_STEERING)
def post_restart(flow: FlowName, context: Context, caller: Operator, scope: _Scope = _WHOLE) -> dict[str, Any]:
    """Have parked partitions tried again at once; those that are named also when they run."""
    return _steer(context, caller, "restart", flow, scope)


@router.put("/log-level", responses=answers(400, 403, 404, 413))
def put_log_level(rooms: LogRooms, context: Context, caller: Operator) -> dict[str, str]:
    """Have rooms of this service log debug lines from now on."""
    context.set_log_levels(rooms.rooms)
    context.audit.write(caller.name, "log-level", "done", {"rooms": rooms.rooms})
    return {"rooms": rooms.rooms}
