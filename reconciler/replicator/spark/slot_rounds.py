"""The rounds of one slot: a thread that runs a Spark job for each round of its tasks.

`session` starts and ends them. What a job returns is the ledger of its round. Spark starts a failed task again; a job
that fails ends the rounds of its slot. Slots end their rounds at different times: so each is given the worker that was
just released, where its tasks still copy.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Shares
from reconciler.replicator.spark.round_task import SealedSpec, TaskOfRound, read_shares, replicate
from reconciler.replicator.spark.slots import TaskOfFlow, flows_of
from reconciler.replicator.task.rounds import TaskFailure

# Seconds until cancelled jobs have ended: Spark kills a worker two seconds after its task was cancelled
# (`spark.python.task.killTimeout`).
_END_PATIENCE = 60.0
_CANCEL_EVERY = 0.2
# Seconds between two looks whether a flow has partitions for a task by now.
_LOOK_EVERY = 1.0
# A round lasts so many seconds at most while other tasks of its slot wait for partitions.
_NEW_EVERY = 10.0


@dataclass(frozen=True)
class SlotContext:
    """What a slot has of its run.

    Attributes:
        spark: where their jobs run.
        specs: the flows by name.
        shares: by flow, the file in which `refresh` keeps the shares of the run.
        keep: called with the ledger of each round that is over, in the thread of its slot.
        failed: called, likewise, with each task that has failed repeatedly while others of its slot go on.
        rest: returns for how many seconds tasks of a flow must not be tried again, likewise.
    """

    spark: SparkContext
    specs: Mapping[str, FlowSpec]
    shares: Mapping[str, Path]
    keep: Callable[[Sequence[tuple[Any, ...]]], None]
    failed: Callable[[TaskFailure], None]
    rest: Callable[[str], float]


class SlotRounds:
    """The rounds of one slot, from `start` until one fails or they are ended.

    Args:
        context: what it has of its run.
        tasks: that run in it.
        group: name of its jobs for Spark, unique in its context.
        first: the part of a round that the first one lasts.
        resting: flows that have failed just now: their tasks join as soon as they may be tried again.

    Attributes:
        tasks: as above.
        failure: why they have ended, where one failed.
    """

    def __init__(
        self,
        context: SlotContext,
        tasks: Sequence[TaskOfFlow],
        group: str,
        first: float = 1.0,
        resting: Collection[str] = (),
    ) -> None:
        self._context = context
        self.tasks = tuple(tasks)
        self._group = group
        self._first = first
        self.failure: Exception | None = None
        self._over = threading.Event()
        self._shares: dict[str, Shares] = {}
        # Those that failed in the last round, or in the rounds before these.
        self._failed = {task for task in tasks if task.flow in resting}
        self._thread = threading.Thread(target=self._run, name=f"rounds of {group}", daemon=True)

    def start(self) -> None:
        """Begin the first round, and return at once."""
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether a round runs, or is about to."""
        return self._thread.is_alive()

    @property
    def flows(self) -> Collection[str]:
        """The flows of its tasks."""
        return flows_of(self.tasks)

    def finish(self) -> None:
        """Let the round that runs now be the last one, and return at once."""
        self._over.set()

    def cancel(self) -> None:
        """End the round that runs now, with the process of its tasks.

        Raises:
            Py4JError: Spark has ended.
        """
        self._over.set()
        deadline = time.monotonic() + _END_PATIENCE
        # More than once: a job that was about to be submitted was none that could be cancelled.
        while self._thread.is_alive() and time.monotonic() < deadline:
            self._context.spark.cancelJobGroup(self._group)
            self._thread.join(_CANCEL_EVERY)

    def _run(self) -> None:
        try:
            self._context.spark.setJobGroup(self._group, self._group, interruptOnCancel=True)
            part, is_last = self._first, False
            while not is_last:
                # What is copied until the tasks stop belongs to a round that ends because of that.
                is_last = self._over.is_set()
                if tasks := self._tasks(part):
                    self._take(self._context.spark.parallelize([tasks], 1).mapPartitions(replicate).collect())
                    part = 1.0
                else:
                    self._over.wait(_LOOK_EVERY)
        except Exception as error:
            # Reported by `session`, which starts the slot again.
            self.failure = error

    def _take(self, results: Sequence[tuple[Any, ...]]) -> None:
        """Keep the ledger of a round, and note what has failed."""
        self._context.keep([one for one in results if not isinstance(one, TaskFailure)])
        self._failed = set()
        for one in results:
            if isinstance(one, TaskFailure):
                self._failed.add(TaskOfFlow(one.flow, one.task))
                self._context.failed(one)

    def _tasks(self, part: float) -> list[TaskOfRound]:
        """Return what the tasks of this slot do in the next round, which lasts that part of one.

        Tasks are left out that have no partitions yet, and those that failed and must rest: then the round is short.
        """
        found, most = [], math.inf
        for task in self.tasks:
            if task in self._failed and (rest := self._context.rest(task.flow)) > 0:
                most = min(most, max(rest, _LOOK_EVERY))
                continue
            shares = read_shares(self._context.shares[task.flow], self._shares.get(task.flow, Shares()))
            self._shares[task.flow] = shares
            if task.task < shares.tasks:
                found.append((self._context.specs[task.flow], shares.assignment(task.task)))
            elif len(self.tasks) > 1:
                most = min(most, _NEW_EVERY)
        specs = [replace(spec, round_seconds=min(spec.round_seconds * part, most)) for spec, _ in found]
        sealed = [SealedSpec(spec.to_json(), spec.key) for spec in specs]
        return [TaskOfRound(one, assignment) for one, (_, assignment) in zip(sealed, found, strict=True)]
