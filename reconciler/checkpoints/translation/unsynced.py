"""Gaps: what stands where no offset sync tells it, by reading both logs there and pairing what they hold."""

from __future__ import annotations

import time

from reconciler.checkpoints.translation.pairing import paired
from reconciler.checkpoints.translation.runs import Between, PairedRun, Point
from reconciler.checkpoints.translation.walk import TooFar, Walker
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log

# Millions of records may be read for nothing. Who asks in rounds reads them for a twentieth of the time, not all of it.
_REST = 20


class UnsyncedGaps:
    """Reads the gaps of one flow's copies.

    Args:
        flow: which one.
        originals: reads the source; None where it cannot be asked.
        remotes: reads the target.
        most: how many records of one partition are read at most.
    """

    def __init__(self, flow: Flow, originals: Walker | None, remotes: Walker, most: int) -> None:
        self._flow = flow
        self._originals = originals
        self._remotes = remotes
        self._most = most
        # What could not be told, and when it is tried again.
        self._in_vain: dict[tuple[Log, Between], float] = {}

    def look_again(self) -> None:
        """Take note that time has passed: what could not be told may be told by now."""
        now = time.monotonic()
        self._in_vain = {gap: until for gap, until in self._in_vain.items() if until > now}

    def read(self, log: Log, gap: Between, starts: tuple[int, int]) -> list[PairedRun] | None:
        """Return what stands in a gap of what is told; None where that cannot be told.

        What was read in vain is not read again before `look_again`, and not before twenty times as long as it took.

        Args:
            log: the partition, by its original's name.
            gap: between which places.
            starts: where the logs of both sides begin.

        Raises:
            AnabranchError: as `Walker.messages` says.
        """
        if (log, gap) in self._in_vain:
            return None
        began, runs = time.monotonic(), None
        try:
            runs = self._read(log, gap, starts)
        finally:
            if runs is None:
                now = time.monotonic()
                self._in_vain[log, gap] = now + _REST * (now - began)
        return runs

    def _read(self, log: Log, gap: Between, starts: tuple[int, int]) -> list[PairedRun] | None:
        if self._originals is None:
            return None
        low, high = gap.low or Point(0, 0), gap.high
        ends = (None, None) if high is None else high
        here = max(low.source, starts[0]), ends[0]
        there = max(low.target, starts[1]), ends[1]
        remote = self._flow.remote_topic(log[0]), log[1]
        # Mostly there is nothing on one of the sides.
        if self._originals.is_empty(log, here) or self._remotes.is_empty(remote, there):
            return []
        try:
            originals = self._originals.seen(*log, *here, self._most)
            return paired(gap, originals, self._remotes.seen(*remote, *there, self._most))
        except TooFar:
            return None
