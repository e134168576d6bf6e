"""Closings: a broker that closes the connection on a request that is larger than it takes, without a word.

Brokers do that beyond `socket.request.max.bytes`, and what answers Kafka's protocol elsewhere likewise. `sender` asks
how much a request may carry then. One closing tells nothing, as every broker restarts some day: what tells is that it
closes again on a request larger than any that it took, and could be reached at once in between. Pure.
"""

from __future__ import annotations

_ENOUGH = 2
# Nearer than this to what was refused nothing is tried: each try costs a connection, with all that is on its way.
_NEAR = 2
# Then what was refused may be tried again: the bound may have been raised.
_SECONDS = 60.0


class DroppedRequests:
    """What one broker does with requests of some sizes.

    Attributes:
        passed: the most bytes of batches in a request that was answered.
        refused: the fewest bytes of one on which the connection was closed; 0 where none was.
    """

    def __init__(self) -> None:
        self.passed = self.refused = 0
        self._seen = 0
        self._at = 0.0
        # Bytes of the requests that are on their way, and of the largest of those that one closing takes along.
        self._under_way: list[int] = []
        self._largest: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether it is known that the broker refuses large requests."""
        return self._seen >= _ENOUGH

    @property
    def bound(self) -> int | None:
        """How many bytes of batches the next request may carry, unless one batch alone has more; None for any."""
        if not self.is_known:
            return None
        return self.passed if self.refused <= self.passed * _NEAR else (self.passed + self.refused) // 2

    def most(self, now: float) -> int | None:
        """Return of how many bytes no single batch is to be sent now; None for any."""
        return self.refused if self.is_known and now - self._at < _SECONDS else None

    def sent(self, size: int) -> None:
        """Take note that a request of so many bytes has left: a closing after that is another one."""
        self._under_way.append(size)
        self._largest = None

    def answered(self, size: int) -> None:
        """Take note that a request of so many bytes was answered."""
        self._arrived(size)
        if size > self.passed:
            self.passed = size
            if self.refused <= size:
                # It takes as much as that.
                self.refused = self._seen = 0

    def lost(self, size: int, is_closed: bool, now: float) -> bool:
        """Take note that a request has no answer.

        Of all that are on their way over a connection that is closed it can be but the largest one.

        Args:
            size: its bytes.
            is_closed: whether the broker has closed the connection over which it was sent.
            now: monotonic seconds.

        Returns:
            Whether that was for its size, as far as is known.
        """
        largest = max(self._under_way, default=0)
        self._arrived(size)
        if not is_closed:
            # It is away, or the line is: closings before that may have been of that.
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
