"""The gate at its targets: what is in force and failed over there, and what it posts in the status topic."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.recorded.declaration import MOVED, DeclarationHistory
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.tasks.status import TaskStatus
from reconciler.state.declarations import Declarations
from reconciler.state.failovers import Failovers
from reconciler.state.journals import home
from reconciler.state.journals.journal import Journal
from reconciler.state.liveness import Liveness
from reconciler.state.status import StatusReader, StatusWriter, flush_all

_SAY_EVERY = 60.0


class Post:
    """The gate at one target: what is in force there, which runs copy its flows, and the status of those that wait.

    Attributes:
        has_moved: whether the journals were moved to topics of their own since this was made or set back.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._cluster = cluster
        self._topology = topology
        self._open()
        self.has_moved = False
        self._words: dict[str, TaskStatus] = {}
        self._has_topic = False
        self._told: dict[Problem, float] = {}
        self._liveness = Liveness()

    def history(self) -> DeclarationHistory:
        """Return what was put in force.

        Raises:
            Unreachable: AB310, at the first use, when the cluster does not answer.
            EnvironmentFault: AB311, the read is refused.
        """
        found = self._declarations.current()
        if found.in_force is None or found.in_force.digest != MOVED:
            return found
        # The shared journal was moved: from now on the topology's own one is read and written.
        self.say(())
        self._declarations.close()
        self._failovers.close()
        home.forget(self._cluster, self._topology)
        self._open()
        self.has_moved, self._has_topic = True, False
        return self._declarations.current()

    def _open(self) -> None:
        self._declarations = Declarations(self._cluster, self._topology)
        self._failovers = Failovers(self._cluster, self._topology)
        self._writer = StatusWriter(self._cluster, self._topology)

    def failed_over(self) -> dict[str, FailedOver]:
        """Return which flows are on record as failed over; errors are those of `history`."""
        return self._failovers.current()

    def holders(self, flows: Iterable[Flow], digest: str) -> list[str]:
        """Return in words which runs of these flows live with another digest.

        At the first call by the times in their status, later by whether there is new status since the call before.
        """
        names = {flow.name for flow in flows}
        # Read once a minute at most: a reader that follows would have to read every status of every task meanwhile.
        reader = StatusReader(self._cluster, self._topology)
        try:
            words = [one for one in reader.current() if one.flow in names and one.is_of(self._topology)]
        except AnabranchError:
            return []
        finally:
            reader.close()
        self._liveness.update(words)
        now = time.time()
        others = [
            one
            for one in self._liveness.on_own_clock()
            if one.is_live(now) and not one.is_held and one.digest != digest
        ]
        told = (f"run {one.run} copies flow {one.flow} with digest {one.digest or 'unknown'}" for one in others)
        return list(dict.fromkeys(told))

    def say(self, words: Iterable[TaskStatus]) -> None:
        """Post the status of flows that wait, and withdraw what was posted for others."""
        said = {word.flow: word for word in words}
        if said and not self._may_speak():
            return
        taken_back = self._words.keys() - said.keys()
        for flow in taken_back:
            self._writer.withdraw(self._words[flow])
        if taken_back:
            flush_all([self._writer])
        for word in said.values():
            self._writer.post(word)
        self._words = said

    def _may_speak(self) -> bool:
        """Return whether the status topic exists: where nothing was ever applied it is made first, if possible."""
        if not self._has_topic:
            with contextlib.suppress(AnabranchError):
                Journal(self._cluster, home.JournalPlace(self._topology, "status"), 5.0).ensure()
                self._has_topic = True
        return self._has_topic

    def repeat(self) -> None:
        """Post once more what was posted, with the time of now."""
        for word in list(self._words.values()):
            self._writer.post(replace(word, time=time.time()))

    def flush(self) -> None:
        """Wait until what was posted is stored, or given up."""
        self._writer.flush()

    def is_news(self, objection: Problem) -> bool:
        """Return whether an objection was not reported within the last minute."""
        now = time.monotonic()
        if now < self._told.get(objection, -_SAY_EVERY) + _SAY_EVERY:
            return False
        self._told[objection] = now
        return True

    def close(self) -> None:
        """Withdraw what was posted, and close all connections."""
        self.say(())
        self._declarations.close()
        self._failovers.close()


class Repeating(threading.Thread):
    """Posts again and again while the process starts Spark and the gate is not called.

    Args:
        posts: the targets.
        pause: seconds between two posts.
    """

    def __init__(self, posts: Sequence[Post], pause: float) -> None:
        super().__init__(name="gate", daemon=True)
        self._posts = posts
        self._pause = pause
        self._over = threading.Event()

    def run(self) -> None:
        """Repeat until ended."""
        while not self._over.wait(self._pause):
            for post in self._posts:
                post.repeat()

    def end(self) -> None:
        """End, and wait for that."""
        self._over.set()
        self.join()
