"""A worker's application: the paths of Kafka Connect's REST interface alone, answered in a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from reconciler import __version__
from reconciler.metrics.server import ListenAddress
from reconciler.service.access import Tokens
from reconciler.service.app import Guard, is_loopback
from reconciler.service.audit import AuditLog
from reconciler.service.connect import loggers, routes
from reconciler.service.connect.routes import Host, Reader
from reconciler.service.connect.worker import WorkerHost
from reconciler.service.context import AccessRules
from reconciler.service.failures import install
from reconciler.service.server import TlsFiles, config_of, listening

_HEALTHY = {"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."}


def application(host: WorkerHost, tokens: Tokens, audit: AuditLog, *, is_local: bool) -> FastAPI:
    """Return the application.

    Args:
        host: the worker.
        tokens: those that are accepted.
        audit: where actions are recorded.
        is_local: whether it listens on a loopback address, where it answers to names of this machine alone.
    """
    app = FastAPI(title="Anabranch", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.access = AccessRules(tokens, audit)
    install(app)
    routes.install(app, host)
    app.include_router(loggers.router)
    app.add_exception_handler(HTTPException, _of_framework)

    @app.api_route("/", methods=["GET", "HEAD"])
    def get_root(host: Host, _: Reader) -> dict[str, str]:
        """Return what this worker is, and where its connectors are kept."""
        return {"version": __version__, "commit": "", "kafka_cluster_id": host.cluster_id()}

    @app.get("/health")
    def get_health() -> dict[str, str]:
        """Answer while the worker answers."""
        return _HEALTHY

    app.add_middleware(Guard, is_local=is_local)
    return app


async def _of_framework(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return routes.refusal(error.status_code, f"HTTP {error.status_code} {HTTPStatus(error.status_code).phrase}")


@contextlib.contextmanager
def answering(
    host: WorkerHost, tokens: Tokens, audit: AuditLog, address: ListenAddress, tls: TlsFiles | None
) -> Iterator[str]:
    """Answer requests while it is used as a context manager; yield the URL.

    Args:
        host: the worker.
        tokens: those that are accepted.
        audit: where actions are recorded.
        address: where.
        tls: None for plain HTTP.

    Raises:
        OSError: the address cannot be listened at.
        EnvironmentFault: AB739, certificate and key cannot be used.
    """
    app = application(host, tokens, audit, is_local=is_loopback(address.host))
    server = _Server(config_of(app, tls))
    with listening(address) as listener:
        authority = address.authority(listener.getsockname()[1])
        host.worker_id = authority
        thread = threading.Thread(target=server.run, args=([listener],), name="rest", daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://{authority}"
        finally:
            server.should_exit = True
            thread.join()


class _Server(uvicorn.Server):
    """Leaves signals to the run: it is in another thread than the main one."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[Any]:
        """Take none."""
        yield
