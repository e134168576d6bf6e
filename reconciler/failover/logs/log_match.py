"""Compares an original with its copy with identical offsets, by the newest records of a part of both.

Two logs of one origin that diverge stay apart: if the newest record is the same on both sides at one offset, those
before it need not be compared.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.base.shape import Misfit
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log
from reconciler.state.confluent.faults import unreachable
from reconciler.state.journals.encoding import header_pairs

_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_AT_FIRST = 64


@dataclass(frozen=True)
class LogPair:
    """A part of one partition that should be the same on both sides.

    Attributes:
        original: the partition at the source.
        remote: its copy.
        shift: offset at the copy minus offset at the original.
        first: the first offset of the part, at the original.
        end: the offset behind its last one.
    """

    original: Log
    remote: Log
    shift: int
    first: int
    end: int


class _Mark(NamedTuple):
    """Digest and timestamp of a record; `time` is None if brokers set the timestamp."""

    digest: bytes
    time: int | None

    def is_same(self, other: _Mark) -> bool:
        return self.digest == other.digest and (None in (self.time, other.time) or self.time == other.time)


class LogComparison:
    """Compares logs of two clusters; records of aborted transactions are skipped.

    Args:
        source: the cluster of originals.
        target: the cluster of copies.
        seconds: how long a cluster may be silent.
    """

    def __init__(self, source: Cluster, target: Cluster, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._source, self._target = source, target
        self._here = RecordReader(source, committed=True, seconds=seconds)
        self._there = RecordReader(target, committed=True, seconds=seconds)

    def __enter__(self) -> LogComparison:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._here.close()
        self._there.close()

    def agree(self, pair: LogPair) -> bool:
        """Return whether the newest record of a part is the same on both sides; True if neither has a record.

        Args:
            pair: the part; both logs must reach its end.

        Raises:
            AnabranchError: a cluster does not answer, or reading is refused.
        """
        end, size = pair.end, _AT_FIRST
        while end > pair.first:
            first = max(pair.first, end - size)
            here, there = self._both(pair, first, end)
            if here or there:
                newest = max((*here, *there))
                return newest in here and newest in there and here[newest].is_same(there[newest])
            end, size = first, size * 2
        return True

    def until(self, pair: LogPair, *, is_whole: bool) -> int | None:
        """Return the original's offset up to which a part is the same on both sides: its end, if nothing differs.

        Args:
            pair: the part; both logs must reach its end.
            is_whole: whether the original ends with the part: then compaction did not take records that the copy has.

        Returns:
            None if no record that both sides have is the same.

        Raises:
            AnabranchError: a cluster does not answer, or reading is refused.
        """
        end, size, newest, differs = pair.end, _AT_FIRST, False, False
        while end > pair.first:
            first = max(pair.first, end - size)
            here, there = self._both(pair, first, end)
            if is_whole and there and not newest:
                differs = max(there) > max(here, default=-1)
            newest = newest or bool(here or there)
            for offset in sorted(here.keys() & there.keys(), reverse=True):
                if here[offset].is_same(there[offset]):
                    return offset + 1 if differs else pair.end
                differs = True
            end, size = first, size * 2
        return None if differs else pair.end

    def _both(self, pair: LogPair, first: int, end: int) -> tuple[dict[int, _Mark], dict[int, _Mark]]:
        """Return the records of a part on both sides, by the original's offsets."""
        here = self._marks(self._source, self._here, pair.original, (first, end))
        there = self._marks(self._target, self._there, pair.remote, (first + pair.shift, end + pair.shift))
        return here, {offset - pair.shift: mark for offset, mark in there.items()}

    def _marks(self, cluster: Cluster, walker: RecordReader, log: Log, bounds: tuple[int, int]) -> dict[int, _Mark]:
        found: dict[int, _Mark] = {}
        at, end = bounds
        deadline = time.monotonic() + self._seconds
        while at < end:
            for message in walker.messages(*log, at, end):
                offset = message.offset() or 0
                if message.error() is not None:
                    # A new leader may report an earlier log end for a moment.
                    at = max(at, offset)
                    break
                if offset >= at:
                    found[offset] = _mark(message)
                    at = offset + 1
            else:
                break
            if at < end:
                if time.monotonic() > deadline:
                    raise unreachable(cluster, f"topic {log[0]} partition {log[1]} cannot be read beyond offset {at}")
                time.sleep(_PAUSE_SECONDS)
        return found


def _mark(message: Message) -> _Mark:
    kind, stamp = message.timestamp()
    try:
        headers = header_pairs(message)
    except Misfit:
        # The library cannot return them, on either side; key, value and timestamp are still compared.
        headers = []
    content = (message.key(), message.value(), headers)
    digest = blake2b(repr(content).encode(), digest_size=16).digest()
    return _Mark(digest, stamp if kind == TIMESTAMP_CREATE_TIME else None)
