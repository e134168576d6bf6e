"""The control topic: commands to running tasks, heard within a second.

`replicate` writes, tasks listen. A command is addressed to a run; it stays in the compacted topic until its run has
ended, so a task that starts late still hears it.
"""

from __future__ import annotations

import time
from enum import StrEnum

from reconciler.model.cluster import Cluster
from reconciler.state.journal import CONTROL, Follower, Journal

# A stop must not wait long for a cluster that is gone.
_TIMEOUT = 2.0


class Command(StrEnum):
    """What a run can be told."""

    STOP = "stop"


def send(cluster: Cluster, run: str, command: Command) -> None:
    """Tell all tasks of `run` that write to `cluster`.

    Raises:
        EnvironmentFault: AB310 or AB311, the command is not stored.
    """
    Journal(cluster, CONTROL, timeout=_TIMEOUT).write(run, {"command": command.value, "time": time.time()})


def withdraw(cluster: Cluster, run: str) -> None:
    """Remove the commands of a run that has ended.

    Raises:
        EnvironmentFault: AB310 or AB311, the removal is not stored.
    """
    Journal(cluster, CONTROL, timeout=_TIMEOUT).write(run, None)


class Listener:
    """A task's ear: hears what its run is told.

    Args:
        cluster: the target cluster.
        run: the run to listen for.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """

    def __init__(self, cluster: Cluster, run: str) -> None:
        self._run = run
        self._follower: Follower = Journal(cluster, CONTROL).follow()
        self._stopped = self._is_stop(self._follower.catch_up().get(run))

    def stop_was_asked(self) -> bool:
        """Tell whether the run was told to stop; never waits."""
        for key, value in self._follower.poll(0.0):
            if key == self._run:
                self._stopped = self._is_stop(value)
        return self._stopped

    def close(self) -> None:
        """Close the connection."""
        self._follower.close()

    @staticmethod
    def _is_stop(value: dict[str, object] | None) -> bool:
        return value is not None and value.get("command") == Command.STOP
