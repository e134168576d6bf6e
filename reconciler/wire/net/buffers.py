"""The buffers that large frames are read into: used again as soon as no view of them is left.

All connections of a loop share them. New memory costs more time than reading into it, as the kernel clears it first;
and a view of a frame need not be copied as long as there are other buffers to read into. Pure.
"""

from __future__ import annotations

# Beyond this, frames are read where nothing of them may stay: a partition that is stuck would keep all that came with
# its records.
_MOST_BYTES = 32 * 2**20
# Frames of one kind have about the same size: the next one should fit where the last one was.
_STEP = 2**20


class Buffers:
    """Buffers of frames, of a bounded size together."""

    def __init__(self) -> None:
        self._all: list[bytearray] = []

    def room(self, size: int) -> memoryview | None:
        """Return room for a frame of `size` bytes, as long as a buffer without views is left."""
        for one in self._all:
            if len(one) >= size and is_free(one):
                return memoryview(one)[:size]
        rounded = -(-size // _STEP) * _STEP
        if sum(map(len, self._all)) + rounded > _MOST_BYTES:
            # What is free is too small.
            self._all = [one for one in self._all if not is_free(one)]
            if sum(map(len, self._all)) + rounded > _MOST_BYTES:
                return None
        one = bytearray(rounded)
        self._all.append(one)
        return memoryview(one)[:size]


def is_free(buffer: bytearray) -> bool:
    """Return whether no view of `buffer` is left: a bytearray with views refuses to change its size."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
