"""What a Spark task does in one round, and what it is given: for jobs (`flow_rounds`) and queries (`source`).

Processes that only plan rounds import it, too: so what copies is imported by the task that copies.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterable, Iterator
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


def replicate(sealed: SealedSpec, assignments: Iterable[Assignment], is_ours: bool = True) -> Iterator[tuple[Any, ...]]:
    """Replicate what this task has for one round, then yield its ledger; the worker goes on copying after that.

    Args:
        sealed: the flow.
        assignments: of this task, which is one.
        is_ours: whether nothing but flows runs in the workers. Then a worker ends with its task: one that is left over
            would be given the round of another, whose own worker would be left over in turn.
    """
    from reconciler.model.tasks.spec import FlowSpec  # noqa: PLC0415
    from reconciler.replicator.task import rounds  # noqa: PLC0415
    from reconciler.starting import log_to_stderr  # noqa: PLC0415
    from reconciler.state.journals import home  # noqa: PLC0415

    # A terminal's Ctrl-C reaches the workers too; the driver stops them, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log_to_stderr()
    spec = FlowSpec.from_json(sealed.spec, sealed.key)
    # This process uses the journals that its driver has found.
    home.hold(spec.target, spec.topology, spec.home)
    for assignment in assignments:
        yield from map(tuple, rounds.run(spec, assignment, _end_process if is_ours else _stay))


def _end_process() -> None:
    os._exit(0)


def _stay() -> None:
    """Leave a process to Spark, which ends those that are idle for a minute."""


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
