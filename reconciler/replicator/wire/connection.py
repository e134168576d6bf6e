"""kafka-python's connections, made fit for bulk data: whole answers read into one buffer, requests sent in pieces.

Only `requests` uses this. Connecting, TLS, SASL, framing and time-outs stay the library's.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, cast

import kafka.errors as kafka_errors
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.parser import KafkaProtocol

from reconciler.replicator.wire.compact import skip_tags

_SCRATCH = 64 * 1024
# A larger frame's buffer is given back at once.
_LARGEST_KEPT = 24 * 2**20
# How many buffers one call hands to the kernel, which takes 1,024 at most.
_PIECES = 256
_SIZE = struct.Struct(">i")
_SHORTEST_PAUSE = 0.001
_CLOSED = "closed by the broker"
_MAY_NOT_SEND = "nothing may be sent any more"
# What the kernel still holds of a connection dies with it, instead of being sent for minutes (socket(7)).
_NO_LINGER = struct.pack("ii", 1, 0)
_CLOSED_HERE = "closed while sending"
_UNREADABLE = "the broker's answer cannot be read"
_NO_FRAME = "the broker sent no Kafka frame"
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class RawHeader:
    """What a request of our own encoding leaves behind until its answer comes.

    Attributes:
        correlation_id: of the request.
        decode: makes a value of the answer's bytes behind its header; the value has a `throttle_time_ms`.
    """

    def __init__(self, correlation_id: int, decode: Callable[[memoryview], Any]) -> None:
        self.correlation_id = correlation_id
        self.decode = decode


class _WholeFrames(KafkaProtocol):
    """The library's protocol, fed with whole frames instead of pieces that it would have to put together."""

    bytes_to_send: list[Any]

    def receive_bytes(self, frame: memoryview) -> list[Any]:
        """Decode one frame, its size already taken off."""
        if self.in_flight_requests and isinstance(self.in_flight_requests[0], RawHeader):
            return [self._raw(self.in_flight_requests.popleft(), frame)]
        # Other answers' decoders want the library's own buffer; they are small.
        whole = KafkaBytes(len(frame))
        whole.write(frame)
        whole.seek(0)
        return [self._process_response(whole)]

    def _raw(self, header: RawHeader, frame: memoryview) -> tuple[int, Any]:
        (correlation_id,) = _SIZE.unpack_from(frame)
        if correlation_id != header.correlation_id:
            message = f"an answer to request {correlation_id} where {header.correlation_id} was expected"
            raise kafka_errors.CorrelationIdError(message)
        try:
            return correlation_id, header.decode(frame[skip_tags(frame, _SIZE.size) :])
        except (ValueError, IndexError, struct.error) as error:
            raise kafka_errors.KafkaProtocolError(_UNREADABLE) from error

    def send_bytes(self) -> list[bytes]:
        """Hand out all pending requests, in pieces that nobody has put together yet."""
        pieces: list[bytes] = []
        for request in self.bytes_to_send:
            pieces += request if isinstance(request, list) else (request,)
        self.bytes_to_send.clear()
        return pieces


