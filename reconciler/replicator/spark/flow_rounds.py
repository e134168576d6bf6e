"""The rounds of one flow: for each of its tasks a thread, which runs a Spark job for each round.

`spark.session` starts and ends them. What a job returns is the ledger of its round. Spark starts a failed task again; a
job that fails ends the rounds of its flow. The tasks of a flow end their rounds at different times: so each is given to
the worker that was just released, where its task still copies.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Assignment, Shares
from reconciler.replicator.spark.round_task import SealedSpec, read_shares, replicate

# Seconds until cancelled jobs have ended: Spark kills a worker two seconds after its task was cancelled
# (`spark.python.task.killTimeout`).
_END_PATIENCE = 60.0
_CANCEL_EVERY = 0.2


class FlowRounds:
    """The rounds of one flow, from `start` until one fails or they are ended.

    Args:
        spark: where their jobs run.
        spec: the flow.
        shares: the file in which `refresh` keeps the shares of the run.
        keep: called with the ledger of each round that is over, in the thread of its task.
        number: how often the flow was started, which names its jobs.

    Attributes:
        failure: why they have ended, where one failed.
    """

    def __init__(
        self,
        spark: SparkContext,
        spec: FlowSpec,
        shares: Path,
        keep: Callable[[list[tuple[Any, ...]]], None],
        number: int,
    ) -> None:
        self._spark = spark
        self._spec = spec
        self._file = shares
        self._keep = keep
        self._group = f"{spec.flow.name} {number}"
        self.failure: Exception | None = None
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._shares = Shares()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin the first rounds, and return at once."""
        self._newest_shares()

    @property
    def is_active(self) -> bool:
        """Whether rounds run, or are about to, and none has failed."""
        return self.failure is None and any(thread.is_alive() for thread in self._threads)

    def finish(self) -> None:
        """Let the rounds that run now be the last ones, and return at once."""
        self._over.set()

    def cancel(self) -> None:
        """End the rounds that run now, with the processes of their tasks.

        Raises:
            Py4JError: Spark has ended.
        """
        self._over.set()
        deadline = time.monotonic() + _END_PATIENCE
        # More than once: a job that was about to be submitted was none that could be cancelled.
        while (left := [one for one in self._threads if one.is_alive()]) and time.monotonic() < deadline:
            self._spark.cancelJobGroup(self._group)
            left[0].join(_CANCEL_EVERY)

    def _newest_shares(self) -> Shares:
        """Read the shares, and start a thread for each task that has none yet: there may be more than before."""
        with self._lock:
            self._shares = read_shares(self._file, self._shares)
            while len(self._threads) < self._shares.tasks:
                task = len(self._threads)
                name = f"rounds of {self._spec.flow.name}, task {task}"
                self._threads.append(threading.Thread(target=self._run, args=(task,), name=name, daemon=True))
                self._threads[-1].start()
            return self._shares

    def _run(self, task: int) -> None:
        try:
            self._spark.setJobGroup(self._group, f"flow {self._spec.flow.name}", interruptOnCancel=True)
            # A part of a round, so that the tasks do not end theirs together.
            seconds = self._spec.round_seconds * (task + 1) / (task + 2)
            is_last = False
            while not is_last:
                # What is copied until the tasks stop belongs to a round that ends because of that.
                is_last = self._over.is_set()
                self._keep(self._round(self._newest_shares().assignments()[task], seconds))
                seconds = self._spec.round_seconds
        except Exception as error:
            # Reported by `spark.session`, which starts the flow again: all of its tasks, as those that go on may need
            # what this one has.
            self.failure = self.failure or error
            self._over.set()

    def _round(self, assignment: Assignment, seconds: float) -> list[tuple[Any, ...]]:
        spec = replace(self._spec, round_seconds=seconds)
        sealed = SealedSpec(spec.to_json(), spec.key)
        return self._spark.parallelize([assignment], 1).mapPartitions(partial(replicate, sealed)).collect()
