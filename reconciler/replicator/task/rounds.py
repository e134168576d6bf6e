"""The rounds of a worker process: a task copies in a thread of its own, from its first round on and between rounds.

`spark.round_task` runs them inside Spark tasks. A worker that Spark reuses finds its task running and only takes over
its ledger at the end of each round, so records do not wait while rounds change. A worker that gets another task ends
the one that it had; where Spark gives a task to another process, the lease decides who writes.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from reconciler.model.base.text import shown
from reconciler.model.tasks.spec import FlowSpec
from reconciler.records import codecs
from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.task import malloc
from reconciler.replicator.task.connections import Connections
from reconciler.replicator.task.handover import RoundHandover
from reconciler.replicator.task.ledger import LedgerRow
from reconciler.replicator.task.task import OrphanError, Task
from reconciler.replicator.task.turns import Turns

_LOG = logging.getLogger(__name__)
# What is made for a record is freed with it: there are few cycles, which a collection of a few hundred new objects
# hardly finds.
_NEW_OBJECTS = 5_000
# As often Spark starts a failed task again, and so many seconds later it is done here.
_MOST_FAILURES = 7
_REST = 1.0
# So many tasks of a process begin at the same time; one that takes longer than these seconds lets the next one begin.
_BEGIN_AT_ONCE, _BEGINNING = 2, 3.0

_Key = tuple[str, str, int]
_running: dict[_Key, TaskThread] = {}
_turns = Turns(_BEGIN_AT_ONCE, _BEGINNING)


class TaskFailure(NamedTuple):
    """A task that has failed repeatedly in a process that it shares with others.

    Attributes:
        flow: name of its flow.
        task: its number.
        why: in one line.
    """

    flow: str
    task: int
    why: str


def run(spec: FlowSpec, assignment: Assignment, given_up: Callable[[], None] = lambda: None) -> list[LedgerRow]:
    """Replicate for one round and return the ledger; the task goes on after that, and waits for its next round.

    Args:
        spec: the flow.
        assignment: the task's partitions.
        given_up: called where no round has followed the last one for a while, and the task has ended.

    Raises:
        AnabranchError: the target or a secret is out of reach.
        OrphanError: the driver is gone.
    """
    return run_together([(spec, assignment)], given_up)[0]


def run_together(
    work: Sequence[tuple[FlowSpec, Assignment]], given_up: Callable[[], None] = lambda: None
) -> tuple[list[LedgerRow], list[TaskFailure]]:
    """Replicate several tasks for one round, which is over for all of them when it is for one.

    What a task raises is raised where it is alone, as Spark starts it again, in another process. Of several one that
    fails is started again here, as often as by Spark, and the others go on.

    Args:
        work: each task's flow and partitions.
        given_up: as for `run`.

    Returns:
        The ledger, and the tasks that have failed too often; they do not run any more.
    """
    keys = [(spec.run, spec.flow.name, assignment.task) for spec, assignment in work]
    # A worker may get other tasks than in its last round: their leases must not be held until the session expires.
    for other in [one for one, thread in list(_running.items()) if one not in keys and not thread.rounds.is_awaited]:
        _running.pop(other).rounds.end()
    over = threading.Event()
    for key, one in zip(keys, work, strict=True):
        _begin(key, *one, given_up, over)
    failed: Counter[_Key] = Counter()
    while over.wait():
        over.clear()
        ended = [key for key in keys if _running[key].rounds.failure is not None]
        failed.update(ended)
        is_over = any(not _running[key].rounds.is_awaited for key in keys if key not in ended)
        if is_over or not ended or len(keys) == 1 or max(failed.values()) > _MOST_FAILURES:
            break
        time.sleep(_REST)
        for key, one in zip(keys, work, strict=True):
            if key in ended:
                _begin(key, *one, given_up, over)
    for key in keys:
        _running[key].rounds.cut_short()
    return _ledger(keys)


def _ledger(keys: Sequence[_Key]) -> tuple[list[LedgerRow], list[TaskFailure]]:
    """Return what the round of some tasks has yielded, when it is over for all of them."""
    rows: list[LedgerRow] = []
    failures = []
    for key in keys:
        try:
            rows += _running[key].rounds.await_ledger()
        except BaseException as error:
            del _running[key]
            if len(keys) == 1 or isinstance(error, OrphanError):
                raise
            failures.append(TaskFailure(key[1], key[2], shown(f"{type(error).__name__}: {error}")))
    return rows, failures


def _begin(
    key: _Key, spec: FlowSpec, assignment: Assignment, given_up: Callable[[], None], over: threading.Event
) -> None:
    """Begin a round of a task: of the one that runs, or of a new one."""
    thread = _running.get(key)
    if thread is not None:
        if thread.rounds.begin(assignment, spec.round_seconds, over):
            return
        thread.rounds.end()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    malloc.keep()
    thread = _running[key] = TaskThread(spec, assignment, given_up)
    thread.rounds.begin(assignment, spec.round_seconds, over)
    thread.start()


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
        self.rounds = RoundHandover(assignment)
        self.connections: Connections | None = None
        name = f"{spec.flow.name} task {assignment.task} {spec.run}"
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
        turn = _turns.take(lambda: self.rounds.is_told_to_end)
        try:
            connections = self.connections = Connections(self._spec, self.rounds.assignment.task)
            try:
                while self.rounds.await_round():
                    Task(self._spec, self.rounds.assignment, connections).work(self.rounds, turn.over)
            except BaseException:
                connections.close(in_doubt=True)
                raise
            connections.close()
        finally:
            turn.over()
