"""kafka-python's connections, made fit for bulk data: whole answers read into one buffer, requests sent in pieces.

Only `manager` uses this. TLS, SASL, framing and time-outs stay the library's.
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
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from reconciler.wire.net.buffers import is_free
from reconciler.wire.protocol import frame_limits
from reconciler.wire.protocol.frames import SIZE, DirectRequest, Header, TakenFrame, UnfitError, WholeFrames

_SCRATCH = 64 * 1024
# The buffer of a larger frame that may not stay is given back at once.
_LARGEST_KEPT = 28 * 2**20
# Of a frame that comes in pieces the next one is worth waking up for when it has so many bytes, or is the last. A slow
# line still moves every now and then.
_WORTH_READING = 256 * 1024
# How many buffers one call hands to the kernel, which takes 1,024 at most.
_PIECES = 256
# How a frame begins: its size, and the id of the request that it answers.
_START = struct.Struct(">ii")
# The most that one TLS record holds.
_TLS_RECORD = 16 * 1024
_CLOSED = "closed by the broker"
_MAY_NOT_SEND = "nothing may be sent any more"
_CLOSED_HERE = "closed while sending"
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class NotLetInError(kafka_errors.KafkaConnectionError):
    """There is no connection for want of other credentials or certificates; the text is complete."""

    def __str__(self) -> str:
        return str(self.args[0])


class SilentError(kafka_errors.KafkaConnectionError):
    """A connection was made, and no response arrives over it; the text is complete."""

    def __str__(self) -> str:
        return str(self.args[0])


class _ClosedError(ConnectionError):
    """The other side has ended the connection."""


ENDED_THERE = (ssl.SSLError, _ClosedError, ConnectionResetError, BrokenPipeError)


# What brokers answer to a failed login, whatever the principal.
LOGIN_REFUSED = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)


class _Framing:
    """Puts frames together while reading: large ones are read straight into their own buffer, once."""

    _net: Any
    _sock: Any
    _protocol: Any
    may_send: Callable[[], bool] | None = None
    # Called when something was read, while the rest of it may still be on its way.
    between: Callable[[], None] | None = None
    # The cluster and broker, for messages.
    where = "the broker"
    # Returns the meaning of a connection that ends, or begins with bytes that no broker sends, before the first
    # answer.
    explain: Callable[[OSError | bytes], str | None] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._head = bytearray()
        self._frame: memoryview | None = None
        self._filled = 0
        self._buffer = bytearray()
        # Whether views of the frame may be kept: it is read-only then.
        self._may_stay = False
        self._woken_by = 1
        self._holders = 0

    async def _read_from_sock(self: Any) -> None:
        await self._net.read_whenever(self._sock, self._on_readable)

    def _on_readable(self: Any) -> None:
        try:
            if self._read and self.read_now() and self.between is not None:
                self.between()
                if self._frame is not None:
                    # What was on its way may be there now.
                    self.read_now()
        except Exception as error:
            # Requests that wait for responses must fail, as no response is read any more.
            self.abort(error=kafka_errors.KafkaConnectionError(error))

    def read_now(self: Any) -> bool:
        """Read what there is; return whether the connection goes on."""
        error = self._read_ready()
        if error is not None:
            self.abort(error=error)
            return False
        self._wait_for_enough()
        self.last_read = time.monotonic()
        return True

    def hold(self) -> None:
        """Wake no task for bytes that arrive until `release`: the caller calls `read_now` often enough.

        The end of the connection is still noticed at once. Not under TLS, which takes records apart itself.
        """
        self._holders += 1
        self._wait_for_enough()

    def release(self) -> None:
        """Wake tasks again as before, once each `hold` has its `release`."""
        self._holders -= 1
        self._wait_for_enough()

    def _read_ready(self) -> Exception | None:
        """Read what there is; return why the connection must end, if it must."""
        has_read = False
        try:
            while self._read_some():
                has_read = True
        except _WOULD_BLOCK:
            return None
        except kafka_errors.KafkaProtocolError as error:
            return cast("Exception", error if isinstance(error, UnfitError) else UnfitError.of(self.where, error))
        except kafka_errors.KafkaError as error:
            return cast("Exception", error)
        except Exception as error:
            if has_read and isinstance(error, _ClosedError):
                # Bytes read before may hold the reason, and come first; the end is read again.
                return None
            # Whatever it is, this connection is of no use any more; its requests must fail now, not at their time-outs.
            return self._ended(error)
        return None

    def _wait_for_enough(self: Any) -> None:
        """Be woken by what is left of a frame at once: brokers send it in a piece or two for each partition."""
        frame = self._frame
        least = 1 if frame is None else min(len(frame) - self._filled, _WORTH_READING)
        if self._holders:
            least = _SCRATCH
        # What TLS has still to take apart is more than what it makes of it.
        if least == self._woken_by or self._sock is None or isinstance(self._sock, ssl.SSLSocket):
            return
        # With every second answer or so: `contextlib.suppress` would cost as much again.
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
        except OSError:
            return
        self._woken_by = least

    def _ended(self, error: Exception) -> Exception:
        """Return the error that ends a connection; a broker that requires another certificate ends it so (TLS 1.3)."""
        meaning = self.explain(error) if self.explain is not None and isinstance(error, ENDED_THERE) else None
        return NotLetInError(meaning) if meaning else cast("Exception", kafka_errors.KafkaConnectionError(error))

    def _read_some(self) -> bool:
        """Read once; True when the socket may hold more."""
        frame = self._frame
        room = self._scratch if frame is None else frame[self._filled :]
        count = self._sock.recv_into(room)
        if not count:
            raise _ClosedError(_CLOSED)
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
            if self._frame is None and not self._head and (behind := self._take_at_once(data)):
                data = data[behind:]
                continue
            if self._frame is None:
                missing = SIZE.size - len(self._head)
                self._head += data[:missing]
                data = data[missing:]
                if len(self._head) < SIZE.size:
                    return
                (size,) = SIZE.unpack(self._head)
                most, at_once = self._bounds()
                if not frame_limits.LEAST <= size <= most:
                    raise self._unfit(size, most, bytes(self._head) + bytes(data))
                self.explain = None
                self._head.clear()
                self._frame, self._filled = self._room_for(size, at_once), 0
                self._note_beginning()
            piece = data[: len(self._frame) - self._filled]
            self._frame[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            data = data[len(piece) :]
            if self._filled == len(self._frame):
                self._hand_over(self._frame)

    def _take_at_once(self, data: memoryview) -> int:
        """Have a frame taken where it stands, if it is whole and that is what it is for; return where it ends, or 0."""
        if len(data) < _START.size or not isinstance(request := self._awaited(), DirectRequest):
            return 0
        size, correlation_id = _START.unpack_from(data)
        end = SIZE.size + size
        if correlation_id != request.correlation_id or not _START.size < end <= len(data):
            return 0
        self._take_direct(request, data[SIZE.size : end])
        return int(end)

    def _awaited(self) -> Any:
        """Return the header of the request that is to be answered next, ours or the library's; None for no request."""
        parser = None if self._protocol is None else self._protocol.parser
        return parser.in_flight_requests[0] if parser is not None and parser.in_flight_requests else None

    def _take_direct(self, request: DirectRequest, frame: memoryview) -> None:
        protocol = self._protocol
        # An error here breaks the connection, and the request is still among those that fail with it.
        answer = request.answer_in(frame)
        protocol.parser.in_flight_requests.popleft()
        protocol.in_flight_requests.popleft()
        # The receiver may send more, and must not during the throttle time.
        if throttle := request.throttle_in(answer):
            protocol._maybe_throttle(TakenFrame(throttle))
        request.take(answer)
        protocol._reauth.on_response_processed()

    def _note_beginning(self) -> None:
        if isinstance(request := self._awaited(), Header):
            request.begins()

    def _bounds(self) -> tuple[int, int]:
        """Return how many bytes the frame that begins may have, and how many of them may be made room for at once."""
        protocol = self._protocol
        if protocol is None or protocol.initializing:
            return frame_limits.FIRST, frame_limits.FIRST
        request = self._awaited()
        asked = request.asked if isinstance(request, Header) else 0
        # What stands around the records is not asked for.
        return protocol.config["receive_message_max_bytes"] + asked, frame_limits.FIRST + asked

    def _unfit(self, size: int, most: int, first: bytes) -> Exception:
        """Return what it means that a frame cannot have the size that it begins with."""
        if self.explain is not None and (meaning := self.explain(first)):
            return NotLetInError(meaning)
        text = f"begins an answer of {size:,} bytes, where {frame_limits.LEAST} to {most:,} were expected"
        return cast("Exception", UnfitError(f"{self.where} {text}: the connection is closed"))

    def _room_for(self, size: int, at_once: int) -> memoryview:
        """Return room for a frame: that of an earlier frame without views if there is one, as new pages cost time.

        Bytes beyond `at_once` take no memory before they arrive: the peer may send any size.
        """
        self._may_stay = False
        if size > at_once:
            return frame_limits.untouched(size)
        if not _SCRATCH < size <= _LARGEST_KEPT:
            return memoryview(bytearray(size))
        room: memoryview | None = self._net.buffers.room(size)
        if room is not None:
            self._may_stay = True
            return room
        if len(self._buffer) < size or not is_free(self._buffer):
            self._buffer = bytearray(size)
        return memoryview(self._buffer)[:size]

    def _hand_over(self, frame: memoryview) -> None:
        self._frame, self._filled = None, 0
        self._deliver(frame.toreadonly() if self._may_stay else frame)

    def _deliver(self, frame: memoryview) -> None:
        protocol = self._protocol
        if isinstance(request := self._awaited(), DirectRequest):
            self._take_direct(request, frame)
        elif protocol is not None:
            # The connection makes its parser itself, after it has got its transport.
            protocol.parser.__class__ = WholeFrames
            protocol.data_received(frame)

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self: Any, data: bytes | list[bytes]) -> None:
        """Send at once what the socket takes; the rest follows when it takes more."""
        if not self._write or self._closed:
            message = "the transport is closed"
            raise RuntimeError(message)
        if isinstance(data, list):
            self._write_buffer.extend(data)
        else:
            self._write_buffer.append(data)
        if not self._writing and not self._send_now():
            self._writing = True
            self._write_task = self._net.call_soon(self._write_to_sock)

    def _send_now(self: Any) -> bool:
        """Return whether everything is sent. Errors are left to the write of the rest, which handles them."""
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
            return total, self._ended(error)
        return total, None

    def _send_once(self: Any) -> int:
        """Hand pieces to the socket in one call, unless nothing may be sent any more; keep what it did not take."""
        if self.may_send is not None and not self.may_send():
            raise ConnectionError(_MAY_NOT_SEND)
        buffer: deque[bytes | memoryview] = self._write_buffer
        if isinstance(self._sock, ssl.SSLSocket):
            sent = count = self._sock.send(whole_record(buffer))
        elif len(buffer) == 1:
            # As each request of an express is.
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


def whole_record(pieces: deque[bytes | memoryview]) -> bytes | memoryview:
    """Return what a TLS record takes: a large piece as it is, small ones joined, which stay one piece from now on.

    OpenSSL must be given the same bytes again when the socket had no room for them.
    """
    first = pieces.popleft()
    if pieces and len(first) < _TLS_RECORD:
        joined = bytearray(first)
        while pieces and len(joined) < _TLS_RECORD:
            piece = memoryview(pieces.popleft())
            room = _TLS_RECORD - len(joined)
            joined += piece[:room]
            if len(piece) > room:
                pieces.appendleft(piece[room:])
        first = memoryview(joined)
    pieces.appendleft(first)
    return first


class BulkTransport(_Framing, KafkaTCPTransport):
    """A plain connection that reads whole frames."""


class BulkTlsTransport(_Framing, KafkaSSLTransport):
    """A TLS connection that reads whole frames."""

    async def shake_hands(self: Any, until: float) -> None:
        """Do what the library does for its handshake, which would wait for ever, until a time (monotonic).

        Raises:
            OSError: it fails.
            KafkaTimeoutError: the peer sends nothing.
        """
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, until)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, until)
            else:
                return
