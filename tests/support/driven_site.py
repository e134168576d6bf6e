"""A data centre that drivers on a cluster run, changed and looked at by commands; what is killed of it heals."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import psutil

from reconciler.model.base.errors import Unreachable
from reconciler.model.tasks.status import PartitionState
from reconciler.state.status import StatusReader
from tests.support.clusters.kafka import declared
from tests.support.commands.command import Ended, anabranch
from tests.support.deployed_site import Site
from tests.support.waiting import eventually

SECONDS = 900
PARTITIONS = 2
_CHANGES = 3


class DrivenSite(Site):
    """A data centre on a cluster: a subclass for each kind, whose fields of the file it gives."""

    kind: ClassVar[str]
    template: ClassVar[str]

    @abstractmethod
    def where(self) -> Mapping[str, Any]:
        """Return the fields of the kind."""

    @abstractmethod
    def spark(self) -> Mapping[str, str]:
        """Return what the template has beside clusters, name and deployment."""

    def write(self, **deploy: Any) -> None:
        fields = {"kind": self.kind, "folder": str(self.folder)} | deploy
        if fields["kind"] == self.kind:
            fields[self.kind] = {**self.where(), **fields.get(self.kind, {})}
        addresses = {alias: one.bootstrap for alias, one in self._clusters.items()}
        text = self.template.format(name=self.name, deploy=json.dumps(fields), **self.spark(), **addresses)
        self.file.write_text(text)

    def apply(self) -> Ended:
        return anabranch("apply", self.file, "--yes", limit=SECONDS)

    def process(self) -> dict[str, Any]:
        (found,) = self.processes().values()
        return found

    def run(self) -> str:
        """Return the id of the run that has all partitions; empty while none does."""
        reader = StatusReader(declared("west", self._clusters["west"]), self.name)
        try:
            words, now = reader.current(), time.time()
        except Unreachable:
            # On a busy machine a broker may miss its heartbeats, and is not in the metadata for a moment.
            return ""
        finally:
            reader.close()
        running = [(one.run, partition) for one in words if one.is_live(now) for partition in one.partitions]
        runs = {run for run, partition in running if partition.state is PartitionState.RUNNING}
        return runs.pop() if len(runs) == 1 and len(running) == PARTITIONS else ""

    # --- what is asserted of each kind -------------------------------------------------------------------------------

    def is_planned(self) -> None:
        planned = anabranch("plan", self.file, "--detailed-exitcode")
        assert planned.code == _CHANGES, planned
        assert f"dc2 (processes, {self.kind})" in planned.stdout

    def is_deployed(self) -> None:
        applied = self.apply()
        assert applied.code == 0, f"{applied.stdout}\n{applied.stderr}"
        assert "  done      dc2  deploy replicate" in applied.stdout.splitlines()
        assert anabranch("plan", self.file, "--detailed-exitcode").code == 0
        assert anabranch("drift", self.file, "--detailed-exitcode").code == 0

    def copies(self) -> None:
        before = self.copied()
        eventually("records are copied", self.copied, lambda copied: copied > before, seconds=SECONDS)

    def heals(self, what: str, kill: Callable[[], object]) -> None:
        """Kill something, and wait until another run copies."""
        before = eventually("the flow runs", self.run, seconds=SECONDS)
        kill()
        since = time.monotonic()
        after = eventually("another run copies", self.run, lambda run: run not in ("", before), seconds=SECONDS)
        print(f"{what} was killed: run {before} was followed by {after} after {time.monotonic() - since:.1f} s")
        self.copies()
        eventually("it is known to run", lambda: self.process()["running"], seconds=SECONDS)

    def is_restarted(self) -> None:
        restarted = anabranch("deployments", self.file, "--restart", "replicate", limit=SECONDS)
        assert restarted.code == 0, restarted

    def stops(self) -> None:
        """What is no longer declared ends."""
        self.write(kind="none")
        stopped = self.apply()
        assert stopped.code == 0, stopped
        assert "  done      dc2  stop replicate" in stopped.stdout.splitlines()

    def leaves_its_logs(self) -> None:
        assert sorted(path.name for path in self.folder.iterdir()) == ["driver.py", "logs"]


def python_of(jvm: psutil.Process) -> psutil.Process:
    """Return the Python of a driver, beside its JVM."""
    (found,) = [one for one in jvm.children() if any(word.endswith("driver.py") for word in one.cmdline())]
    return found
