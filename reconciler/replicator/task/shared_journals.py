"""The journals of a target that the tasks of a process share: statuses, commands, copy records.

Each needs clients of confluent-kafka, with threads and connections of their own; those of a hundred flows took more of
a processor than the flows. `connections` holds them, and the last task that gives them back closes them.
"""

from __future__ import annotations

import threading

from reconciler.model.declared.cluster import Cluster
from reconciler.state import listener
from reconciler.state.copies import Copies
from reconciler.state.status import StatusWriter

_lock = threading.Lock()
_held: dict[tuple[Cluster, str, str], SharedJournals] = {}


class SharedJournals:
    """The journals of a topology at one target, for all tasks of this process that write there.

    Args:
        target: the cluster.
        topology: name of the topology.
        digest: of its declaration.

    Attributes:
        status: posts their statuses.
        commands: what they listen to.
        copies: the records of their copies.
    """

    def __init__(self, target: Cluster, topology: str, digest: str) -> None:
        self._key = target, topology, digest
        self._holders = 0
        self.status = StatusWriter(target, topology, digest)
        self.commands = listener.followed(target, topology)
        self.copies = Copies(target, topology)

    @classmethod
    def hold(cls, target: Cluster, topology: str, digest: str) -> SharedJournals:
        """Return those of a target, made for the first task that holds them."""
        key = target, topology, digest
        with _lock:
            if key not in _held:
                _held[key] = cls(*key)
            _held[key]._holders += 1
            return _held[key]

    def release(self) -> None:
        """Give them back; they are closed where no other task of this process holds them."""
        with _lock:
            self._holders -= 1
            if self._holders:
                return
            del _held[self._key]
        self._close()

    def _close(self) -> None:
        self.copies.close()
        self.commands.close()
