"""What every path needs: the topology, the newest reading, the caller; and what the caller must be allowed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from reconciler.metrics.collect import Reading
from reconciler.metrics.exporter import LOOK_EVERY, Exporter
from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.base.text import json_text
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.operate.flows.overrides import Overriding
from reconciler.report.status.summary import FlowSummary
from reconciler.report.status.to_json import status_json
from reconciler.service.access import Caller, Tokens
from reconciler.service.audit import AuditLog
from reconciler.service.failures import RequestFailed, no_such
from reconciler.service.history import History

_MOST_ANSWERS = 200


@dataclass(frozen=True)
class AccessRules:
    """Which callers may do what, and where it is on record.

    Attributes:
        tokens: those that are accepted.
        audit: where actions are recorded.
    """

    tokens: Tokens
    audit: AuditLog


@dataclass
class ServiceContext:
    """One service.

    Attributes:
        topology: what is declared, with what is in force over it.
        exporter: reads the status topics.
        tokens: those that are accepted.
        audit: where actions are recorded.
        set_log_levels: receives rooms that log debug lines from now on, as `--verbose` has them; raises
            InvalidArgument where one does not exist.
        history: figures over time.
        overriding: changes flows at run time; None where files alone do.
        stopping: set when the service ends: what streams must end, too.
    """

    topology: Topology
    exporter: Exporter
    tokens: Tokens
    audit: AuditLog
    set_log_levels: Callable[[str], None]
    history: History
    overriding: Overriding | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    _busy: dict[str, threading.Lock] = field(default_factory=dict)
    _status: tuple[Reading, dict[str, Any]] | None = None
    _answers: tuple[Reading, dict[Hashable, bytes]] | None = None

    def __post_init__(self) -> None:
        self.declared = self.topology

    def take(self, topology: Topology) -> None:
        """Go by what is in force over the files from now on."""
        if topology is not self.topology:
            self.topology = topology
            self.exporter.take(topology)

    def follow(self) -> None:
        """Look for overrides of other processes, again and again, until the service ends."""
        while self.overriding is not None and not self.stopping.wait(LOOK_EVERY):
            # The reader of the status topics reports clusters that do not answer.
            with suppress(AnabranchError):
                self.take(self.overriding.topology())

    def reading(self) -> Reading:
        """Return the newest reading.

        Raises:
            RequestFailed: 503, there is none that still counts.
        """
        reading = self.exporter.reading
        if reading is None:
            message = "the status topics were not read within the last half minute"
            problem = Problem("AB325", "", message, "see the log of this service, and try again in a few seconds")
            raise RequestFailed(HTTPStatus.SERVICE_UNAVAILABLE, problem, {"Retry-After": "2"})
        return reading

    def status(self) -> dict[str, Any]:
        """Return the newest reading as `anabranch status -o json` prints it; made once for each reading.

        Raises:
            RequestFailed: as of `reading`.
        """
        reading = self.reading()
        known = self._status
        if known is None or known[0] is not reading:
            summaries = [one for _, one, _ in reading.flows.values()]
            known = reading, status_json(summaries, reading.view.now, sorted(reading.view.failures))
            self._status = known
        return known[1]

    def answer(self, key: Hashable, make: Callable[[], Any]) -> Response:
        """Return an answer as JSON; see `body`."""
        return Response(self.body(key, make), media_type="application/json")

    def body(self, key: Hashable, make: Callable[[], Any]) -> bytes:
        """Return the body of an answer as JSON, which is made once for each reading.

        Args:
            key: what is asked for; equal keys have equal answers.
            make: returns the answer as JSON types.

        Raises:
            RequestFailed: as of `reading`.
        """
        reading = self.reading()
        held = self._answers
        if held is None or held[0] is not reading:
            held = self._answers = reading, {}
        body = held[1].get(key)
        if body is None:
            body = json_text(make()).encode()
            # Each combination of parameters is a key: they must not fill the memory.
            if len(held[1]) < _MOST_ANSWERS:
                held[1][key] = body
        return body

    def flow(self, name: str) -> Flow:
        """Return a declared flow.

        Raises:
            RequestFailed: 404.
        """
        found = next((flow for flow in self.topology.flows if flow.name == name), None)
        if found is None:
            raise no_such(name, "flow", [flow.name for flow in self.topology.flows])
        return found

    def summary(self, name: str) -> FlowSummary:
        """Return the figures of a flow.

        Raises:
            RequestFailed: 404, none of that name is declared; 503, its target does not answer, or as of `reading`.
        """
        flow = self.flow(name)
        reading = self.reading()
        if name in reading.flows:
            return reading.flows[name][1]
        problems = reading.view.failures[flow.target].problems if flow.target in reading.view.failures else ()
        raise RequestFailed(HTTPStatus.SERVICE_UNAVAILABLE, problems or Problem("AB325", name, "it was not read", ""))

    def cluster(self, alias: str) -> str:
        """Return the alias of a declared cluster.

        Raises:
            RequestFailed: 404.
        """
        if alias not in self.topology.clusters:
            raise no_such(alias, "cluster", self.topology.aliases)
        return alias

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Have what reads clusters done by one request at a time.

        Raises:
            RequestFailed: 429, another request does it just now.
        """
        lock = self._busy.setdefault(what, threading.Lock())
        if not lock.acquire(blocking=False):
            problem = Problem("AB737", what, "another request reads the clusters for it just now", "try again soon")
            raise RequestFailed(HTTPStatus.TOO_MANY_REQUESTS, problem, {"Retry-After": "5"})
        try:
            yield
        finally:
            lock.release()


# The framework runs what is not async in a thread, which costs more than what these do.
async def context_of(request: Request) -> ServiceContext:
    """Return the service that a request is for."""
    found: ServiceContext = request.app.state.context
    return found


Context = Annotated[ServiceContext, Depends(context_of)]


async def access_of(request: Request) -> AccessRules:
    """Return the rules for callers."""
    found: AccessRules = request.app.state.access
    return found


async def reader_of(request: Request, access: Annotated[AccessRules, Depends(access_of)]) -> Caller:
    """Return the caller.

    Raises:
        RequestFailed: 401, without a token, or with a wrong one.
    """
    caller = access.tokens.caller(request.headers.get("authorization"))
    if caller is None:
        has_one = "authorization" in request.headers
        message = "the token is wrong" if has_one else "a token is needed"
        problem = Problem("AB733", "Authorization", message, "send the header Authorization: Bearer TOKEN")
        raise RequestFailed(HTTPStatus.UNAUTHORIZED, problem, {"WWW-Authenticate": 'Bearer realm="anabranch"'})
    return caller


Reader = Annotated[Caller, Depends(reader_of)]


async def operator_of(request: Request, access: Annotated[AccessRules, Depends(access_of)], caller: Reader) -> Caller:
    """Return the caller of a change.

    Raises:
        RequestFailed: 403, the caller may only read.
    """
    if caller.role == "operate":
        return caller
    about = {"method": request.method, "path": request.url.path}
    access.audit.write(caller.name, "refused", "AB733", about)
    remedy = "use a token with the role operate" if access.tokens.are_needed else "start the service with --operate"
    problem = Problem("AB733", caller.name, "it may read, and change nothing", remedy)
    raise RequestFailed(HTTPStatus.FORBIDDEN, problem)


Operator = Annotated[Caller, Depends(operator_of)]
