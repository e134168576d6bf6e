"""The rounds of a worker process: a task copies in a thread of its own, from its first round on and between rounds.

`spark.round_task` runs them inside Spark tasks. A worker that Spark reuses finds its task running and only takes over
its ledger at the end of each round, so records do not wait while rounds change. A worker that gets another task ends
the one that it had; where Spark gives a task to another process, the lease decides who writes.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable

from reconciler.model.tasks.spec import FlowSpec
from reconciler.records import codecs
from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.task import malloc
from reconciler.replicator.task.connections import Connections
from reconciler.replicator.task.handover import Handover
from reconciler.replicator.task.ledger import LedgerRow
from reconciler.replicator.task.task import OrphanError, Task

_LOG = logging.getLogger(__name__)
# What is made for a record is freed with it: there are few cycles, which a collection of a few hundred new objects
# hardly finds.
_NEW_OBJECTS = 5_000

_Key = tuple[str, str, int]
_running: dict[_Key, TaskThread] = {}


def run(spec: FlowSpec, assignment: Assignment, given_up: Callable[[], None] = lambda: None) -> list[LedgerRow]:
    """Replicate for one round and return the ledger; the task goes on after that, and waits for its next round.

    Args:
        spec: the flow.
        assignment: the task's partitions.
        given_up: called once the task has ended because no round has followed for a while.

    Raises:
        AnabranchError: the target or a secret is out of reach.
        OrphanError: the driver is gone.
    """
    key = spec.run, spec.flow.name, assignment.task
    # A worker may get another task than in its last round: its leases must not be held until the session expires.
    for other in [other for other, thread in list(_running.items()) if other != key and not thread.rounds.is_awaited]:
        _running.pop(other).rounds.end()
    thread = _running.get(key)
    if thread is None or not thread.rounds.begin(assignment, spec.round_seconds):
        if thread is not None:
            thread.rounds.end()
        gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
        malloc.keep()
        thread = _running[key] = TaskThread(spec, assignment, given_up)
        thread.rounds.begin(assignment, spec.round_seconds)
        thread.start()
    try:
        return thread.rounds.await_ledger()
    except BaseException:
        _running.pop(key, None)
        raise


class TaskThread:
    """A task in a thread, with the connections that it keeps.

    Args:
        spec: the flow.
        assignment: of its first round.
        given_up: as for `run`.

    Attributes:
        rounds: its rounds.
        connections: its connections; None until they are made.
    """

    def __init__(self, spec: FlowSpec, assignment: Assignment, given_up: Callable[[], None]) -> None:
        self._spec = spec
        self._given_up = given_up
        self.rounds = Handover(assignment)
        self.connections: Connections | None = None
        name = f"task {assignment.task} of {spec.flow.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to copy, and return at once."""
        self._thread.start()

    def _run(self) -> None:
        was_awaited, failure = True, None
        try:
            self._work()
        except BaseException as error:
            # Raised in Spark's thread, which waits for the round, and starts the task again.
            was_awaited, failure = self.rounds.is_awaited, error
        self.rounds.close(failure)
        if failure is None:
            if not self.rounds.is_told_to_end:
                self._given_up()
        elif not was_awaited:
            _LOG.warning("flow %s: a task has failed between two rounds", self._spec.flow.name, exc_info=failure)
            if isinstance(failure, OrphanError):
                self._given_up()

    def _work(self) -> None:
        codecs.limit_decompressed(self._spec.flow.largest_batch)
        connections = self.connections = Connections(self._spec, self.rounds.assignment.task)
        try:
            while self.rounds.await_round():
                Task(self._spec, self.rounds.assignment, connections).work(self.rounds)
        except BaseException:
            connections.close(in_doubt=True)
            raise
        connections.close()
