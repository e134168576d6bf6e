"""kafka-python's connections, made fit for bulk data: answers read without copies, produce requests encoded in one go.

Only `requests` uses this. Connecting, TLS, SASL, framing and time-outs stay the library's.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, cast

import kafka.errors as kafka_errors
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.api_header import RequestHeader
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer.produce import ProduceRequest

_SCRATCH = 64 * 1024
_SIZE = struct.Struct(">i")
_SHORTEST_PAUSE = 0.001
_CLOSED = "closed by the broker"
_MAY_NOT_SEND = "nothing may be sent any more"
# What the kernel still holds of a connection dies with it, instead of being sent for minutes (socket(7)).
_NO_LINGER = struct.pack("ii", 1, 0)
_NO_FRAME = "the broker sent no Kafka frame"
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Frame:
    """A whole answer, read as kafka-python's decoder reads, but without copying what is left after the header."""

    def __init__(self, data: bytearray) -> None:
        self._view = memoryview(data)
        self._at = 0

    def read(self, size: int | None = None) -> bytes | memoryview:
        """Return the next `size` bytes, or a view of all that is left."""
        start = self._at
        if size is None:
            self._at = len(self._view)
            return self._view[start:]
        self._at = min(start + size, len(self._view))
        return bytes(self._view[start : self._at])

    def seek(self, at: int) -> None:
        """Go to a place, counted from the beginning."""
        self._at = at


class _WholeFrames(KafkaProtocol):
    """The library's protocol, fed with whole frames instead of pieces that it would have to put together."""

    def receive_bytes(self, data: bytearray) -> list[Any]:
        """Decode one frame, its size already taken off."""
        if self.in_flight_requests and self.in_flight_requests[0].request_api_key == FetchRequest.API_KEY:
            return [self._process_response(_Frame(data))]
        # Some other answers' decoders want the library's own buffer; they are small.
        whole = KafkaBytes(len(data))
        whole.write(data)
        whole.seek(0)
        return [self._process_response(whole)]


class _Framing:
    """Puts frames together while reading: large ones are read straight into their own buffer, once."""

    _sock: Any
    _protocol: Any
    may_send: Callable[[], bool] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._head = bytearray()
        self._frame: bytearray | None = None
        self._filled = 0

    def _sock_send(self) -> tuple[int, Exception | None]:
        """Do what the library does, unless nothing may be sent any more."""
        if self.may_send is not None and not self.may_send():
            return 0, kafka_errors.KafkaConnectionError(_MAY_NOT_SEND)
        sent: tuple[int, Exception | None] = cast("Any", super())._sock_send()
        return sent

    async def _read_from_sock(self: Any) -> None:
        while self._read and not self._closed:
            await self._net.wait_read(self._sock)
            error = self._read_ready()
            if error is not None:
                self.abort(error=error)
                return
            self.last_read = time.monotonic()

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
        room = self._scratch if frame is None else memoryview(frame)[self._filled :]
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
                self._frame, self._filled = bytearray(size), 0
            piece = data[: len(self._frame) - self._filled]
            self._frame[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            data = data[len(piece) :]
            if self._filled == len(self._frame):
                self._hand_over(self._frame)

    def _hand_over(self, frame: bytearray) -> None:
        self._frame, self._filled = None, 0
        protocol = self._protocol
        if protocol is not None:
            # The connection makes its parser itself, after it has got its transport.
            protocol.parser.__class__ = _WholeFrames
            protocol.data_received(frame)


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
        """Begin at the declared addresses again when next connecting."""
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


class RawProduce:
    """A produce request of version 9 to 13, encoded with a single copy of the batches.

    It has the shape that kafka-python's connections ask of a request.

    Args:
        version: 9 to 12 name topics, 13 uses their ids.
        timeout_ms: how long the broker may wait for its replicas.
        rows: topic, topic id, partition and batch of each partition.
    """

    def __init__(self, version: int, timeout_ms: int, rows: Iterable[tuple[str, uuid.UUID | None, int, bytes]]) -> None:
        self.API_VERSION = version
        self.header: Any = None
        self._timeout_ms = timeout_ms
        # A topic made anew under its old name may be known by both ids at once: they must not be mixed.
        self._topics: dict[tuple[str, uuid.UUID | None], list[tuple[int, bytes]]] = {}
        for topic, topic_id, partition, batch in rows:
            key = (topic, topic_id if version >= _FIRST_WITH_IDS else None)
            self._topics.setdefault(key, []).append((partition, batch))

    def expect_response(self) -> bool:
        """Tell the connection that an answer comes."""
        return True

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Take the header's fields from the connection."""
        self.header = RequestHeader(
            request_api_key=ProduceRequest.API_KEY,
            request_api_version=self.API_VERSION,
            correlation_id=correlation_id,
            client_id=client_id,
        )

    def encode(self, framed: bool, header: bool) -> bytes:
        """Return the whole frame."""
        assert framed, "a connection always asks for the frame"
        assert header, "and for the header"
        parts: list[bytes] = [
            bytes(self.header.encode(flexible=True)),
            b"\x00" + struct.pack(">hi", -1, self._timeout_ms) + _uvarint(len(self._topics) + 1),
        ]
        for (topic, topic_id), partitions in self._topics.items():
            parts.append(self._name(topic, topic_id) + _uvarint(len(partitions) + 1))
            for partition, batch in partitions:
                parts += (struct.pack(">i", partition) + _uvarint(len(batch) + 1), batch, b"\x00")
            parts.append(b"\x00")
        parts.append(b"\x00")
        size = sum(map(len, parts))
        return b"".join([struct.pack(">i", size), *parts])

    def _name(self, topic: str, topic_id: uuid.UUID | None) -> bytes:
        if self.API_VERSION >= _FIRST_WITH_IDS:
            assert topic_id is not None, "this version is chosen only where every topic has an id"
            return topic_id.bytes
        name = topic.encode()
        return _uvarint(len(name) + 1) + name


_FIRST_WITH_IDS = 13
# The bit of a varint's byte that says that another follows.
_MORE = 0x80


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= _MORE:
        out.append((value & ~_MORE & 0xFF) | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)
