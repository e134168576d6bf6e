"""Deployments by drivers of Spark: what those of a standalone cluster and of YARN have in common.

The folder of the data centre is on a disk that all machines of the cluster share with that of `apply`. A driver is
followed by what it reports there, under the name of its generation: after a loss its successor has another id.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.deploy import bootstrap
from reconciler.deploy.folder import DeploymentFolder, Generation
from reconciler.deploy.local import PATIENCE
from reconciler.deploy.programs import command_of, found_in, given_variables, last_lines
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, read_json, read_text
from reconciler.model.base.shape import COUNT, TEXT, TIME, WORD, Misfit, fields
from reconciler.model.base.text import json_text
from reconciler.model.planning.deployments import DeployedProcess, Process

PROGRAM = "driver.py"
"""Name of the program in the folder that drivers run first."""
_PAUSE = 0.5
_MEBIBYTE = 2**20
_REPORT = {"driver": WORD, "host": WORD, "pid": COUNT, "since": TIME, "restarts": COUNT, "why": TEXT}


@dataclass(frozen=True)
class Report:
    """How a driver fares, as it wrote it.

    Attributes:
        driver: name of the folder that Spark or YARN started it in.
        host: its machine.
        pid: of its process; 0 while that does not run.
        since: seconds since 1970.
        restarts: how often it has started the process again.
        why: why the process does not run, or ended last; empty where it did not.
    """

    driver: str
    host: str
    pid: int
    since: float
    restarts: int
    why: str


class NotBegun(NamedTuple):
    """Why no driver of a generation runs.

    Attributes:
        why: in words.
        is_final: whether none will come any more.
    """

    why: str
    is_final: bool = False


class DrivenDeployer(ABC):
    """Keeps processes running by drivers on a cluster; a subclass for each kind of cluster.

    Args:
        folder: of the data centre, on a disk that the whole cluster shares.
    """

    begins_context = False
    """Whether a driver has to begin a Spark context, without which the cluster ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = DeploymentFolder(folder, is_private=True)

    # --- what a kind of cluster has ----------------------------------------------------------------------------------

    @abstractmethod
    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here, as `Deployer` has it."""

    @abstractmethod
    def _check(self, process: Process) -> None:
        """Make sure that the cluster of a process answers.

        Raises:
            EnvironmentFault: AB768, it does not; or its address cannot be looked up.
        """

    @abstractmethod
    def _submit(self, generation: Generation, program: Path, description: Path) -> None:
        """Have the cluster run a driver; errors are those of `_check`, and AB768, it refuses."""

    @abstractmethod
    def _active(self, generation: Generation) -> Collection[str]:
        """Return the drivers that the cluster has, by the names in reports; errors are those of `_check`."""

    @abstractmethod
    def _not_begun(self, generation: Generation, last: Report | None) -> NotBegun:
        """Return why none of the drivers that have reported runs; errors are those of `_check`.

        Args:
            generation: of the process.
            last: the newest report; None before there is one.
        """

    @abstractmethod
    def _is_driven(self, generation: Generation) -> bool:
        """Return whether a driver of a generation runs or waits; while the cluster is away, whether one may."""

    @abstractmethod
    def _kill(self, generation: Generation, *, everything: bool) -> None:
        """End drivers that wait for a machine, or every one; does nothing while the cluster is away."""

    # --- what all of them do -----------------------------------------------------------------------------------------

    def found(self) -> dict[str, DeployedProcess]:
        """Return what is deployed, as `Deployer` has it; where no cluster answers, nothing is known to run."""

        def fares(generation: Generation) -> DeployedProcess:
            try:
                return self.fares(generation)
            except EnvironmentFault as error:
                return DeployedProcess(generation.process, False, why=error.problems[0].message)

        return found_in(self.folder, fares)

    def begin(self, process: Process) -> Generation:
        """Submit a driver for a process, as `Deployer` has it."""
        state = self.folder.state_of(process.name)
        # It stays when all is stopped: a driver that comes late finds there that nothing is to run.
        program = self.folder.path / PROGRAM
        with self.folder.beginning(process) as generation:
            description = self.folder.run / f"{generation.name}.description"
            self.folder.write(program, read_text(Path(bootstrap.__file__)))
            self.folder.write(description, json_text(self._told(generation, state)))
            self._submit(generation, program, description)
        return generation

    def _told(self, generation: Generation, state: Path) -> dict[str, Any]:
        """Return what `bootstrap` and `spark_driver` read."""
        process = generation.process
        return {
            "name": process.name,
            "number": generation.number,
            "version": process.version,
            "python": process.python,
            "command": command_of(process, self.folder.path, state),
            "variables": list(process.variables),
            "environment_file": dict(process.limits).get("environment-file", ""),
            "record": str(self.folder.record),
            "reports": str(self.folder.run),
            "log": str(self.folder.log_of(process.name)),
            "patience": PATIENCE,
            "begins_context": self.begins_context,
        }

    def fares(self, generation: Generation) -> DeployedProcess:
        """Return how a generation fares, as `Deployer` has it.

        Raises:
            EnvironmentFault: AB768, the cluster does not answer.
        """
        there, reports = self._active(generation), self._reports(generation)
        active = sorted((one for one in reports if one.driver in there), key=lambda one: one.since)
        # Each driver but the first one took the place of one that was lost.
        restarts = sum(one.restarts for one in reports) + max(0, len(reports) - 1)
        if active:
            newest = ([one for one in active if one.pid] or active)[-1]
            return DeployedProcess(generation.process, newest.pid > 0, newest.pid, restarts, newest.why)
        last = max(reports, key=lambda one: one.since, default=None)
        if last is not None and last.why and not last.pid:
            return DeployedProcess(generation.process, False, 0, restarts, last.why)
        none = self._not_begun(generation, last)
        return DeployedProcess(generation.process, False, 0, max(1, restarts) if none.is_final else restarts, none.why)

    def end(self, generations: Sequence[Generation]) -> None:
        """Stop generations for good, as `Deployer` has it: drivers end by themselves once they are off the record.

        Raises:
            EnvironmentFault: AB767, one does not end; AB768, the cluster does not answer: nothing was stopped.
        """
        if not generations:
            return
        for one in generations:
            self._check(one.process)
        self.folder.forget(generations)
        begun = time.monotonic()
        waiting = list(generations)
        while waiting := [one for one in waiting if self._is_driven(one)]:
            passed = time.monotonic() - begun
            for one in waiting:
                self._kill(one, everything=passed > PATIENCE + _PAUSE)
            if passed > 2 * PATIENCE:
                message = f"{waiting[0].process.name} did not end"
                remedy = "see its log; end its driver on the page of the cluster, and apply again"
                raise EnvironmentFault(Problem("AB767", str(self.folder.path), message, remedy))
            time.sleep(_PAUSE)
        for one in generations:
            for path in self.folder.run.glob(f"{one.name}.*"):
                path.unlink(missing_ok=True)

    def log(self, process: str, lines: int) -> str:
        """Return the last lines of what a process printed."""
        return last_lines(self.folder.log_of(process), lines)

    def _reports(self, generation: Generation) -> list[Report]:
        found = []
        for path in sorted(self.folder.run.glob(f"{generation.name}.*.json")):
            with suppress(OSError, UnreadableFile, Misfit):
                found.append(Report(**fields(read_json(path), _REPORT)))
        return found


def cores_of(process: Process) -> int:
    """Return the cores of a driver."""
    return int(dict(process.limits)["cores"])


def mebibytes_of(process: Process) -> int:
    """Return the memory of a driver in MiB."""
    return int(dict(process.limits)["memory"]) // _MEBIBYTE


def placed(
    processes: Collection[Process], rooms: Iterable[tuple[int, int]]
) -> tuple[Process | None, list[tuple[int, int]]]:
    """Give each process a place on the fullest machine that has one.

    Args:
        processes: with cores and memory each.
        rooms: free cores and MiB of each machine.

    Returns:
        The first process without a place, or None; and what is left of each machine.
    """
    free = list(rooms)
    for process in processes:
        cores, memory = cores_of(process), mebibytes_of(process)
        fitting = [at for at, (left, room) in enumerate(free) if left >= cores and room >= memory]
        if not fitting:
            return process, free
        at = min(fitting, key=lambda one: free[one])
        free[at] = free[at][0] - cores, free[at][1] - memory
    return None, free


def unset_variables(processes: Collection[Process]) -> Iterator[Problem]:
    """Yield that an environment file that this machine has as well lacks a variable."""
    for process in processes:
        file = dict(process.limits).get("environment-file")
        given = given_variables(Path(file)) if file else None
        if given is not None and (missing := [name for name in process.variables if not given.get(name)]):
            message = f"{', '.join(missing)} of {process.name} is not in {file}"
            remedy = f"write NAME=VALUE to {file}, on every machine of the cluster"
            yield Problem("AB763", f"data centre {process.datacenter}", message, remedy)
