"""The paths of Kafka Connect's REST interface.

Codes, bodies and messages are those of Kafka 4.3, but for what it answers with 500 though the request is at fault: that
is 400 here. KIP-382 restarts with PUT, which is taken beside POST. Source: https://kafka.apache.org/documentation/#connect_rest
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse

from reconciler.convert.connect import CLASS
from reconciler.convert.plugins import plugin_of
from reconciler.model.base.shape import Misfit, parsed
from reconciler.model.recorded.connector import CONNECTOR_STATES, ConnectorRecord, ConnectorState
from reconciler.service.access import Caller
from reconciler.service.connect import shapes
from reconciler.service.connect.hosting import ConnectorHost, ConnectorView, ConnectRefused
from reconciler.service.connect.validation import in_words
from reconciler.service.context import operator_of, reader_of

_MOST_BYTES = 1_000_000
_UNKNOWN = "Connector {} not found"
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)
_NULL = "Null value can not be supplied as the configuration value."
_STATES: dict[str, ConnectorState] = {"RUNNING": "RUNNING", "PAUSED": "PAUSED", "STOPPED": "STOPPED"}


async def host_of(request: Request) -> ConnectorHost:
    """Return what stands behind the paths."""
    found: ConnectorHost = request.app.state.connectors
    return found


async def json_body(request: Request) -> Any:
    """Return the body of a request.

    Raises:
        ConnectRefused: 415, it is not declared as JSON; 400, it is none.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ConnectRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "HTTP 415 Unsupported Media Type")
    try:
        return parsed(await request.body(), _MOST_BYTES)
    except Misfit as error:
        raise ConnectRefused(HTTPStatus.BAD_REQUEST, f"the body is refused: {error}") from None


Host = Annotated[ConnectorHost, Depends(host_of)]
Body = Annotated[Any, Depends(json_body)]
Reader = Annotated[Caller, Depends(reader_of)]
Operator = Annotated[Caller, Depends(operator_of)]

router = APIRouter(include_in_schema=False)


def install(app: FastAPI, host: ConnectorHost) -> None:
    """Add the paths to an application."""
    app.state.connectors = host
    app.add_exception_handler(ConnectRefused, _refused)
    app.include_router(router)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ConnectRefused)
    return refusal(error.status, error.message)


def refusal(status: int, message: str) -> JSONResponse:
    """Return an answer that is an error, in Connect's shape."""
    return JSONResponse({"error_code": int(status), "message": message}, int(status))


# --- connectors ------------------------------------------------------------------------------------------------------


@router.get("/connectors")
@router.get("/connectors/")
def get_connectors(host: Host, _: Reader, expand: Annotated[list[str] | None, Query()] = None) -> Any:
    """Return the names of all connectors, or more of each."""
    return shapes.expanded(host, expand) if expand else list(host.records())


@router.post("/connectors")
def post_connector(host: Host, caller: Operator, body: Body, request: Request) -> Response:
    """Make a connector."""
    if not isinstance(body, dict) or not isinstance(body.get("config"), dict):
        message = "expected an object with name and config"
        raise _wrong(message)
    if unknown := sorted(body.keys() - {"name", "config", "initial_state"}):
        message = f"Unrecognized field {unknown[0]!a}: expected name, config and initial_state"
        raise _wrong(message)
    state = str(body.get("initial_state") or "RUNNING").upper()
    if state not in CONNECTOR_STATES:
        message = f"expected initial_state to be one of {', '.join(CONNECTOR_STATES)}"
        raise _wrong(message)
    config = _config(body["config"])
    name = str(body.get("name") or config.get("name", ""))
    record = _record(name, config, _STATES[state])
    if name in host.records():
        raise ConnectRefused(HTTPStatus.CONFLICT, f"Connector {name} already exists")
    _keep(host, record, caller)
    return _created(request, host, record)


@router.get("/connectors/{name}")
def get_connector(name: str, host: Host, _: Reader) -> dict[str, Any]:
    """Return a connector."""
    return shapes.info(_known(host, name), host.view(name))


@router.get("/connectors/{name}/config")
def get_config(name: str, host: Host, _: Reader) -> dict[str, str]:
    """Return the configuration of a connector."""
    return dict(_known(host, name).config)


@router.put("/connectors/{name}/config")
def put_config(name: str, host: Host, caller: Operator, body: Body, request: Request) -> Response:
    """Make a connector, or change it."""
    before = host.records().get(name)
    record = _record(name, _config(body), before.state if before is not None else "RUNNING")
    _keep(host, record, caller)
    return _created(request, host, record) if before is None else JSONResponse(shapes.info(record, host.view(name)))


@router.patch("/connectors/{name}/config")
def patch_config(name: str, host: Host, caller: Operator, body: Body) -> dict[str, Any]:
    """Change some settings of a connector; null takes one out."""
    if not isinstance(body, dict):
        message = "expected an object"
        raise _wrong(message)
    return shapes.info(patched(host, name, body, caller), host.view(name))


