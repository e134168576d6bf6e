"""A reserve of memory: touched before a start, and given back to the machine as fast as the start's copy grows.

The host of a virtual machine hands out memory when it is first touched, and takes it away again a second or two after
it was given back. Writing to the page cache then costs several times as much, a second of CPU per GB, and who copies
fastest pays the largest part of it. So pages are kept until a copy wants them.
"""

from __future__ import annotations

import contextlib
import mmap
from types import TracebackType

import psutil

# As a multiple of the copy: brokers and replicators want some as well.
_ROOM = 1.5
_MOST_OF_FREE = 0.6
# Given back ahead of the copy: what is free for long is taken.
_AHEAD = 384 * 2**20
# Parts of a huge page would be torn out of it first.
_HUGE = 2 * 2**20


class Reserve:
    """Touched memory, for the length of a block.

    Args:
        copy: bytes of the copy that the memory is for.
    """

    def __init__(self, copy: int) -> None:
        self._size = min(int(copy * _ROOM), int(psutil.virtual_memory().available * _MOST_OF_FREE))
        self._given = 0
        self._memory: mmap.mmap | None = None

    def __enter__(self) -> Reserve:
        self._memory = mmap.mmap(-1, max(self._size, mmap.PAGESIZE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # Given back in small pages it is not what the page cache gets next, and to give it back takes a second of CPU
        # for a copy of 4 GB, of a quick copy's a twentieth.
        with contextlib.suppress(OSError):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, self._size, mmap.PAGESIZE):
            self._memory[at] = 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._memory is not None
        self._memory.close()
        self._memory = None

    @property
    def left(self) -> int:
        """Bytes that are not given back yet."""
        return max(0, self._size - self._given)

    def follow(self, copied: int) -> None:
        """Give back what a copy of so many bytes has taken, and a little ahead; nothing before its first."""
        assert self._memory is not None
        upto = min(self._size, (int(copied * _ROOM) + _AHEAD) // _HUGE * _HUGE) if copied else 0
        if upto > self._given:
            self._memory.madvise(mmap.MADV_DONTNEED, self._given, upto - self._given)
            self._given = upto
