"""The application: all paths, and what holds for every request: sizes, hosts, origins and headers of answers."""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, urlsplit

from fastapi import FastAPI, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler import __version__
from reconciler.model.base.errors import Problem
from reconciler.service import api, events, kip382, web
from reconciler.service.connect import routes as connect
from reconciler.service.connect.declared import DeclaredHost
from reconciler.service.context import AccessRules, Context, ServiceContext
from reconciler.service.failures import RequestFailed, answers, failure, install

_MOST_BYTES = 1_000_000
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def application(context: ServiceContext, is_local: bool) -> FastAPI:
    """Return the application.

    Args:
        context: what it serves.
        is_local: whether it listens on a loopback address, where it answers to names of this machine alone.
    """
    app = FastAPI(
        title="Anabranch",
        version=__version__,
        description="Status, metrics and steering of the flows of a topology.",
        openapi_url="/docs/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    app.state.access = AccessRules(context.tokens, context.audit)
    install(app)
    app.state.routers = [one.router for one in (api, events, kip382, web)]
    for router in app.state.routers:
        app.include_router(router)
    connect.install(app, DeclaredHost(context))
    app.state.routers.append(connect.router)
    app.mount("/page", web.files)
    _add_probes(app)
    app.add_middleware(Guard, is_local=is_local)
    return app


def _add_probes(app: FastAPI) -> None:
    @app.get("/livez")
    def get_livez() -> dict[str, str]:
        """Answer while the process lives."""
        return {"status": "ok"}

    @app.get("/readyz", responses=answers(503))
    def get_readyz(context: Context) -> dict[str, Any]:
        """Answer 200 where the status topics of at least one target were read within the last half minute."""
        view = context.reading().view
        if view.failures and not view.flows:
            problems = [problem for error in view.failures.values() for problem in error.problems]
            raise RequestFailed(HTTPStatus.SERVICE_UNAVAILABLE, problems)
        return {"status": "ok", "unreachable": sorted(view.failures)}

    @app.get("/favicon.ico", include_in_schema=False)
    def get_icon() -> Response:
        return Response(status_code=204)


class Guard:
    """Refuses requests that a page of another site made a browser send, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, is_local: bool) -> None:
        self._app = app
        self._is_local = is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", _CONTENT_SECURITY_POLICY)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._is_local and not is_loopback(_name_in(host)):
            await self._refuse(scope, receive, send_with_headers, "Host", "it is no name of this machine's loopback")
            return
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _SAFE_METHODS and _split(origin).netloc != host:
            await self._refuse(
                scope, receive, send_with_headers, "Origin", "the request comes from a page of another site"
            )
            return
        await self._app(scope, _bounded(receive), send_with_headers)

    @staticmethod
    async def _refuse(scope: Scope, receive: Receive, send: Send, where: str, message: str) -> None:
        problem = Problem("AB733", where, message, "ask by the address that the service printed when it began")
        await failure(HTTPStatus.FORBIDDEN, str(problem), [problem])(scope, receive, send)


def _bounded(receive: Receive) -> Receive:
    """Return a function that receives a body up to what is allowed, whether its length was announced or not."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > _MOST_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {_MOST_BYTES:,} bytes")
        return message

    return bounded


def _name_in(host: str) -> str:
    """Return the name in a `Host` header; empty where it has none."""
    return _split(f"//{host}").hostname or ""


def _split(url: str) -> SplitResult:
    """Return the parts of a URL; none of what is no URL, as `http://[::1`."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's loopback, by name or by address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"