def patched(host: ConnectorHost, name: str, body: Mapping[str, Any], caller: Caller) -> ConnectorRecord:
    """Change some settings of a connector, and return it; None takes one out.

    Raises:
        ConnectRefused: 404, there is no such connector; 400, it cannot be configured so; or as of `ConnectorHost.put`.
    """
    before = _known(host, name)
    out = {key for key, value in body.items() if value is None}
    changed = _config({key: value for key, value in body.items() if value is not None})
    config = {key: value for key, value in before.config.items() if key not in out} | changed
    record = _record(name, config, before.state)
    _keep(host, record, caller)
    return record


@router.delete("/connectors/{name}", status_code=204)
def delete_connector(name: str, host: Host, caller: Operator) -> Response:
    """Take a connector out; what it has copied stays."""
    _known(host, name)
    host.remove(name, caller)
    return Response(status_code=204)


def _known(host: ConnectorHost, name: str, message: str = _UNKNOWN) -> ConnectorRecord:
    found = host.records().get(name)
    if found is None:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, message.format(name))
    return found


def _wrong(message: str) -> ConnectRefused:
    return ConnectRefused(HTTPStatus.BAD_REQUEST, message)


def _config(value: Any) -> dict[str, str]:
    """Return a configuration: texts, and numbers and truth values as texts.

    Raises:
        ConnectRefused: 400, it is something else.
    """
    if not isinstance(value, dict):
        message = "expected an object with the settings of a connector"
        raise _wrong(message)
    if any(one is None for one in value.values()):
        raise _wrong(in_words({"": [_NULL]}))
    found = {}
    for key, one in value.items():
        if not isinstance(one, str | int | float) or (isinstance(one, float) and not math.isfinite(one)):
            message = f"expected a text, a number, true or false for {key[:100]!a}"
            raise _wrong(message)
        found[key] = ("true" if one else "false") if isinstance(one, bool) else str(one)
    return found


def _record(name: str, config: dict[str, str], state: ConnectorState) -> ConnectorRecord:
    given = config.setdefault("name", name)
    if given != name:
        message = f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})"
        raise _wrong(message)
    return ConnectorRecord(name, config, state)


def _keep(host: ConnectorHost, record: ConnectorRecord, caller: Caller) -> None:
    if errors := host.errors(record):
        raise _wrong(in_words(errors))
    host.put(record, caller)


def _created(request: Request, host: ConnectorHost, record: ConnectorRecord) -> JSONResponse:
    place = str(request.base_url).rstrip("/") + f"/connectors/{record.name}"
    return JSONResponse(shapes.info(record, host.view(record.name)), 201, {"Location": place})


# --- what they do ----------------------------------------------------------------------------------------------------


@router.get("/connectors/{name}/status")
def get_status(name: str, host: Host, _: Reader) -> dict[str, Any]:
    """Return the states of a connector and its tasks."""
    return shapes.status(name, _seen(host, name), host.worker_id)


def _seen(host: ConnectorHost, name: str) -> ConnectorView:
    found = host.view(name) if name in host.records() else None
    if found is None:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"No status found for connector {name}")
    return found


@router.get("/connectors/{name}/tasks")
def get_tasks(name: str, host: Host, _: Reader) -> list[dict[str, Any]]:
    """Return the tasks of a connector."""
    return shapes.tasks(_known(host, name), host.view(name))


@router.get("/connectors/{name}/tasks/{task}/status")
def get_task_status(name: str, task: str, host: Host, _: Reader) -> dict[str, Any]:
    """Return the state of a task."""
    found = shapes.task_status(_seen(host, name), _number(task))
    if found is None:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"No status found for task {name}-{task}")
    return found


@router.get("/connectors/{name}/topics")
def get_topics(name: str, host: Host, _: Reader) -> dict[str, Any]:
    """Return the topics that a connector writes to."""
    return {name: {"topics": sorted(host.topics(name)) if name in host.records() else []}}


@router.put("/connectors/{name}/topics/reset")
def put_topics_reset(name: str, host: Host, _: Operator) -> Response:
    """Refuse: the topics are those that are copied now, and nothing else is on record of them."""
    del host, name
    raise ConnectRefused(HTTPStatus.FORBIDDEN, "Topic tracking reset is disabled.")


def _number(task: str) -> int:
    # As it stands in paths: `int` would take blanks, signs and digits of other scripts.
    if not (task.isascii() and task.isdigit()):
        raise ConnectRefused(HTTPStatus.NOT_FOUND, "HTTP 404 Not Found")
    return int(task[:9])


# --- steering --------------------------------------------------------------------------------------------------------


