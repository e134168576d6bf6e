"""What a Spark task does in one round, and what it is given: for jobs (`slot_rounds`) and queries (`source`).

Processes that only plan rounds import it, too: so what copies is imported by the task that copies.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.replicator.partition.shares import Assignment, Shares


class SealedSpec(NamedTuple):
    """A flow specification on its way to a task.

    Attributes:
        spec: as `FlowSpec.to_json` returns it.
        key: of its run; a secret.
    """

    spec: str
    key: str


class TaskOfRound(NamedTuple):
    """What one task does in one round."""

    sealed: SealedSpec
    assignment: Assignment


def replicate(rounds: Iterable[Sequence[TaskOfRound]]) -> Iterator[tuple[Any, ...]]:
    """Replicate what the tasks of a slot have, for one round, in a process of its own; yield what `replicated` does.

    The process goes on copying after that, and ends where no round follows: one that is left over would be given the
    round of another, whose own process would be left over in turn.

    Args:
        rounds: the one round.
    """
    for tasks in rounds:
        yield from replicated(tasks, _end_process)


def replicated(tasks: Sequence[TaskOfRound], given_up: Callable[[], None]) -> Iterator[tuple[Any, ...]]:
    """Replicate what some tasks have, for one round, then yield the ledger and each `TaskFailure`.

    Args:
        tasks: what they do, all at the same time.
        given_up: called once tasks have ended because no round has followed for a while.
    """
    from reconciler.model.tasks.spec import FlowSpec  # noqa: PLC0415
    from reconciler.replicator.task import rounds  # noqa: PLC0415
    from reconciler.starting import log_to_stderr  # noqa: PLC0415
    from reconciler.state.journals import home  # noqa: PLC0415

    # A terminal's Ctrl-C reaches the workers too; the driver stops them, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log_to_stderr()
    work = [(FlowSpec.from_json(*task.sealed), task.assignment) for task in tasks]
    for spec, _ in work:
        # This process uses the journals that its driver has found.
        home.hold(spec.target, spec.topology, spec.home)
    rows, failures = rounds.run_together(work, given_up)
    yield from (*map(tuple, rows), *failures)


def _end_process() -> None:
    os._exit(0)


def read_shares(file: Path, known: Shares) -> Shares:
    """Return the shares as the driver keeps them in a file.

    A file that cannot be read must not end the rounds: then the shares are those of the last round, and a task gets
    further partitions from the control topic as soon as it reads it.

    Args:
        file: which the driver replaces whenever the shares have grown.
        known: the shares of the round before.
    """
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return Shares.from_json(json.loads(file.read_text(encoding="utf-8")))
    return known
