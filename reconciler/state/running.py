"""Which live runs copy a flow, or into remote topics that are to be deleted, as the status topic tells it.

The commands ask before anything is deleted or a position is moved, and the provisioner once more right before it
deletes. Who lives is judged by what is heard meanwhile (`hearing`), so an answer may take `STALE_SECONDS`: where words
are there that count, until each was said anew or can no longer be. Where there are none it takes no time.
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
from reconciler.model.tasks.status import TaskStatus
from reconciler.state.declarations import Declarations
from reconciler.state.hearing import Hearing
from reconciler.state.status import StatusReader

# Silence counts only of a cluster that answers.
_PATIENCE = 10.0
_TICK = 0.1


class Copiers:
    """The runs of a topology that copy into topics of one target; asked again it need not listen anew.

    Args:
        cluster: the target.
        topology: whose topics are asked for.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._cluster = cluster
        self._topology = topology
        self._ears = _Ears(cluster, topology)

    def still_copied(self, steps: Collection[DeleteTopic], declared: str | None) -> dict[str, Problem]:
        """Return, by remote topic, what stands against deleting it now: a run that copies into it.

        Args:
            steps: topics that are to be deleted there.
            declared: digest of a declaration whose flows take these topics no longer: its runs are in nobody's way, as
                far as they do not have such a topic; None where no run may be left.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused: nobody could tell.
        """
        if not steps:
            return {}
        history = _history(self._cluster, self._topology)

        names, flows = {step.name for step in steps}, {step.flow for step in steps}

        def is_of_flows(word: TaskStatus) -> bool:
            is_declared = declared is not None and word.digest == declared
            return word.flow in flows and not is_declared and _is_of(word, self._topology, history)

        live = self._ears.living(lambda w: is_of_flows(w) or any(one.remote in names for one in w.partitions))
        of_flow = {word.flow: word for word in reversed(live) if is_of_flows(word)}
        having = {one.remote: word for word in reversed(live) for one in word.partitions}
        found = {}
        for step in steps:
            word = having.get(step.name) or of_flow.get(step.flow)
            if word is not None:
                found[step.name] = _problem(self._cluster, step, word)
        return found

    def living(self) -> list[TaskStatus]:
        """Return the statuses of the tasks and processes of the topology that live; errors are those of `copying`."""
        history = _history(self._cluster, self._topology)
        return self._ears.living(lambda word: _is_of(word, self._topology, history))

    def close(self) -> None:
        """Close the connection."""
        self._ears.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def copying(cluster: Cluster, topology: str, flow: str) -> list[TaskStatus]:
    """Return the words of tasks that live and copy a flow of a topology, and of processes that begin to.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311, reading is refused: nobody could tell.
    """
    history = _history(cluster, topology)
    ears = _Ears(cluster, topology)
    try:
        return ears.living(lambda word: word.flow == flow and _is_of(word, topology, history))
    finally:
        ears.close()


class LiveTasks:
    """The words of who copies a flow or is about to, as they come.

    Who has said nothing new for some seconds, by this process's own clock and since it listens, is not there any more:
    clocks of two machines are never compared. What was said long ago by somebody who was killed counts as long.

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
        self._hearing = Hearing()

    def current(self) -> list[TaskStatus]:
        """Return the words that count now; errors are those of `copying`."""
        self._hearing.hear(w for w in self._reader.current(_PATIENCE) if w.flow == self._flow and _copies(w))
        live = self._hearing.living()
        history = _history(self._cluster, self._topology) if live else None
        return [word for word in live if history is not None and _is_of(word, self._topology, history)]

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


class _Ears:
    """Hears who copies into one cluster, or is about to; who waits for people copies nothing."""

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._reader = StatusReader(cluster, topology)
        self._hearing = Hearing()

    def living(self, matters: Callable[[TaskStatus], bool]) -> list[TaskStatus]:
        """Return the words that matter of those that live, once that is certain of each."""
        while True:
            self._hearing.hear(word for word in self._reader.current(_PATIENCE) if _copies(word))
            if not any(map(matters, self._hearing.unsure())):
                return [word for word in self._hearing.living() if matters(word)]
            time.sleep(_TICK)

    def close(self) -> None:
        self._reader.close()


def _copies(word: TaskStatus) -> bool:
    return not word.stopped and (word.starting or not (word.is_held and word.waiting))


def _is_of(word: TaskStatus, topology: str, history: DeclarationHistory) -> bool:
    # Flows of several topologies may have one name. Nobody runs with a digest that never was in force, where one is.
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
        "end that `replicate`, or put in force a declaration without this topic, and wait until it has drained",
    )
