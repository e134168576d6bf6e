"""Connects sockets, and closes each that does not come to a connection.

The library leaves that to the garbage collector, which a worker runs seldom: while a broker is away each attempt
would leave a socket behind. `manager` calls it. Names, waiting and what an errno means stay the library's.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.inet import KafkaNetSocket

from reconciler.wire.protocol.values import error_text

_UNKNOWN = "DNS Resolution failure"
_TIMED_OUT = "Connection timed out"


async def connected(
    net: Any, address: tuple[str, int], options: Iterable[tuple[int, int, int]], until: float | None
) -> socket.socket:
    """Return a socket that is connected and does not block.

    Args:
        net: the library's loop.
        address: host and port; all addresses that the host's name has are tried.
        options: of the socket: level, name and value.
        until: when to give up (monotonic seconds); None for never.

    Raises:
        KafkaConnectionError: none of them answers; it holds the reason for the last one.
    """
    library = KafkaNetSocket()
    reason: str = _UNKNOWN
    for family, kind, protocol, _, place in library.dns_lookup(*address):
        sock: socket.socket | None = None
        try:
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            for option in options:
                sock.setsockopt(*option)
            await library.sock_connect(net, sock, place, timeout_at=until)
        except BaseException as error:
            if sock is not None:
                sock.close()
            if isinstance(error, kafka_errors.KafkaTimeoutError):
                raise kafka_errors.KafkaConnectionError(_TIMED_OUT) from None
            if not isinstance(error, OSError | kafka_errors.KafkaConnectionError):
                raise
            reason = f"unable to connect: {error_text(error)}" if isinstance(error, OSError) else error_text(error)
        else:
            return sock
    raise kafka_errors.KafkaConnectionError(reason)
