"""Leases TCP ports on 127.0.0.1 that no other embedded cluster of this user holds.

Called by `cluster`. A lease is a locked file per port, so it ends with the process that took it, however that ends.
It must not listen on a port: the broker does.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from reconciler.model.errors import EnvironmentFault, Problem

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
    """Return the folder of lock files; none is removed, or two processes could lock two files of one port."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "anabranch" if base else Path(tempfile.gettempdir()) / f"anabranch-{os.getuid()}"
    folder = folder / "ports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _lock(path: Path) -> IO[str] | None:
    """Lock a file without waiting; flock belongs to the open file, so it also parts two leases of one process."""
    file = path.open("w")
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
