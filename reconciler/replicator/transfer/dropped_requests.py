"""Detects a broker that closes the connection on a request larger than it accepts, without an error.

Brokers do that beyond `socket.request.max.bytes`, and so do other implementations of Kafka's protocol. `sender` takes
the size of requests from here then. One closed connection is no evidence, as every broker restarts some day; evidence
is a second one on a request larger than any that was accepted, with the broker reachable in between. Pure.
"""

from __future__ import annotations

_ENOUGH = 2
# No size is tried within this factor of a refused one: each try costs a connection, with all requests in flight.
_NEAR = 2
# After so long a refused size may be tried again: the broker's limit may have been raised.
_SECONDS = 60.0


class DroppedRequests:
    """The request sizes that one broker accepts and refuses.

    Attributes:
        passed: the most bytes of batches in a request that was answered.
        refused: the fewest bytes of one on which the connection was closed; 0 where none was.
    """

    def __init__(self) -> None:
        self.passed = self.refused = 0
        self._seen = 0
        self._at = 0.0
        # Bytes of the requests in flight, and of the largest of those that were lost with one closed connection.
        self._under_way: list[int] = []
        self._largest: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether it is known that the broker refuses large requests."""
        return self._seen >= _ENOUGH

    @property
    def bound(self) -> int | None:
        """The bytes of batches that the next request may carry, unless it is a single larger batch; None for any."""
        if not self.is_known:
            return None
        return self.passed if self.refused <= self.passed * _NEAR else (self.passed + self.refused) // 2

    def most(self, now: float) -> int | None:
        """Return the bytes from which on no single batch is to be sent now; None for any."""
        return self.refused if self.is_known and now - self._at < _SECONDS else None

    def sent(self, size: int) -> None:
        """Note that a request of so many bytes was sent: a connection closed after that counts anew."""
        self._under_way.append(size)
        self._largest = None

    def answered(self, size: int) -> None:
        """Note that a request of so many bytes was answered."""
        self._arrived(size)
        if size > self.passed:
            self.passed = size
            if self.refused <= size:
                # The broker accepts as much as was refused before.
                self.refused = self._seen = 0

    def lost(self, size: int, is_closed: bool, now: float) -> bool:
        """Note that a request has no answer.

        Of all requests in flight over a closed connection, only the largest can be the cause.

        Args:
            size: its bytes.
            is_closed: whether the broker has closed the connection over which it was sent.
            now: monotonic seconds.

        Returns:
            Whether the request's size was the cause, as far as is known.
        """
        largest = max(self._under_way, default=0)
        self._arrived(size)
        if not is_closed:
            # The broker or the network is down: connections closed before that may have had the same cause.
            self._seen = self._seen if self.is_known else 0
            return False
        if self._largest is None:
            self._largest = largest
            if largest > self.passed:
                self.refused, self._at = min(self.refused or largest, largest), now
                self._seen += 1
        return self.is_known and size > self.passed and size >= self._largest

    def _arrived(self, size: int) -> None:
        if size in self._under_way:
            self._under_way.remove(size)
