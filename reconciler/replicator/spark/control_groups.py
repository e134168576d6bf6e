"""How many processors and how much memory this process may use: read from files of the Linux kernel.

`slots` has a few slots for each processor; `class_archive` does without where there is little memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")
# By file, of version 2 (cgroup-v2.rst: microseconds of quota, or `max`, and of period) and 1 (sched-bwc.rst; -1: none).
_LIMIT, _QUOTA, _PERIOD = "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"
# Limit and use in bytes, of version 2 (`max`: none) and 1 (memory.rst; none is a number beyond all memory).
_MEMORY = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))


def processors() -> float:
    """Return how many processors this process may use, perhaps a part of one: by affinity and control groups."""
    try:
        count = float(len(os.sched_getaffinity(0)))
    except AttributeError:
        count = float(os.cpu_count() or 1)
    return min([count, *_shares()])


def memory_left() -> float:
    """Return how many bytes the control groups of this process leave it; infinite where none has a limit."""
    left = math.inf
    for group in _folders("memory"):
        for limit, use in _MEMORY:
            try:
                most, used = (int((group / name).read_text(encoding="ascii")) for name in (limit, use))
            except (OSError, ValueError):
                # No limit is written `max`, and the outermost group has no such file.
                continue
            left = min(left, most - used)
    return left


def _shares() -> list[float]:
    """Return how many processors each limit of this process's control groups, and of those around them, allows."""
    found = []
    for group in _folders("cpu"):
        try:
            quota, period = _limit(group)
            found.append(quota / period)
        except (OSError, ValueError, ZeroDivisionError):
            # No limit is written `max`, and most groups have no such file.
            continue
    return [share for share in found if share > 0]


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups that this process is in, in which a controller may set limits."""
    try:
        lines = _GROUPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and controller not in controllers.split(","):
            continue
        root = _MOUNT / controllers
        folder = root / path.strip("/")
        yield from (one for one in (folder, *folder.parents) if one.is_relative_to(root))


def _limit(group: Path) -> tuple[int, int]:
    """Return quota and period of a control group, in microseconds."""
    if (group / _LIMIT).exists():
        quota, period = (group / _LIMIT).read_text(encoding="ascii").split()
    else:
        quota, period = ((group / name).read_text(encoding="ascii") for name in (_QUOTA, _PERIOD))
    return int(quota), int(period)
