"""A run of a flow as a process that can be killed or stopped: one task, one round after the other, no Spark.

`Owner` starts `python -m tests.support.replicator.owner SPEC`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from types import TracebackType

from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.task import rounds
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusReader
from tests.support.replicator.copying import SECONDS, Condition


class Owner:
    """The process, from the start of the block to its end."""

    def __init__(self, spec: FlowSpec) -> None:
        for journal in (own(spec.topology).status, own(spec.topology).control, own(spec.topology).copies):
            Journal(spec.target, journal).ensure()
        self.spec = spec
        self.process = subprocess.Popen([sys.executable, "-m", __name__, spec.to_json()])

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()

    def wait(self, until: Condition) -> None:
        """Wait until the process says what is hoped for."""
        reader = StatusReader(self.spec.target, self.spec.topology)
        deadline = time.monotonic() + SECONDS
        try:
            while not any(until(status) for status in reader.current() if status.run == self.spec.run):
                assert self.process.poll() is None, "it has ended"
                assert time.monotonic() < deadline, "it never said so"
                time.sleep(0.05)
        finally:
            reader.close()


def main(text: str) -> None:
    """Copy until killed."""
    spec = FlowSpec.from_json(text)
    while True:
        rounds.run(spec, Assignment(0, 1, tuple(discovery.matching(spec))))


if __name__ == "__main__":
    main(sys.argv[1])
