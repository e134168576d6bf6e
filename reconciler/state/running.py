"""Which live runs copy a flow, or into remote topics that are to be deleted, as the status topic tells it.

The commands ask before anything is deleted or a position is moved, and the provisioner once more right before it
deletes.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from reconciler.model.cluster import Cluster
from reconciler.model.declaration import History, Standing
from reconciler.model.errors import Problem
from reconciler.model.removals import DeleteTopic
from reconciler.model.status import STALE_SECONDS, TaskStatus
from reconciler.state.declarations import Declarations
from reconciler.state.status import StatusReader

# Silence counts only of a cluster that answers.
_PATIENCE = 10.0


def still_copied(
    cluster: Cluster, topology: str, steps: Collection[DeleteTopic], declared: str | None
) -> dict[str, Problem]:
    """Return, by remote topic, what stands against deleting it now: a run that copies into it.

    Args:
        cluster: the target.
        topology: whose topics these are.
        steps: topics that are to be deleted there.
        declared: digest of a declaration whose flows take these topics no longer: its runs are in nobody's way, as far
            as they do not have such a topic; None where no run may be left.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading is refused: nobody could tell.
    """
    if not steps:
        return {}
    history = _history(cluster, topology)
    live = _live(cluster, topology)
    found = {}
    for step in steps:
        ours = (word for word in live if _has(word, step) or _is_of(word, topology, history))
        word = next((word for word in ours if _may_copy(word, step, declared)), None)
        if word is not None:
            found[step.name] = _problem(cluster, step, word)
    return found


def copying(cluster: Cluster, topology: str, flow: str) -> list[TaskStatus]:
    """Return the words of tasks that live and copy a flow of a topology, and of processes that begin to.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311, reading is refused: nobody could tell.
    """
    history = _history(cluster, topology)
    return [word for word in _live(cluster, topology) if word.flow == flow and _is_of(word, topology, history)]


class Words:
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
        # By task and run, what it said last, and until when (monotonic seconds) that counts.
        self._heard: dict[tuple[int, str], tuple[TaskStatus, float]] = {}

    def current(self) -> list[TaskStatus]:
        """Return the words that count now; errors are those of `copying`."""
        now = time.monotonic()
        said = {
            (word.task, word.run): word
            for word in self._reader.current(_PATIENCE)
            if word.flow == self._flow and not word.stopped and _copies(word)
        }
        before = self._heard
        self._heard = {
            key: before[key] if key in before and before[key][0] == word else (word, now + STALE_SECONDS)
            for key, word in said.items()
        }
        live = [word for word, until in self._heard.values() if now < until]
        history = _history(self._cluster, self._topology) if live else None
        return [word for word in live if history is not None and _is_of(word, self._topology, history)]

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


def _live(cluster: Cluster, topology: str) -> list[TaskStatus]:
    """Return the words of who lives and copies, or is about to; who waits for people copies nothing."""
    reader = StatusReader(cluster, topology)
    try:
        now = time.time()
        live = [word for word in reader.current() if word.is_live(now)]
        return [word for word in live if _copies(word)]
    finally:
        reader.close()


def _copies(word: TaskStatus) -> bool:
    return word.starting or not (word.is_held and word.waiting)


def _is_of(word: TaskStatus, topology: str, history: History) -> bool:
    # Flows of several topologies may have one name. Nobody runs with a digest that never was in force, where one is.
    return word.is_of(topology) and (not word.digest or history.standing(word.digest) is not Standing.NEWER)


def _history(cluster: Cluster, topology: str) -> History:
    declarations = Declarations(cluster, topology)
    try:
        return declarations.current()
    finally:
        declarations.close()


def _has(word: TaskStatus, step: DeleteTopic) -> bool:
    return any(one.remote == step.name for one in word.partitions)


def _may_copy(word: TaskStatus, step: DeleteTopic, declared: str | None) -> bool:
    return _has(word, step) or (word.flow == step.flow and (declared is None or word.digest != declared))


def _problem(cluster: Cluster, step: DeleteTopic, word: TaskStatus) -> Problem:
    return Problem(
        "AB421",
        f"{cluster.where}, topic {step.name}",
        f"run {word.run} copies flow {word.flow} (digest {word.digest or 'unknown'})",
        "end that `replicate`, or put in force a declaration without this topic, and wait until it has drained",
    )
