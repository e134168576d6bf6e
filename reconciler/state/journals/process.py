"""Names processes so that another process of the same machine can tell for certain that one is gone.

The replicator's `lease` puts the name of its process where the group's other members see it, `lock` into its claim.
Only what Linux tells under /proc counts; elsewhere nobody is ever taken for gone.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_FIELDS = 5
# Of a process's number; Linux has none above 2^22.
_DIGITS = 9
# Fields of /proc/PID/stat behind the command's name (proc(5)): the state comes first, the start time 20th.
_STATE, _START = 0, 19
_ENDED = {"Z", "X"}


def own_name(pid: int | None = None) -> str:
    """Return the name of this process, or of another of this machine: host, boot, pid namespace, pid and start."""
    pid = os.getpid() if pid is None else pid
    started = _stat(pid)
    return f"{_surroundings()}/{pid}/{started[_START] if started else ''}"


def is_gone(name: str) -> bool:
    """Tell whether the process of that name ran on this machine, and does so no more.

    False also means: it cannot be told.
    """
    fields = name.split("/")
    if len(fields) != _FIELDS or not all(fields) or "/".join(fields[:3]) != _surroundings():
        return False
    pid, started = fields[3:]
    found = _stat(int(pid)) if pid.isascii() and pid.isdecimal() and len(pid) <= _DIGITS else None
    # A number may have been given to another process meanwhile, and an ended one may wait for its parent.
    return found is None or found[_START] != started or found[_STATE] in _ENDED


def _surroundings() -> str:
    """Return what two processes have in common when they see the same process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.removeprefix("pid:").strip("[]")
    except OSError:
        boot = namespace = ""
    return f"{socket.gethostname().replace('/', '-')}/{boot}/{namespace}"


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on, or None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # A command's name may hold spaces and brackets.
    return text.rpartition(")")[2].split()
