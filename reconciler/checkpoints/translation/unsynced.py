"""Finds the records in gaps between offset syncs, by reading both logs there and pairing their records."""

from __future__ import annotations

import time

from reconciler.checkpoints.translation.pairing import paired
from reconciler.checkpoints.translation.runs import Between, PairedRun, Point
from reconciler.checkpoints.translation.walk import RecordReader, TooManyRecords
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log

# Millions of records may be read for nothing: after such a read the gap rests for so many times as long.
_REST = 20


class UnsyncedGaps:
    """Reads the gaps of one flow's copies.

    Args:
        flow: which one.
        originals: reads the source; None where it is not available.
        remotes: reads the target.
        most: how many records of one partition are read at most.
    """

    def __init__(self, flow: Flow, originals: RecordReader | None, remotes: RecordReader, most: int) -> None:
        self._flow = flow
        self._originals = originals
        self._remotes = remotes
        self._most = most
        # Gaps that could not be resolved, and when they are tried again.
        self._in_vain: dict[tuple[Log, Between], float] = {}

    def look_again(self) -> None:
        """Note that time has passed: gaps that have rested are tried again."""
        now = time.monotonic()
        self._in_vain = {gap: until for gap, until in self._in_vain.items() if until > now}

    def read(self, log: Log, gap: Between, starts: tuple[int, int]) -> list[PairedRun] | None:
        """Return the runs in a gap; None where they cannot be found.

        A gap that was read in vain is not read again before `look_again`, and not before twenty times as long as that
        took.

        Args:
            log: the partition, by its original's name.
            gap: between which places.
            starts: where the logs of both sides begin.

        Raises:
            AnabranchError: as `RecordReader.messages`.
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
        except TooManyRecords:
            return None