class _Framing:
    """Puts frames together while reading: large ones are read straight into their own buffer, once."""

    _net: Any
    _sock: Any
    _protocol: Any
    may_send: Callable[[], bool] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._head = bytearray()
        self._frame: memoryview | None = None
        self._filled = 0
        self._buffer = bytearray()

    async def _read_from_sock(self: Any) -> None:
        await self._net.begin_reading(self._sock)
        while self._read and not self._closed:
            error = self._read_ready()
            if error is not None:
                self.abort(error=error)
                return
            self.last_read = time.monotonic()
            await self._net.go_on_reading()

    def _read_ready(self) -> Exception | None:
        """Read what there is; return why the connection must end, if it must."""
        try:
            while self._read_some():
                pass
        except _WOULD_BLOCK:
            return None
        except kafka_errors.KafkaError as error:
            return cast("Exception", error)
        except Exception as error:
            # Whatever it is, this connection is of no use any more; its requests must fail now, not at their time-outs.
            return cast("Exception", kafka_errors.KafkaConnectionError(error))
        return None

    def _read_some(self) -> bool:
        """Read once; True when the socket may hold more."""
        frame = self._frame
        room = self._scratch if frame is None else frame[self._filled :]
        count = self._sock.recv_into(room)
        if not count:
            raise ConnectionError(_CLOSED)
        if frame is None:
            self._take(room[:count])
        else:
            self._filled += count
            if self._filled == len(frame):
                self._hand_over(frame)
        # TLS hands out one record at a time and keeps the rest to itself, where select() cannot see it.
        return count == len(room) or isinstance(self._sock, ssl.SSLSocket)

    def _take(self, data: memoryview) -> None:
        """Cut small frames out of `data`, and begin a frame that is not whole yet."""
        while data:
            if self._frame is None:
                missing = _SIZE.size - len(self._head)
                self._head += data[:missing]
                data = data[missing:]
                if len(self._head) < _SIZE.size:
                    return
                (size,) = _SIZE.unpack(self._head)
                if size < 0:
                    raise ConnectionError(_NO_FRAME)
                self._head.clear()
                self._frame, self._filled = self._room_for(size), 0
            piece = data[: len(self._frame) - self._filled]
            self._frame[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            data = data[len(piece) :]
            if self._filled == len(self._frame):
                self._hand_over(self._frame)

    def _room_for(self, size: int) -> memoryview:
        """Return room for a frame: the last large frame's when nobody looks at it any more, as new pages cost time."""
        if not _SCRATCH < size <= _LARGEST_KEPT:
            return memoryview(bytearray(size))
        if len(self._buffer) < size or not _is_free(self._buffer):
            self._buffer = bytearray(size)
        return memoryview(self._buffer)[:size]

    def _hand_over(self, frame: memoryview) -> None:
        self._frame, self._filled = None, 0
        protocol = self._protocol
        if protocol is not None:
            # The connection makes its parser itself, after it has got its transport.
            protocol.parser.__class__ = _WholeFrames
            protocol.data_received(frame)

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self: Any, data: bytes | list[bytes]) -> None:
        """Send at once what the socket takes; the rest follows when it takes more."""
        if not self._write or self._closed:
            message = "the transport is closed"
            raise RuntimeError(message)
        self._write_buffer.extend(data if isinstance(data, list) else (data,))
        if not self._writing and not self._send_now():
            self._writing = True
            self._write_task = self._net.call_soon(self._write_to_sock)

    def _send_now(self: Any) -> bool:
        """Return whether everything is out. Errors are left to whoever writes the rest, who deals with them."""
        try:
            while self._write_buffer:
                self._send_once()
        except OSError:
            return False
        self.last_write = time.monotonic()
        return True

    def _sock_send(self: Any) -> tuple[int, Exception | None]:
        """Do what the library does, with many pieces in one call."""
        total = 0
        if self._sock is None:
            return total, kafka_errors.KafkaConnectionError(_CLOSED_HERE)
        try:
            while self._write_buffer:
                total += self._send_once()
        except _WOULD_BLOCK:
            return total, None
        except Exception as error:
            return total, kafka_errors.KafkaConnectionError(error)
        return total, None

    def _send_once(self: Any) -> int:
        """Hand pieces to the socket in one call, unless nothing may be sent any more; keep what it did not take."""
        if self.may_send is not None and not self.may_send():
            raise ConnectionError(_MAY_NOT_SEND)
        buffer: deque[bytes | memoryview] = self._write_buffer
        if isinstance(self._sock, ssl.SSLSocket):
            sent = count = self._sock.send(buffer[0])
        else:
            sent = count = self._sock.sendmsg(islice(buffer, _PIECES))
        while count:
            piece = buffer.popleft()
            if count < len(piece):
                buffer.appendleft(memoryview(piece)[count:])
                break
            count -= len(piece)
        return int(sent)


def _is_free(buffer: bytearray) -> bool:
    """Whether no view of `buffer` is left: a bytearray with views refuses to change its size."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True


class _BulkTransport(_Framing, KafkaTCPTransport):
    """A plain connection that reads whole frames."""


class _BulkTlsTransport(_Framing, KafkaSSLTransport):
    """A TLS connection that reads whole frames."""


class BulkManager(KafkaConnectionManager):
    """A connection manager whose transports read whole frames.

    Attributes:
        failure: why the first connection since it was cleared could not be made; a bootstrap only says that none was.
        may_send: asked right before each write to a socket, where there is anything to ask; a connection that may not
            send breaks.
    """

    failure: BaseException | None = None
    may_send: Callable[[], bool] | None = None

    async def _connect(self, node: Any, conn: Any, *arguments: Any, **options: Any) -> None:
        """Do what the library does, and remember what it keeps to its log."""
        await super()._connect(node, conn, *arguments, **options)
        if self.failure is None and conn.init_future.failed():
            self.failure = conn.init_future.exception

    def throttled(self, node: int) -> float:
        """Return for how many seconds a broker wants to be left alone, 0 when it does not.

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
        """Begin at the declared addresses again when next connecting; who does so already is not disturbed.

        The library cannot stand two at a time: the second one fails with an error of its own.
        """
        if self.bootstrapped:
            self._bootstrap_future = None

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """Do what the library does, with other transports."""
        sock = await create_connection(
            self._net, node.host, node.port, self.config["socket_options"], timeout_at=timeout_at
        )
        if self.may_send is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        if self.ssl_enabled:
            options = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
            transport: Any = _BulkTlsTransport(self._net, sock, host=node.host, **options)
        else:
            transport = _BulkTransport(self._net, sock, host=node.host)
        transport.may_send = self.may_send
        try:
            await transport.handshake()
        except Exception as error:
            transport.close()
            message = f"handshake failed: {error}"
            raise kafka_errors.KafkaConnectionError(message) from error
        return transport
