"""The boot clock, by which leases and locks expire: it cannot be set, and goes on while the machine sleeps."""

from __future__ import annotations

import time

# Linux alone has a clock of this name; elsewhere the monotonic clock is used.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Return seconds on that clock."""
    return time.clock_gettime(_CLOCK)
