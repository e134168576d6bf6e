"""Which live runs copy a flow, or into remote topics that are to be deleted, from the status topic.

The commands call it before anything is deleted or a position is moved, and the provisioner right before it deletes. A
run is live if new records of it arrive while this process reads (`liveness`). So an answer takes up to `STALE_SECONDS`
where the topic holds records that matter, and no time where it holds none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.recorded.declaration import DeclarationHistory, DeclarationStanding
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.state.declarations import Declarations
from reconciler.state.liveness import Liveness
from reconciler.state.status import StatusReader

# Missing records count only if the cluster answers (seconds).
_PATIENCE = 10.0
_TICK = 0.1


class Copiers:
    """The runs of a topology that copy into topics of one target; a second call needs no new wait.

    Args:
        cluster: the target.
        topology: name of the topology that owns the topics.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._cluster = cluster
        self._topology = topology
        self._writers = _LiveWriters(cluster, topology)

    def still_copied(self, steps: Collection[DeleteTopic], declared: str | None) -> dict[str, Problem]:
        """Return, by remote topic, why it cannot be deleted now: a run copies into it.

        Args:
            steps: topics that are to be deleted there; of those that are recreated, partitions that are paused and
                drained do not count, nor do runs without them: they obey the pause.
            declared: digest of a declaration whose flows take these topics no longer: its runs do not count, unless
                they have such a topic open; None where every run counts.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if not steps:
            return {}
        history = _history(self._cluster, self._topology)

        names, flows = {step.name for step in steps}, {step.flow for step in steps}

        def is_of_flows(word: TaskStatus) -> bool:
            is_declared = declared is not None and word.digest == declared
            return word.flow in flows and not is_declared and _is_of(word, self._topology, history)

        live = self._writers.living(lambda w: is_of_flows(w) or any(one.remote in names for one in w.partitions))
        of_flow = {word.flow: word for word in reversed(live) if is_of_flows(word)}
        having = {one.remote: word for word in reversed(live) for one in word.partitions}
        moving = {one.remote: word for word in reversed(live) for one in word.partitions if not _is_paused(one)}
        found = {}
        for step in steps:
            is_recreated = step.reason == "recreated"
            word = moving.get(step.name) if is_recreated else having.get(step.name) or of_flow.get(step.flow)
            if word is not None:
                found[step.name] = _problem(self._cluster, step, word)
        return found

    def living(self) -> list[TaskStatus]:
        """Return the statuses of the tasks and processes of the topology that live; errors are those of `copying`."""
        history = _history(self._cluster, self._topology)
        return self._writers.living(lambda word: _is_of(word, self._topology, history))

    def close(self) -> None:
        """Close the connection."""
        self._writers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def copying(cluster: Cluster, topology: str, flow: str) -> list[TaskStatus]:
    """Return the newest status of live tasks that copy a flow of a topology, and of processes that begin to.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    history = _history(cluster, topology)
    writers = _LiveWriters(cluster, topology)
    try:
        return writers.living(lambda word: word.flow == flow and _is_of(word, topology, history))
    finally:
        writers.close()


class LiveTasks:
    """The newest status of each task that copies a flow, and of each process that begins to, kept up to date.

    A task counts as ended when no new record of it has arrived for `STALE_SECONDS` of this process's clock; clocks of
    two machines are never compared. So a task that was killed long before the first read counts for as long.

    Args:
        cluster: the target.
        topology: name of the topology.
        flow: name of the flow.
    """

    def __init__(self, cluster: Cluster, topology: str, flow: str) -> None:
        self._reader = StatusReader(cluster, topology)
        self._cluster = cluster
        self._topology = topology
        self._flow = flow
        self._liveness = Liveness()

    def current(self) -> list[TaskStatus]:
        """Return the statuses that count now; errors are those of `copying`."""
        self._liveness.update(w for w in self._reader.current(_PATIENCE) if w.flow == self._flow and _copies(w))
        live = self._liveness.living()
        history = _history(self._cluster, self._topology) if live else None
        return [word for word in live if history is not None and _is_of(word, self._topology, history)]

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


class _LiveWriters:
    """The live tasks that write to one cluster or begin to; a process that waits for an operator does not count."""

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._reader = StatusReader(cluster, topology)
        self._liveness = Liveness()

    def living(self, matters: Callable[[TaskStatus], bool]) -> list[TaskStatus]:
        """Return the statuses that matter of live tasks, after the wait that makes each certain."""
        while True:
            self._liveness.update(word for word in self._reader.current(_PATIENCE) if _copies(word))
            if not any(map(matters, self._liveness.unsure())):
                return [word for word in self._liveness.living() if matters(word)]
            time.sleep(_TICK)

    def close(self) -> None:
        self._reader.close()


def _copies(word: TaskStatus) -> bool:
    return not word.stopped and (word.starting or not (word.is_held and word.waiting))


def _is_paused(partition: PartitionStatus) -> bool:
    return partition.state is PartitionState.PAUSED


def _is_of(word: TaskStatus, topology: str, history: DeclarationHistory) -> bool:
    # Flows of several topologies may have one name; a digest that never was in force here is of another topology's.
    return word.is_of(topology) and (not word.digest or history.standing(word.digest) is not DeclarationStanding.NEWER)


def _history(cluster: Cluster, topology: str) -> DeclarationHistory:
    declarations = Declarations(cluster, topology)
    try:
        return declarations.current()
    finally:
        declarations.close()


def _problem(cluster: Cluster, step: DeleteTopic, word: TaskStatus) -> Problem:
    return Problem(
        "AB421",
        f"{cluster.where}, topic {step.name}",
        f"run {word.run} copies flow {word.flow} (digest {word.digest or 'unknown'})",
        "end that `replicate`; or take the topic out of the files, `anabranch apply`, and then "
        "`anabranch apply --allow-delete topic=1`",
    )
