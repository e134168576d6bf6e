"""An HTTP server for scrapes: `GET /metrics`, and `/livez`, `/readyz` for probes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from reconciler.metrics.exporter import Exporter
from reconciler.metrics.exposition import OPENMETRICS, PLAIN, wants_openmetrics

_REQUEST_SECONDS = 30.0
_INDEX = b"anabranch: metrics are at /metrics\n"


class ListenAddress(NamedTuple):
    """Where a server listens: a name or an address, and a port; port 0 takes a free one."""

    host: str
    port: int

    @property
    def family(self) -> socket.AddressFamily:
        """The address family of the host."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    def authority(self, port: int) -> str:
        """Return host and port as a URL has them; the port is the one that was taken."""
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"


class MetricsServer:
    """Serves an exporter's metrics while it is used as a context manager; it listens from when it is made.

    Args:
        exporter: answers.
        address: where.

    Raises:
        OSError: the address cannot be listened at.

    Attributes:
        url: of the metrics.
    """

    def __init__(self, exporter: Exporter, address: ListenAddress) -> None:
        self._server = _Server(address, exporter)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self.url = f"http://{address.authority(int(self._server.server_address[1]))}/metrics"

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: ListenAddress, exporter: Exporter) -> None:
        self.exporter = exporter
        self.address_family = address.family
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a client that went away is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "anabranch"
    sys_version = ""
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        """Answer a scrape, a probe, or where the metrics are."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer as to GET, without a body."""
        self._answer(with_body=False)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log no request."""

    def _answer(self, *, with_body: bool) -> None:
        paths: dict[str, Callable[[], tuple[HTTPStatus, str, Iterator[bytes]]]] = {
            "/metrics": self._metrics,
            "/livez": lambda: (HTTPStatus.OK, PLAIN, iter((b"ok\n",))),
            "/readyz": self._readiness,
            "/": lambda: (HTTPStatus.OK, PLAIN, iter((_INDEX,))),
        }
        path = self.path.partition("?")[0]
        if path not in paths:
            self.send_error(HTTPStatus.NOT_FOUND, "Not Found", "metrics are at /metrics")
            return
        status, kind, pieces = paths[path]()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        # The length is known at the end only: the connection's end is the end of the body (RFC 9112, 6.3).
        self.send_header("Connection", "close")
        self.end_headers()
        if with_body:
            for piece in pieces:
                self.wfile.write(piece)

    def _metrics(self) -> tuple[HTTPStatus, str, Iterator[bytes]]:
        is_openmetrics = wants_openmetrics(self.headers.get("Accept", ""))
        return (
            HTTPStatus.OK,
            OPENMETRICS if is_openmetrics else PLAIN,
            self.server.exporter.text(is_openmetrics=is_openmetrics),
        )

    def _readiness(self) -> tuple[HTTPStatus, str, Iterator[bytes]]:
        if self.server.exporter.view is None:
            return HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, iter((b"no status topic was read yet\n",))
        return HTTPStatus.OK, PLAIN, iter((b"ok\n",))
