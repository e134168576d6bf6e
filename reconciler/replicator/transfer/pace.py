"""How much one request may carry, and how much may be copied in a second.

A request that takes longer than its time-out is lost, and the same request again would be lost again: requests become
smaller after every missing answer, so that a slow line is not overloaded for ever. Over a long round trip a window of
small batches is too little: they are merged. `fetcher` and `sender` use it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from reconciler.model.declared.flow import DEFAULT_LINGER

_SMALLEST = 64 * 1024
# Seconds of the quota that may be sent at once after a pause, and that may be read in advance.
_BURST_SECONDS = 0.2
_AHEAD_SECONDS = 2.0
# Batches of many records are merged as well where the window of a partition, five batches, would carry less than 10 MB
# in a second.
_WINDOW_RATE = 2_000_000
# A partition whose window was full within so many seconds waits for acknowledgements; they are slow from so many
# seconds on, even the quickest of the last ones.
HELD_UP = 1.0
SLOW_ANSWER = 0.006
# From so many seconds on the line is long.
_FAR_ANSWER = 0.03
# A thread that uses at most this share of a processor, lately (in seconds), has time to make batches larger.
_LATELY = 0.1
_MOST_USED = 0.8
# Over a line as short as this (seconds) usual fetches one after the other are as quick as any; a busy broker takes as
# long at times.
_NEAR = 0.01
# A fetch may return what a long line carries in so many round trips; fewer leave it idle for longer.
_TRIPS = 4
# A line that carries so many times the usual fetch in these trips is worth several fetches at once, until each of them
# gets less than a part of the usual one: several over a slow line would only wait longer, until requests time out.
_WORTH_MORE, _TOO_LITTLE = 3, 0.5
_SHORTEST_TRANSFER = 0.001
# The quickest answer counts for at least so many seconds, and for twice as many at most.
_REMEMBERED = 5.0
# Of a hundred flows most have nothing to copy: once nothing has come for so many seconds, a broker may hold back an
# empty answer for so many times as long, up to so many milliseconds.
_QUIET_AFTER, _QUIET_TIMES, _LONGEST_WAIT_MS = 5.0, 4, 5_000
LONG_WORK = 0.02
"""Seconds for which an answer may be worked through."""
# Where it takes so much less, twice as much will do.
_SHORT_WORK = 0.008
# A rest is so many times as long as the turn before it; a shorter one than that is not worth a timer.
_RESTS = 24
_SHORTEST_REST = 0.001


class RequestSize:
    """The bytes that one request may carry.

    Args:
        largest: where it begins, and what it never exceeds.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.bytes = largest

    def shrink(self) -> None:
        """A request got no answer: the next one carries half."""
        self.bytes = max(_SMALLEST, self.bytes // 2)

    def grow(self) -> None:
        """A request was answered: the next one may carry an eighth more."""
        self.bytes = min(self._largest, self.bytes + self.bytes // 8 + 1)


class RoundTrip:
    """How far away a broker is, and how large the batches are that are worth merging for that.

    The quickest of the last answers counts: the others waited in queues, and a broker that is slow because the machine
    is busy gets no quicker when merging keeps the machine busier.
    """

    def __init__(self) -> None:
        self._quickest = self._before = math.inf
        self._since = 0.0

    def took(self, seconds: float, now: float) -> None:
        """Note that an answer took so long (in seconds), and when it came (monotonic)."""
        if now - self._since >= _REMEMBERED:
            self._before, self._quickest, self._since = self._quickest, seconds, now
        self._quickest = min(self._quickest, seconds)

    @property
    def seconds(self) -> float:
        """How long the quickest of the last answers took; endless before the first."""
        return min(self._quickest, self._before)

    @property
    def is_far(self) -> bool:
        """Whether the line is so long that a window of usual batches may be too little for it."""
        return _FAR_ANSWER <= self.seconds < math.inf

    @property
    def small(self) -> int:
        """Batches of fewer bytes are worth merging, of however many records: a window of them is too little."""
        return int(self.seconds * _WINDOW_RATE) if self.seconds < math.inf else 0


class Spare:
    """Whether a thread has processor time left, by what it has used over the last tenth of a second or more.

    Args:
        clock: returns the seconds that the thread has had of its processor until now.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._at = -math.inf
        self._spent = 0.0
        self._used = 1.0

    def is_enough(self, now: float) -> bool:
        """Return whether there is enough to merge batches with, at `now` (monotonic seconds)."""
        if now - self._at >= _LATELY:
            spent = self._clock()
            # The first look has nothing to compare with.
            self._used = (spent - self._spent) / (now - self._at) if self._at > -math.inf else 1.0
            self._at, self._spent = now, spent
        return self._used <= _MOST_USED


class FetchSize(RequestSize):
    """The bytes that one fetch may ask for: over a long line more, as it is idle while a request travels.

    Args:
        usual: the most where the line is short.
        most: the most where it is long.

    Attributes:
        most: as above; it may change.
        is_wide: whether the line is so long, and carries so much, that several fetches at once are worth it.
    """

    def __init__(self, usual: int, most: int) -> None:
        super().__init__(usual)
        self._usual = usual
        self.most = most
        self.is_wide = False
        self._trip = RoundTrip()
        self._was_lost = False
        self._enough_at = -math.inf

    def answered(self, size: int, waited: float, took: float, now: float) -> None:
        """Take note of an answer: the next request may carry more.

        Args:
            size: its bytes.
            waited: seconds until it began to arrive.
            took: seconds until it was there.
            now: monotonic seconds.
        """
        if waited and 2 * size >= min(self.bytes, self._usual):
            # The answer was full: the broker did not wait for more records.
            self._enough_at = now
            self._trip.took(waited, now)
            rate = size / max(took - waited, _SHORTEST_TRANSFER)
            is_far = self._trip.seconds >= _NEAR
            wanted = int(rate * self._trip.seconds * _TRIPS) if is_far else self._usual
            self._largest = max(self._usual, min(self.most, wanted))
            self.is_wide = is_far and wanted >= self._usual * (_TOO_LITTLE if self.is_wide else _WORTH_MORE)
            if is_far and not self._was_lost:
                # An eighth with each answer would take seconds where each takes a tenth of one.
                self.bytes = min(self._largest, 2 * self.bytes)
                return
        elif now - self._enough_at > _REMEMBERED:
            # Several fetchers for low traffic would only wake up more often.
            self.is_wide = False
        self.grow()

    def is_full(self, now: float) -> bool:
        """Return whether an answer was full a short while ago: there may be a backlog."""
        return now - self._enough_at <= _REMEMBERED

    def shrink(self) -> None:
        """A request got no answer: the next one carries half, and from now on they grow with care."""
        super().shrink()
        self._was_lost = True
        self.is_wide = False


class FetchWait:
    """For how long a broker may hold back an answer that would be empty; records end that wait at once.

    Args:
        usual_ms: milliseconds while records come.
        now: monotonic seconds.
    """

    def __init__(self, usual_ms: int, now: float) -> None:
        self._usual_ms = usual_ms
        self._came_at = now

    def came(self, now: float) -> None:
        """Note that records have come, or that another partition is fetched, at `now` (monotonic seconds)."""
        self._came_at = now

    def ms(self, now: float) -> int:
        """Return the milliseconds, at `now` (monotonic seconds)."""
        if now - self._came_at < _QUIET_AFTER:
            return self._usual_ms
        return min(self._usual_ms * _QUIET_TIMES, _LONGEST_WAIT_MS)


class PartitionFetchSize:
    """The bytes to fetch of one partition: an answer that takes long to process delays the others and the lease.

    Args:
        least: the fewest bytes of a fetch.
        most: the most bytes of a fetch.

    Attributes:
        bytes: the bytes to fetch.
    """

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most
        self.bytes = most

    def was_long(self, size: int, took: float) -> bool:
        """Note an answer of so many bytes, and the seconds it took to process; return whether that was long."""
        if took > LONG_WORK:
            if size > self._least:
                self.bytes = max(self._least, int(size * LONG_WORK / took))
            return True
        if self.bytes < self._most and 2 * size >= self.bytes and took < _SHORT_WORK:
            self.bytes = min(self._most, 2 * self.bytes)
        return False


class Pace(NamedTuple):
    """What a flow declares of its pace.

    Attributes:
        quota: bytes per second.
        linger: the longest rest of a fetcher in seconds, while traffic is low.
    """

    quota: Quota
    linger: float = DEFAULT_LINGER


class FetchRest:
    """How long to rest while traffic is low, so that it takes about a twenty-fifth of a processor.

    Args:
        longest: of a rest, in seconds; 0 never rests.
        spent: seconds that the thread has had of its processor until now.
    """

    def __init__(self, longest: float, spent: float) -> None:
        self._longest = longest
        self._spent = spent

    def seconds(self, spent: float) -> float:
        """Return for how many seconds to rest after a turn, so many times as long as it took, within limits.

        Args:
            spent: seconds that the thread has had of its processor until now, this turn included.
        """
        took, self._spent = spent - self._spent, spent
        return min(self._longest, max(_SHORTEST_REST, took * _RESTS))


class Quota:
    """A token bucket that all senders of a task share; what exceeds it is paid off by waiting.

    Args:
        rate: bytes per second; None means no limit.
    """

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._tokens = 0.0
        self._at: float | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether there is a limit."""
        return self._rate is not None

    def pause(self, now: float) -> float:
        """Return for how many seconds nothing may be sent, 0 when something may.

        Args:
            now: monotonic seconds.
        """
        if self._rate is None:
            return 0.0
        self._refill(now, self._rate)
        return max(0.0, -self._tokens / self._rate)

    def spend(self, size: int) -> None:
        """Note that `size` bytes were sent."""
        self._tokens -= size

    def request_bytes(self, wanted: int) -> int:
        """Return how many bytes one request may carry: with a quota many small ones, or it would come in gusts."""
        return wanted if self._rate is None else min(wanted, max(_SMALLEST, int(self._rate * _BURST_SECONDS)))

    def ahead(self, wanted: int) -> int:
        """Return how many bytes may be read before they are sent."""
        return wanted if self._rate is None else min(wanted, max(_SMALLEST, int(self._rate * _AHEAD_SECONDS)))

    def _refill(self, now: float, rate: float) -> None:
        if self._at is not None:
            self._tokens = min(self._tokens + (now - self._at) * rate, rate * _BURST_SECONDS)
        self._at = now
