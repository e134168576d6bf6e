"""Runs the application until it is to end, and the reader of the status topics beside it."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI

from reconciler.metrics.server import ListenAddress
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.service.app import application, is_loopback
from reconciler.service.context import ServiceContext

_BACKLOG = 128
_MOST_CONNECTIONS = 500
# What answers still is given so long when the service ends.
_GRACE = 3


class TlsFiles(NamedTuple):
    """Certificate chain and private key, as PEM."""

    certificate: Path
    key: Path


def check_exposure(address: ListenAddress, tls: TlsFiles | None, has_tokens: bool) -> None:
    """Check that no other machine gets answers without a token, or reads along.

    Raises:
        DeclaredInputError: AB739, the address is no loopback, and TLS or tokens are missing.
    """
    if is_loopback(address.host) or (tls is not None and has_tokens):
        return
    missing = " and ".join(
        what for what, is_there in (("TLS", tls is not None), ("tokens", has_tokens)) if not is_there
    )
    message = (
        f"{address.host} can be reached from other machines, and {missing} {'are' if ' ' in missing else 'is'} missing"
    )
    remedy = "give --tls-certificate, --tls-key and --token, or listen on 127.0.0.1 behind a proxy"
    raise DeclaredInputError(Problem("AB739", "--listen", message, remedy))


def serve(
    context: ServiceContext, address: ListenAddress, tls: TlsFiles | None, announce: Callable[[str], None]
) -> None:
    """Answer requests until SIGINT or SIGTERM.

    Args:
        context: what is served.
        address: where.
        tls: None for plain HTTP.
        announce: receives the URL when requests are answered.

    Raises:
        OSError: the address cannot be listened at.
        EnvironmentFault: AB739, certificate and key cannot be used.
        AnabranchError: a target refuses what no waiting mends, as a wrong password; one that is away is waited for.
    """
    server = _Server(config_of(application(context, is_loopback(address.host)), tls), context.stopping)
    with listening(address) as listener:
        context.exporter.look_first()
        announce(f"{'https' if tls else 'http'}://{address.authority(listener.getsockname()[1])}")
        reader = threading.Thread(target=context.exporter.run, args=(context.stopping,), name="reader", daemon=True)
        follower = threading.Thread(target=context.follow, name="overrides", daemon=True)
        for thread in (reader, follower):
            thread.start()
        server.run([listener])
        context.stopping.set()
        for thread in (reader, follower):
            thread.join()


def config_of(app: FastAPI, tls: TlsFiles | None) -> uvicorn.Config:
    """Return how an application is served.

    Raises:
        EnvironmentFault: AB739, certificate and key cannot be used.
    """
    config = uvicorn.Config(
        app,
        # Its own log has a line for each request, which is no event; faults go through ours.
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    try:
        config.load()
    except OSError as error:
        # ssl.SSLError is one, too.
        message = f"certificate and key cannot be used: {error.strerror or error}"
        remedy = "give a certificate chain and its private key, both as PEM"
        raise EnvironmentFault(Problem("AB739", str(tls.certificate if tls else ""), message, remedy)) from None
    return config


@contextlib.contextmanager
def listening(address: ListenAddress) -> Iterator[socket.socket]:
    """Listen at an address while it is used as a context manager.

    Raises:
        OSError: the address cannot be listened at.
    """
    # asyncio sends small answers at once only on sockets whose protocol is given: else each waits 40 ms for the delayed
    # acknowledgement of the client.
    with socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        yield listener


class _Server(uvicorn.Server):
    """Ends streams when it is to end, and then returns: uvicorn's own would raise the signal again."""

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM while requests are answered."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End."""
        self._stopping.set()
        super().handle_exit(sig, frame)
