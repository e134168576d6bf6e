"""Names processes so that another process of the same machine can find out for certain that one has ended.

The replicator's `lease` puts the name into its member id, `lock` into its claim. Only /proc of Linux is read; on other
systems no process ever counts as ended.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_FIELDS = 5
# Digits of a pid; Linux has none above 2^22.
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
    """Return whether the process of that name ran on this machine and has ended; False also where that is unknown."""
    fields = name.split("/")
    if len(fields) != _FIELDS or not all(fields) or "/".join(fields[:3]) != _surroundings():
        return False
    pid, started = fields[3:]
    found = _stat(int(pid)) if pid.isascii() and pid.isdecimal() and len(pid) <= _DIGITS else None
    # A pid may be another process's meanwhile, and an ended process may wait for its parent.
    return found is None or found[_START] != started or found[_STATE] in _ENDED


def _surroundings() -> str:
    """Return what processes with the same pids have in common: host, boot and pid namespace."""
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
