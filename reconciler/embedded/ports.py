"""Leases TCP ports on 127.0.0.1 that no other embedded cluster of this user holds.

Called by `cluster`. A lease is a locked file per port, so it ends with the process that took it, however that ends.
It must not listen on a port: the broker does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from reconciler.embedded.jars import cache_folder
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import is_private, make_private, open_private

# Below the ports that Linux gives to outgoing connections (32768 and up), so that no client takes one by chance
# between the lease and the moment the broker listens.
PORTS = range(20000, 30000)
HOST = "127.0.0.1"


@dataclass
class PortLease:
    """Ports held by this process until released.

    Attributes:
        ports: the leased ports, in no order that matters.
    """

    ports: tuple[int, ...]
    _locks: list[IO[str]] = field(repr=False)

    @classmethod
    def take(cls, count: int) -> PortLease:
        """Lease `count` free ports.

        Raises:
            EnvironmentFault: AB305, fewer than `count` ports are free.
        """
        folder = _registry()
        taken: dict[int, IO[str]] = {}
        start = random.randrange(len(PORTS))
        for step in range(len(PORTS)):
            if len(taken) == count:
                break
            port = PORTS[(start + step) % len(PORTS)]
            if lock := _lock(folder / str(port)):
                if _is_free(port):
                    taken[port] = lock
                else:
                    lock.close()
        lease = cls(tuple(taken), list(taken.values()))
        if len(taken) < count:
            lease.release()
            message = f"expected {count} free ports in {PORTS.start}-{PORTS.stop - 1}, found {len(taken)}"
            raise EnvironmentFault(Problem("AB305", HOST, message, "stop other clusters or programs on these ports"))
        return lease

    def release(self) -> None:
        """Give the ports back; a second call does nothing."""
        while self._locks:
            self._locks.pop().close()


def _registry() -> Path:
    """Return the folder of lock files; none is removed, or two processes could lock two files of one port.

    Raises:
        EnvironmentFault: AB305, there is no place for it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    for folder in (
        # XDG Base Directory Specification: a folder of this user alone, which ends with the last login.
        *([Path(base) / "anabranch"] if base and Path(base).is_absolute() else []),
        Path(tempfile.gettempdir()) / f"anabranch-{os.getuid()}",
        cache_folder() / "run",
    ):
        with contextlib.suppress(OSError):
            make_private(folder)
            # Other users may have made a folder of that name below the temporary folder, with links to files of ours.
            if is_private(folder):
                make_private(folder / "ports")
                if is_private(folder / "ports"):
                    return folder / "ports"
    message = "no folder for the locks of ports can be made that is of this user alone"
    remedy = f"remove {folder}, or set XDG_RUNTIME_DIR to a folder of yours"
    raise EnvironmentFault(Problem("AB305", HOST, message, remedy))


def _lock(path: Path) -> IO[str] | None:
    """Lock a file without waiting; flock belongs to the open file, so it also parts two leases of one process."""
    try:
        file = open_private(path)
    except OSError:
        # What others have put there, when they still could, is left alone.
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java does, so that connections of an earlier broker that linger in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
