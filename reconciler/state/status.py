"""The status topic: each task's word of every second, and its last word.

Tasks post; `status`, the demo's view and `replicate --until-caught-up` read. The key names flow, task and run, so two
runs of one flow are both seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from reconciler.model.cluster import Cluster
from reconciler.model.status import TaskStatus
from reconciler.state.journal import STATUS, Follower, Journal, Value

_FORGET_SECONDS = 3600.0


def _key(status: TaskStatus) -> str:
    return f"{status.flow}/{status.task}/{status.run}"


class StatusWriter:
    """Posts what a task says of itself.

    Args:
        cluster: the target.
        digest: of the declaration that its process has, where words do not say it themselves.
    """

    def __init__(self, cluster: Cluster, digest: str = "") -> None:
        self._journal = Journal(cluster, STATUS)
        self._digest = digest

    def post(self, status: TaskStatus) -> None:
        """Send one status without waiting for it to be stored."""
        self._journal.post(_key(status), replace(status, digest=self._digest or status.digest).to_json())

    def post_last(self, status: TaskStatus) -> None:
        """Send the last status and wait until it is stored or given up."""
        self.post(status)
        self._journal.flush()

    def withdraw(self, status: TaskStatus) -> None:
        """Take back what was said, and wait until that is stored or given up."""
        self._journal.post(_key(status), None)
        self._journal.flush()


class StatusReader:
    """Follows the status topic of one target cluster.

    Raises:
        Unreachable: AB310, at the first use, when the cluster does not answer.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._follower: Follower | None = None
        self._values: dict[str, Value] = {}

    def current(self) -> list[TaskStatus]:
        """Return the newest status of each task of each run, in the order of flows, tasks and runs.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if self._follower is None:
            self._follower = Journal(self._cluster, STATUS).follow()
            self._values = self._follower.catch_up()
        else:
            for key, value in self._follower.poll(0.0):
                if value is None:
                    self._values.pop(key, None)
                else:
                    self._values[key] = value
        return [TaskStatus.from_json(self._values[key]) for key in sorted(self._values)]

    def close(self) -> None:
        """Close the connection."""
        if self._follower is not None:
            self._follower.close()


def newest_runs(statuses: Iterable[TaskStatus], now: float) -> list[TaskStatus]:
    """Return the tasks of the runs that live, and for flows without any those of the run that spoke last.

    Beside them stand the words of live processes that run no task.
    """
    by_flow: dict[str, list[TaskStatus]] = {}
    for status in statuses:
        by_flow.setdefault(status.flow, []).append(status)
    chosen: list[TaskStatus] = []
    for words in by_flow.values():
        chosen += [word for word in words if word.is_held and word.is_live(now)]
        tasks = [word for word in words if not word.is_held]
        if not tasks:
            continue
        newest_first = sorted(tasks, key=lambda status: status.time, reverse=True)
        live = {status.run: status.tasks for status in reversed(newest_first) if status.is_live(now)}
        # A silent task of a living run is part of the picture: it may be the one that is in trouble.
        runs = live or {newest_first[0].run: newest_first[0].tasks}
        chosen += [status for status in tasks if status.run in runs and status.task < runs[status.run]]
    return chosen


def forget_old(cluster: Cluster, flows: Iterable[str]) -> None:
    """Remove what long-dead runs of `flows` said, so that the topic does not keep it for ever.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading or writing is refused.
    """
    journal = Journal(cluster, STATUS)
    names = set(flows)
    horizon = time.time() - _FORGET_SECONDS
    old = [key for key, value in journal.read().items() if value["flow"] in names and value["time"] < horizon]
    if old:
        journal.write_all(dict.fromkeys(old))
