"""Small servers on this machine that speak TLS, or do not: what a client meets before anybody speaks Kafka."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from reconciler.embedded.certificates import Authority, Certificate
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Protocol, Security
from reconciler.model.declared.cluster import Cluster

HOST = "127.0.0.1"


def reference(path: Path) -> Reference:
    return Reference("file", str(path))


def trusting(authority: Authority, folder: Path, address: str, protocol: Protocol = "SSL") -> Cluster:
    """Return a cluster at an address whose brokers' certificates `authority` has signed, so it is declared."""
    ca = folder / "ca.pem"
    ca.write_text(authority.pem)
    return Cluster("east", (address,), security=Security(protocol, ca=reference(ca)))


@contextlib.contextmanager
def serving(
    own: Certificate | None,
    folder: Path,
    clients: Authority | None = None,
    prepare: Callable[[ssl.SSLContext], object] = bool,
    handshakes: list[bool] | None = None,
) -> Iterator[int]:
    """Listen with a certificate, or without TLS, and close each connection; yields the port.

    Args:
        own: the server's certificate; None for a server that does not speak TLS and closes at the first byte.
        folder: for its files.
        clients: whose certificates clients must have; None when they need none.
        prepare: called with the server's context, to have it speak as it does.
        handshakes: gets for each connection whether its handshake was done.
    """
    context: ssl.SSLContext | None = None
    if own is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*own.write(folder, "server"))
        prepare(context)
    if context is not None and clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.pem)
    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, context, handshakes), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def _serve(listening: socket.socket, context: ssl.SSLContext | None, handshakes: list[bool] | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            plain, _ = listening.accept()
            with contextlib.suppress(OSError), plain:
                plain.settimeout(5)
                if context is None:
                    plain.recv(1)
                    continue
                done = False
                try:
                    with context.wrap_socket(plain, server_side=True) as secured:
                        done = True
                        secured.recv(1)
                finally:
                    if handshakes is not None:
                        handshakes.append(done)
