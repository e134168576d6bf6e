"""Makes this process keep the memory of finished batches for the next ones.

Batches that cannot stay in the answer they came in are copied out of it, until the target has them. By default the C
library returns large pieces of memory to the kernel and requests new ones: clearing those takes longer than copying a
batch into them. `task` calls this as each round begins, `verify` as each piece of work does: any may be its process's
first.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

# From glibc's malloc.h; `mallopt(3)` explains them.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
# Memory to keep: as much as a task reads in advance and has in flight, with some room in between.
_KEPT_BYTES = 64 * 2**20
# Larger pieces still get pages of their own: between others they would leave holes that nothing fits into.
_LARGEST_KEPT = 4 * 2**20


def keep() -> None:
    """Set the C library's thresholds; without glibc, which alone has them, nothing changes."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
