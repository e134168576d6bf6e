"""What requests of our own encoding leave behind until their answers come, and how frames become answers.

`connection` reads frames, `fetching`, `producing` and `direct` make the requests.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.parser import KafkaProtocol

from reconciler.wire.protocol import bounded_decoding
from reconciler.wire.protocol.compact import skip_tags
from reconciler.wire.protocol.frame_limits import USUAL_FETCH
from reconciler.wire.protocol.values import error_text

SIZE = struct.Struct(">i")
_UNREADABLE = "the answer cannot be read"
bounded_decoding.bound()
# What decoders, ours and the library's, raise of what is laid out in another way.
_MALFORMED = (ValueError, LookupError, struct.error, OverflowError, AssertionError, TypeError)


class UnfitError(kafka_errors.KafkaProtocolError):
    """A broker sent something else than the response to a request; the text names the broker and what was expected."""

    def __str__(self) -> str:
        return str(self.args[0])

    @classmethod
    def of(cls, where: str, error: Exception) -> UnfitError:
        """Return the exception for an error of a decoder; `where` names the cluster and broker."""
        cause = f" ({error_text(error.__cause__)})" if error.__cause__ is not None else ""
        return cls(f"{where}: {error_text(error)}{cause}")


class Header:
    """What a request of our own encoding leaves behind until its answer comes.

    Attributes:
        correlation_id: of the request.
        at: when it was sent (monotonic seconds).
        waited: seconds from then until its answer began to arrive; 0 before.
        asked: how many bytes of records it asks for.
    """

    asked = 0

    def __init__(self, correlation_id: int) -> None:
        self.correlation_id = correlation_id
        self.at = time.monotonic()
        self.waited = 0.0

    def begins(self) -> None:
        """Take note that the answer begins to arrive."""
        self.waited = time.monotonic() - self.at

    def answer_in(self, frame: memoryview) -> memoryview:
        """Return what stands behind the header of its answer.

        Raises:
            CorrelationIdError: the frame answers another request.
            ValueError: its header is broken.
            IndexError: likewise.
            struct.error: likewise.
        """
        (correlation_id,) = SIZE.unpack_from(frame)
        if correlation_id != self.correlation_id:
            message = f"an answer to request {correlation_id} where {self.correlation_id} was expected"
            raise kafka_errors.CorrelationIdError(message)
        return frame[skip_tags(frame, SIZE.size) :]


class RawHeader(Header):
    """That of a request whose answer is decoded by `WholeFrames`.

    Attributes:
        decode: makes a value of the answer's bytes behind its header; the value has a `throttle_time_ms`.
    """

    def __init__(self, correlation_id: int, decode: Callable[[memoryview], Any], asked: int = 0) -> None:
        super().__init__(correlation_id)
        self.decode = decode
        self.asked = asked


class TakenFrame:
    """An answer that was dealt with, in the shape that the library asks of one."""

    def __init__(self, throttle_time_ms: int) -> None:
        self.throttle_time_ms = throttle_time_ms


class DirectRequest(Header):
    """A request on its way whose answer is taken where it was read, in the shape of what the library keeps of one.

    Args:
        correlation_id: of the request.
        throttle_in: returns the throttle time of a response in ms; 0 for one that cannot be read.
        answered: called with the answer behind its header, which is there until it returns; it must not raise.
        lost: called while the connection falls, with what broke it; likewise.

    Attributes:
        is_done: whether it was answered or lost.
        throttle_in: as above.
    """

    def __init__(
        self,
        correlation_id: int,
        throttle_in: Callable[[memoryview], int],
        answered: Callable[[memoryview], None],
        lost: Callable[[BaseException], None],
    ) -> None:
        super().__init__(correlation_id)
        self.is_done = False
        self.throttle_in = throttle_in
        self._answered = answered
        self._lost = lost

    def take(self, data: memoryview) -> None:
        """Take the answer."""
        answered = self._answered
        self._end()
        answered(data)

    def success(self, _answer: object) -> None:
        """Do nothing: the answer was taken."""

    def failure(self, error: BaseException) -> None:
        """Fail, as there will be no response."""
        lost = self._lost
        self._end()
        lost(error)

    def _end(self) -> None:
        """Drop the callbacks, which hold what was sent."""
        self.is_done = True
        self._answered = self._lost = _nobody


class DirectFetch(DirectRequest):
    """A fetch on its way; the bytes that each requests are not checked."""

    asked = USUAL_FETCH


def _nobody(_: object) -> None:
    """Do nothing: the callbacks were called."""


class WholeFrames(KafkaProtocol):
    """The library's protocol, fed with whole frames instead of pieces that it would have to put together."""

    bytes_to_send: list[Any]

    def receive_bytes(self, frame: memoryview) -> list[Any]:
        """Decode one frame, its size already taken off."""
        if self.in_flight_requests and isinstance(self.in_flight_requests[0], RawHeader):
            return [self._raw(self.in_flight_requests.popleft(), frame)]
        # Decoders of other responses need the library's own buffer; they are small.
        whole = KafkaBytes(len(frame))
        whole.write(frame)
        whole.seek(0)
        try:
            return [self._process_response(whole)]
        except _MALFORMED as error:
            raise kafka_errors.KafkaProtocolError(_UNREADABLE) from error

    def _raw(self, header: RawHeader, frame: memoryview) -> tuple[int, Any]:
        try:
            return header.correlation_id, header.decode(header.answer_in(frame))
        except _MALFORMED as error:
            raise kafka_errors.KafkaProtocolError(_UNREADABLE) from error

    def send_bytes(self) -> list[bytes]:
        """Return all pending requests, in pieces that are not joined yet."""
        pieces: list[bytes] = []
        for request in self.bytes_to_send:
            pieces += request if isinstance(request, list) else (request,)
        self.bytes_to_send.clear()
        return pieces
