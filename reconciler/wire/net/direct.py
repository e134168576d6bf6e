"""A connection for requests that are sent again and again, without the objects that the library makes for each.

`requests` hands one out for a broker that is connected. A request of the library's has a future, a task and a timer of
its own; these share one timer, and an answer is taken where it was read. Order, correlation, throttling and the end of
a connection stay the library's.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.selector import TaskState

from reconciler.wire.protocol import producing
from reconciler.wire.protocol.compact import NO_TAGS
from reconciler.wire.protocol.frames import DirectFetch, DirectRequest

# Size, key and version, correlation id.
_FRONT = struct.Struct(">ihhi")
_SIZE = 4
_FETCH = 1
_NAME = struct.Struct(">h")
_THROTTLE = struct.Struct(">i")
# The library cancels a request's timer when its answer comes; there is none.
_NO_TIMER = SimpleNamespace(state=TaskState.DONE)


def throttle_first(data: memoryview) -> int:
    """Return the throttle time in ms at the beginning of a response; 0 for one that cannot be read."""
    try:
        return int(_THROTTLE.unpack_from(data)[0])
    except struct.error:
        # The receiver reports it.
        return 0


class Direct:
    """One connection.

    Args:
        connection: the library's; it has been used before.
        api_key: of the requests: 0, which have their throttle time last in their answers, or 1, which have it first.
        version: of the requests.
        timeout: seconds until a request without an answer closes the connection.
    """

    def __init__(self, connection: Any, api_key: int, version: int, timeout: float) -> None:
        self.version = version
        self._net = connection.net
        self._transport = connection.transport
        self._connection = connection
        self._api_key = api_key
        self._kind = DirectFetch if api_key == _FETCH else DirectRequest
        self._throttle_in = throttle_first if api_key == _FETCH else partial(producing.throttle, by_id=self.by_id)
        name = connection.parser._client_id.encode()
        self._name: bytes = _NAME.pack(len(name)) + name + NO_TAGS
        self._overhead = _FRONT.size - _SIZE + len(self._name)
        self._timeout = timeout
        self._pending: deque[DirectRequest] = deque()
        self._is_timed = False

    @property
    def by_id(self) -> bool:
        """Whether its requests name topics by their ids."""
        return self.version >= producing.FIRST_WITH_IDS

    def is_of(self, connection: Any, version: int) -> bool:
        """Return whether it uses a connection, in a version of its requests."""
        return self._connection is connection and self.version == version

    @property
    def is_open(self) -> bool:
        """Whether a request would leave at once."""
        one = self._connection
        return bool(one.connected and not one.paused and not one.initializing and not one._reauth.is_reauthenticating)

    def send(self, body: bytes, answered: Callable[[memoryview], None], lost: Callable[[BaseException], None]) -> None:
        """Send a request; it must be open.

        Args:
            body: the request behind its header.
            answered: called with the answer behind its header, which is there until it returns; it must not raise.
            lost: called while the connection falls, with what broke it; likewise.
        """
        self._write(self._front(len(body), answered, lost) + body)

    def send_pieces(
        self,
        pieces: Sequence[bytes | memoryview],
        answered: Callable[[memoryview], None],
        lost: Callable[[BaseException], None],
    ) -> None:
        """Send a request as `send` does, whose pieces are sent from where they are."""
        self._write([self._front(sum(map(len, pieces)), answered, lost), *pieces])

    def _front(self, size: int, answered: Callable[[memoryview], None], lost: Callable[[BaseException], None]) -> bytes:
        """Take note of a request that is `size` bytes long behind its header; return what stands before these."""
        one = self._connection
        parser = one.parser
        request = self._kind(parser._next_correlation_id(), self._throttle_in, answered, lost)
        due = request.at + self._timeout
        parser.in_flight_requests.append(request)
        one.in_flight_requests.append((request.correlation_id, request, request.at, due, _NO_TIMER))
        pending = self._pending
        # They go with their answers and not at their time-outs.
        while pending and pending[0].is_done:
            pending.popleft()
        pending.append(request)
        if not self._is_timed:
            self._is_timed = True
            self._net.call_at(due, self._look)
        front = _FRONT.pack(self._overhead + size, self._api_key, self.version, request.correlation_id)
        return front + self._name

    def _write(self, data: bytes | list[bytes | memoryview]) -> None:
        one = self._connection
        try:
            one.transport.write(data)
        except RuntimeError as error:
            # It is being closed, in order, and takes nothing more.
            one.close(kafka_errors.KafkaConnectionError(str(error)))

    def hold(self) -> None:
        """Let responses wake no task until `release`: the caller calls `hear` often enough."""
        self._transport.hold()

    def release(self) -> None:
        """Let responses wake their receiver again, and take those that have arrived."""
        self._transport.release()
        self.hear()

    def hear(self) -> None:
        """Take the responses that have arrived."""
        if self._connection.connected:
            self._transport.read_now()

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Call `work` whenever a response has been taken, in place of the function called until now."""
        self._transport.between = work

    def no_more(self, work: Callable[[], None]) -> None:
        """Stop calling `work`, unless another function took its place."""
        if self._transport.between == work:
            self._transport.between = None

    def refuse(self, why: BaseException) -> Exception:
        """Close the connection after a response that cannot be read; return the exception for waiting requests."""
        error: Exception = kafka_errors.KafkaProtocolError(f"the broker's answer cannot be read: {why}")
        self._connection.close(error)
        return error

    def _look(self) -> None:
        """Close a connection whose oldest request has waited for too long."""
        # No read may have taken place for a while.
        self.hear()
        pending = self._pending
        while pending and pending[0].is_done:
            pending.popleft()
        self._is_timed = bool(pending)
        if not pending:
            return
        if time.monotonic() - pending[0].at >= self._timeout:
            self._is_timed = False
            message = f"no answer for {self._timeout:g} s"
            self._connection.close(kafka_errors.RequestTimedOutError(message))
            return
        self._net.call_at(pending[0].at + self._timeout, self._look)
