"""What becomes of errors: a status, and a JSON body of one shape for every path.

    {"error_code": 404, "message": "flow x: no such flow", "problems": [{"code": "AB735", "where": …, …}]}

`error_code` and `message` are those of Kafka Connect's REST interface, so that its clients read them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Locked, Problem, Refused, Unreachable
from reconciler.operate.targets import InvalidArgument

_LOG = logging.getLogger(__name__)
_LONGEST_VALUE = 100


class ProblemAnswer(BaseModel):
    """One thing that is wrong."""

    code: str = Field(description="stable code, as docs/reference/errors.md lists it")
    where: str
    message: str
    remedy: str


class FailureAnswer(BaseModel):
    """The body of every answer that is an error."""

    error_code: int = Field(description="the HTTP status")
    message: str
    problems: list[ProblemAnswer] = []


class RequestFailed(Exception):
    """A request that cannot be answered as asked.

    Args:
        status: of the answer.
        problems: why.
        headers: of the answer.
    """

    def __init__(
        self, status: HTTPStatus, problems: Problem | Sequence[Problem], headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.headers = headers
        super().__init__("\n".join(map(str, self.problems)))


def no_such(name: str, kind: str, there: Sequence[str]) -> RequestFailed:
    """Return the answer that a name in a path is not known."""
    shown = name if len(name) <= _LONGEST_VALUE else f"{name[:_LONGEST_VALUE]}…"
    some = f"there are {', '.join(there[:20])}" if there else "there are none"
    return RequestFailed(HTTPStatus.NOT_FOUND, Problem("AB735", f"{kind} {shown}", f"no such {kind}", some))


def answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the entries of the OpenAPI document for some statuses."""
    return {code: {"model": FailureAnswer, "description": HTTPStatus(code).phrase} for code in codes}


def failure(
    status: int, message: str, problems: Sequence[Problem] = (), headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an answer that is an error."""
    body = {"error_code": int(status), "message": message, "problems": [asdict(one) for one in problems]}
    return JSONResponse(body, status, headers)


def install(app: FastAPI) -> None:
    """Have the application answer every error in this shape."""
    app.add_exception_handler(RequestFailed, _of_request)
    app.add_exception_handler(AnabranchError, _of_ours)
    app.add_exception_handler(InvalidArgument, _of_argument)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_fault)


async def _of_request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestFailed)
    return failure(error.status, str(error), error.problems, error.headers)


async def _of_ours(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AnabranchError)
    return failure(status_of(error), str(error), error.problems)


def status_of(error: AnabranchError) -> HTTPStatus:
    """Return the status that stands for one of our errors."""
    if isinstance(error, Unreachable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, Refused | Locked):
        return HTTPStatus.CONFLICT
    if isinstance(error, EnvironmentFault):
        return HTTPStatus.BAD_GATEWAY
    return HTTPStatus.INTERNAL_SERVER_ERROR


async def _of_argument(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, InvalidArgument)
    problem = Problem("AB735", error.argument, error.message, "")
    return failure(HTTPStatus.NOT_FOUND, str(problem), [problem])


async def _of_validation(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # What was sent is not repeated: it may hold a secret.
    problems = [
        Problem("AB736", ".".join(map(str, one["loc"])), str(one["msg"]), "docs/reference/serve.md has the shapes")
        for one in error.errors()[:20]
    ]
    return failure(HTTPStatus.UNPROCESSABLE_ENTITY, "\n".join(map(str, problems)), problems)


async def _of_framework(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    remedy = "/docs/openapi.json lists all paths"
    problem = Problem("AB736", request.method, str(error.detail), remedy)
    headers = error.headers
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {"Allow": ", ".join(_methods(request))}
    return failure(error.status_code, str(problem), [problem], headers)


def _methods(request: Request) -> list[str]:
    """Return the methods of all routes of a path; the framework names those of the first one alone."""
    routes = (route for router in request.app.state.routers for route in router.routes)
    found = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in found for method in getattr(route, "methods", None) or ()}
    # Paths of the application itself are read.
    return sorted(methods or {"GET"})


async def _of_fault(request: Request, error: Exception) -> JSONResponse:
    # The trace is for the log; a caller learns nothing of it.
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = Problem("AB330", "", "this is a fault in Anabranch; its log has more", "report it with that log")
    return failure(HTTPStatus.INTERNAL_SERVER_ERROR, str(problem), [problem])
