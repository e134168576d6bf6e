"""Makes connections to the brokers of one cluster, with its secrets as they are by then.

Only `loop` makes one, for `requests`. Which brokers there are, when to wait before the next attempt, and how to log in,
stay the library's.
"""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.declared.clients import LineSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import peers, tls
from reconciler.wire.net import kerberos
from reconciler.wire.net.connection import (
    LOGIN_REFUSED,
    BulkTlsTransport,
    BulkTransport,
    NotLetInError,
    SilentError,
)
from reconciler.wire.net.sockets import connected
from reconciler.wire.protocol.values import error_text

_LOG = logging.getLogger(__name__)
_SHORTEST_PAUSE = 0.001
_CUT_OFF = 10.0
# What the kernel still holds of a connection dies with it, instead of being sent for minutes (socket(7)).
_NO_LINGER = struct.pack("ii", 1, 0)

kerberos.register()


class _Tokens(AbstractTokenProvider):
    """Returns tokens for OAUTHBEARER; the library calls it at each login."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def token(self) -> str:
        return self._cluster.token().text

    def extensions(self) -> dict[str, str]:
        return dict(self._cluster.token().extensions)


class BulkManager(KafkaConnectionManager):
    """A connection manager whose transports read whole frames; each connection is made with the secrets of its time.

    Args:
        net: the library's loop.
        cluster: the cluster to connect to.
        settings: the library's, beside those that the cluster declares.

    Raises:
        EnvironmentFault: AB304, a secret cannot be resolved.

    Attributes:
        failure: why the first connection since it was cleared failed; a bootstrap reports only that none was made.
        may_send: called right before each write to a socket, if set; False breaks the connection.
    """

    failure: BaseException | None = None
    may_send: Callable[[], bool] | None = None

    def __init__(self, net: Any, cluster: Cluster, settings: dict[str, object]) -> None:
        self._declared = cluster
        self._failing_since: float | None = None
        tokens = {} if cluster.security.oauth is None else {"sasl_oauth_token_provider": _Tokens(cluster)}
        super().__init__(net, **cluster.kafka_python() | settings | tokens)

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> Any:
        """Do what the library does; a new connection is made with credentials as they are now, to a broker of now."""
        if node_id not in self._conns:
            if isinstance(self.failure, LOGIN_REFUSED) and self.cluster.is_bootstrap(node_id):
                # The library would try again and again, and some brokers lock out principals that do.
                raise self.failure
            # They may have changed since they were refused.
            self._auth_failures.clear()
            try:
                self.config.update(self._declared.kafka_python())
            except AnabranchError as error:
                raise NotLetInError(str(error)) from None
        try:
            return super().get_connection(node_id, *arguments, **options)
        except kafka_errors.UnknownBrokerIdError:
            self._note(is_reached=False)
            # It was down when metadata was read, and the metadata of other brokers lists it again; the library would
            # refresh its own only after minutes.
            self.cluster.request_update()
            raise

    async def _connect(self, node: Any, conn: Any, *arguments: Any, **options: Any) -> None:
        """Do what the library does, and remember what it keeps to its log."""
        conn.config[kerberos.DECLARED] = self._declared
        await super()._connect(node, conn, *arguments, **options)
        self._note(is_reached=conn.connected)
        where = f"{self._declared.where}: {node.host}:{node.port}"
        if conn.connected:
            _LOG.debug("%s connected as client %s", where, self.config["client_id"])
        elif conn.init_future.failed():
            _LOG.debug("%s not connected: %s", where, error_text(conn.init_future.exception))
        if self.failure is None and conn.init_future.failed():
            self.failure = self._in_words(node, conn.init_future.exception)

    def _in_words(self, node: Any, error: BaseException) -> BaseException:
        """Return why a connection could not be made; for a broker that sent nothing, its address."""
        if not isinstance(error, kafka_errors.RequestTimedOutError):
            return error
        seconds = self.config["request_timeout_ms"] / 1000
        return SilentError(f"{self._declared.where}: {node.host}:{node.port} answers nothing for {seconds:g} s")

    def _note(self, *, is_reached: bool) -> None:
        now = time.monotonic()
        self._failing_since = None if is_reached else now if self._failing_since is None else self._failing_since

    @property
    def is_cut_off(self) -> bool:
        """Whether no broker is connected, and none of those that are known could be reached for some time.

        A cluster may have come back with other brokers, or other addresses of them; the library connects to those
        alone that it has. Kafka's own clients bootstrap again as well then (KIP-899).
        """
        since = self._failing_since
        is_long = since is not None and time.monotonic() - since >= _CUT_OFF
        return is_long and not any(connection.connected for connection in self._conns.values())

    def is_connected(self, node: int | None) -> bool:
        """Return whether requests to a broker leave at once."""
        connection = self._conns.get(node)
        return connection is not None and connection.connected

    def connection(self, node: int) -> Any:
        """Return the library's connection to a broker, None where requests would not leave at once."""
        return self._conns[node] if self.is_connected(node) else None

    def versions(self, node: int | None) -> Any:
        """Return which versions of requests a broker supports, in the library's terms.

        For a broker that is not connected they are those of the first broker that answered; None before.
        """
        return self._conns[node].broker_version_data if self.is_connected(node) else self.broker_version_data

    def throttled(self, node: int) -> float:
        """Return the seconds that are left of a broker's throttle time; 0 without one.

        The library refuses to send meanwhile, which would look like a lost connection.
        """
        connection = self._conns.get(node)
        if connection is None or "throttle" not in connection.paused:
            return 0.0
        return max(_SHORTEST_PAUSE, float(connection._throttle_time) - time.monotonic())

    def drop(self, error: BaseException) -> None:
        """Break all connections at once; what waits to be sent is lost, and what waits for answers fails."""
        for connection in list(self._conns.values()):
            connection.close(error)

    def forget_bootstrap(self) -> None:
        """Use the declared addresses again for the next connection; a bootstrap that runs already goes on.

        The library allows one bootstrap at a time: a second one fails with an error of its own.
        """
        if self.bootstrapped:
            self._bootstrap_future = None

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """Do what the library does, with other transports; what does not become one is closed."""
        sock = await connected(self._net, (node.host, node.port), self.config["socket_options"], timeout_at)
        if self.may_send is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        address = f"{node.host}:{node.port}"
        transport = await self._secured(sock, node.host, address) if self.ssl_enabled else self._plain(sock, node.host)
        explain = self._why_closed if self.ssl_enabled else self._why_not_plain
        transport.where = f"{self._declared.where}: {address}"
        transport.explain = partial(explain, address)
        transport.may_send = self.may_send
        return transport

    def _plain(self, sock: socket.socket, host: str) -> BulkTransport:
        return BulkTransport(self._net, sock, host=host)

    async def _secured(self, sock: socket.socket, host: str, address: str) -> BulkTlsTransport:
        try:
            context = tls.context(self._declared)
            secured = BulkTlsTransport(self._net, sock, host=host, ssl_context=context)
        except AnabranchError as error:
            sock.close()
            raise NotLetInError(str(error)) from None
        except (OSError, ValueError) as error:
            sock.close()
            raise NotLetInError(_error_text(tls.unusable(self._declared, error))) from None
        try:
            await secured.shake_hands(time.monotonic() + self.config["socket_connection_setup_timeout_ms"] / 1000)
        except BaseException as error:
            secured.close()
            if isinstance(error, OSError):
                raise NotLetInError(_error_text(tls.problem(self._declared, address, error))) from None
            if not isinstance(error, Exception):
                raise
            message = f"handshake with {address} failed: {error_text(error)}"
            raise kafka_errors.KafkaConnectionError(message) from error
        return secured

    def _why_not_plain(self, address: str, found: OSError | bytes) -> str | None:
        if not isinstance(found, bytes):
            return None
        if peers.speaks_tls(found):
            return _error_text(tls.plaintext_refused(self._declared, address))
        return _error_text(tls.no_broker(self._declared, address, peers.who_answers(found)))

    def _why_closed(self, address: str, found: OSError | bytes) -> str:
        if isinstance(found, bytes):
            return _error_text(tls.no_broker(self._declared, address, peers.who_answers(found)))
        if tls.is_alert(found):
            return _error_text(tls.problem(self._declared, address, found))
        return _error_text(tls.closed(self._declared, address))


def socket_options(line: LineSettings) -> list[tuple[int, int, int]]:
    """Return the library's options of each socket, and those that are declared; they count before it is connected."""
    buffers = {socket.SO_SNDBUF: line.send_buffer_bytes, socket.SO_RCVBUF: line.receive_buffer_bytes}
    usual: list[tuple[int, int, int]] = KafkaConnectionManager.DEFAULT_CONFIG["socket_options"]
    return [*usual, *((socket.SOL_SOCKET, option, size) for option, size in buffers.items() if size is not None)]


def _error_text(problem: Problem) -> str:
    return f"{problem.where}: {problem.message}; {problem.remedy}"