@router.put("/connectors/{name}/pause")
def put_pause(name: str, host: Host, caller: Operator) -> Response:
    """Have a connector pause."""
    return _set(host, name, "PAUSED", caller, 202)


@router.put("/connectors/{name}/resume")
def put_resume(name: str, host: Host, caller: Operator) -> Response:
    """Have a connector run."""
    return _set(host, name, "RUNNING", caller, 202)


@router.put("/connectors/{name}/stop")
def put_stop(name: str, host: Host, caller: Operator) -> Response:
    """Have a connector stop; its configuration stays."""
    return _set(host, name, "STOPPED", caller, 204)


def _set(host: ConnectorHost, name: str, state: ConnectorState, caller: Caller, code: int) -> Response:
    record = _known(host, name, "Unknown connector {}")
    if record.state != state:
        host.set_state(record, state, caller)
    return Response(status_code=code)


@router.post("/connectors/{name}/restart")
@router.put("/connectors/{name}/restart")
def post_restart(
    name: str,
    host: Host,
    caller: Operator,
    include_tasks: Annotated[bool, Query(alias="includeTasks")] = False,
    only_failed: Annotated[bool, Query(alias="onlyFailed")] = False,
) -> Response:
    """Have what a connector copies tried again at once."""
    _known(host, name, "Unknown connector: {}")
    host.restart(name, caller, parked_only=only_failed or not include_tasks)
    if not (include_tasks or only_failed):
        return Response(status_code=204)
    view = _seen(host, name)
    return JSONResponse(shapes.status(name, view, host.worker_id, state="RESTARTING"), 202)


@router.post("/connectors/{name}/tasks/{task}/restart")
@router.put("/connectors/{name}/tasks/{task}/restart")
def post_task_restart(name: str, task: str, host: Host, caller: Operator) -> Response:
    """Have what is parked of a connector tried again at once."""
    _known(host, name, "Unknown connector: {}")
    view, number = host.view(name), _number(task)
    if view is None or shapes.task_status(view, number) is None:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"Unknown task: {name}-{task}")
    host.restart(name, caller, parked_only=True)
    return Response(status_code=204)


# --- offsets ---------------------------------------------------------------------------------------------------------


@router.get("/connectors/{name}/offsets")
def get_offsets(name: str, host: Host, _: Reader) -> dict[str, Any]:
    """Return how far a connector has come."""
    _known(host, name)
    return {"offsets": list(host.offsets(name))}


@router.patch("/connectors/{name}/offsets")
def patch_offsets(name: str, host: Host, caller: Operator, body: Body) -> dict[str, str]:
    """Move a stopped connector."""
    record = _known(host, name)
    offsets = body.get("offsets") if isinstance(body, dict) else None
    if not isinstance(offsets, list) or not offsets:
        message = "Partitions / offsets need to be provided for an alter offsets request"
        raise _wrong(message)
    return _alter(host, record, offsets, caller, "altered")


@router.delete("/connectors/{name}/offsets")
def delete_offsets(name: str, host: Host, caller: Operator) -> dict[str, str]:
    """Have a stopped connector begin anew."""
    return _alter(host, _known(host, name), None, caller, "reset")


def _alter(
    host: ConnectorHost, record: ConnectorRecord, offsets: list[Any] | None, caller: Caller, done: str
) -> dict[str, str]:
    if record.state != "STOPPED":
        raise _wrong(_NOT_STOPPED.format(record.name))
    host.alter_offsets(record.name, offsets, caller)
    return {"message": f"The offsets for this connector have been {done} successfully"}


# --- plugins ---------------------------------------------------------------------------------------------------------


@router.get("/connector-plugins")
@router.get("/connector-plugins/")
def get_plugins(_: Reader) -> list[dict[str, str]]:
    """Return the connectors that are taken."""
    return shapes.plugins()


@router.get("/connector-plugins/{plugin}/config")
def get_plugin_config(plugin: str, _: Reader) -> list[dict[str, Any]]:
    """Return the settings of a connector."""
    found = plugin_of(plugin)
    if found is None:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"Unknown plugin {plugin}.")
    return shapes.definitions(found)


@router.put("/connector-plugins/{plugin}/config/validate")
def put_validate(plugin: str, host: Host, _: Reader, body: Body) -> dict[str, Any]:
    """Return what is wrong with a configuration."""
    config = _config(body)
    written = config.get(CLASS)
    if written is None:
        message = f"Connector config {{}} contains no connector type: {CLASS} is missing"
        raise _wrong(message)
    found, named = plugin_of(plugin), plugin_of(written)
    if found is not named:
        message = f"Included connector type {written} does not match request type {plugin}"
        raise _wrong(message)
    if found is None:
        message = f"Failed to find any class that implements Connector and which name matches {plugin}"
        raise _wrong(message)
    errors = host.errors(ConnectorRecord(config.get("name", ""), config))
    return shapes.validated(found, written, config, errors)
