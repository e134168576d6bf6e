"""Has this process keep the memory that batches have left, for the next ones.

What cannot stay in the answer that it came in is copied out of it, to be there until the target has it. By default the
C library gives large pieces of memory back to the kernel and asks for new ones: clearing those takes longer than
copying a batch into them. `task` calls this as each round begins, `verify` as each piece of work does: any may be its
process's first.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

# glibc's malloc.h: `mallopt(3)` says what they mean.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
# What batches leave behind: as much as a task reads in advance and has on its way, with some air in between.
_KEPT_BYTES = 64 * 2**20
# Larger pieces still get pages of their own: between others they would leave holes that nothing fits into.
_LARGEST_KEPT = 4 * 2**20


def keep() -> None:
    """Ask the C library for it; where it is another than glibc, which has no such settings, nothing changes."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
