"""Deployments on a standalone Spark cluster: each process is kept by a driver, which the master keeps running.

The folder of the data centre is on a disk that all workers share with the machine of `apply`. A driver is followed by
what it reports there, under the name of its generation: once a worker was lost its drivers get other ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.deploy import bootstrap
from reconciler.deploy.folder import RECORD, DeploymentFolder, Generation, unreadable
from reconciler.deploy.local import PATIENCE
from reconciler.deploy.programs import command_of, found_in, given_variables, last_lines, spark_version
from reconciler.deploy.spark_master import SparkCluster, SparkMaster
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, read_json, read_text
from reconciler.model.base.shape import COUNT, TEXT, TIME, WORD, Misfit, fields
from reconciler.model.base.text import json_text
from reconciler.model.connection.references import MASTERS, Reference, settled
from reconciler.model.planning.deployments import DeployedProcess, Process

PROGRAM = "driver.py"
"""Name of the program in the folder that drivers run first."""
_PAUSE = 0.5
_MEBIBYTE = 2**20
_DRIVER = "org.apache.spark.deploy.SparkSubmit"
# A driver in one of these states was not begun, and will not be.
_FAILED = ("ERROR", "FAILED", "KILLED")
_REPORT = {"driver": WORD, "host": WORD, "pid": COUNT, "since": TIME, "restarts": COUNT, "why": TEXT}


@dataclass(frozen=True)
class _Report:
    """How a driver fares, as it wrote it."""

    driver: str
    host: str
    pid: int
    since: float
    restarts: int
    why: str


class StandaloneDeployer:
    """Keeps processes running by drivers on a Spark cluster.

    Args:
        folder: of the data centre, on a disk that all workers share.
        tasks: returns how many tasks the flows of a process have, each of which needs a core.
    """

    def __init__(self, folder: Path, tasks: Callable[[Process], int]) -> None:
        self.folder = DeploymentFolder(folder, is_private=True)
        self._tasks = tasks

    def found(self) -> dict[str, DeployedProcess]:
        """Return what is deployed, as `Deployer` has it; where no master answers, nothing is known to run."""

        def fares(generation: Generation) -> DeployedProcess:
            try:
                return self.fares(generation)
            except EnvironmentFault as error:
                return DeployedProcess(generation.process, False, why=error.problems[0].message)

        return found_in(self.folder, fares)

    # --- before ------------------------------------------------------------------------------------------------------

    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here: no master, another version of Spark, too little room."""
        try:
            master = _master_of(next(iter(processes)))
            cluster, theirs = master.cluster(), master.version()
        except EnvironmentFault as error:
            return list(error.problems)
        return [*self._other_version(master, theirs), *self._no_room(master, cluster, processes), *_unset(processes)]

    def _other_version(self, master: SparkMaster, theirs: str) -> Iterator[Problem]:
        ours = spark_version()
        if theirs.split(".")[:2] != ours.split(".")[:2]:
            message = f"expected Spark {'.'.join(ours.split('.')[:2])}, which pyspark {ours} is of; found {theirs}"
            remedy = "deploy on a cluster of that version, or install the pyspark of the cluster's version"
            yield Problem("AB768", f"Spark cluster {master.address}", message, remedy)

    def _no_room(self, master: SparkMaster, cluster: SparkCluster, processes: Collection[Process]) -> Iterator[Problem]:
        """Yield that drivers and tasks find too few cores or too little memory: the master would let them wait."""
        free = {one.id: (one.cores, one.memory) for one in cluster.workers}
        where = f"Spark cluster {master.address}"
        remedy = "add workers or end what runs there: a process that is replaced runs beside the new one for a while"
        for process in processes:
            cores, memory = _cores(process), _mebibytes(process)
            fitting = [one for one, room in free.items() if room[0] >= cores and room[1] >= memory]
            if not fitting:
                there = ", ".join(f"{one.host} {one.cores} and {one.memory} MiB" for one in cluster.workers)
                message = f"no worker has {cores} free cores and {memory} MiB for the driver of {process.name}"
                yield Problem("AB769", where, f"{message}; free are: {there or 'none, as no worker lives'}", remedy)
                return
            chosen = min(fitting, key=lambda one: free[one])
            free[chosen] = free[chosen][0] - cores, free[chosen][1] - memory
        tasks, left = sum(map(self._tasks, processes)), sum(cores for cores, _ in free.values())
        if left < tasks:
            drivers = sum(map(_cores, processes))
            message = f"{left} free cores are left beside {drivers} of drivers, for {tasks} tasks, all at once"
            yield Problem("AB769", where, message, remedy)

    # --- start -------------------------------------------------------------------------------------------------------

    def begin(self, process: Process) -> Generation:
        """Submit a driver for a process, as `Deployer` has it."""
        state, master = self.folder.state_of(process.name), _master_of(process)
        # It stays when all is stopped: a driver that comes late finds there that nothing is to run.
        program = self.folder.path / PROGRAM
        with self.folder.beginning(process) as generation:
            self.folder.write(program, read_text(Path(bootstrap.__file__)))
            self.folder.write(self._description(generation), json_text(self._told(generation, state)))
            submission = master.submit(_submission(generation, master.address, program, self._description(generation)))
            self.folder.write(self._submission(generation), submission)
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
        }

    # --- how it fares ------------------------------------------------------------------------------------------------

    def fares(self, generation: Generation) -> DeployedProcess:
        """Return how a generation fares, as `Deployer` has it.

        Raises:
            EnvironmentFault: AB768, no master answers.
        """
        master, reports = _master_of(generation.process), self._reports(generation)
        cluster = master.cluster()
        active = sorted((one for one in reports if one.driver in cluster.drivers), key=lambda one: one.since)
        # Each driver but the first one took the place of one that was lost.
        restarts = sum(one.restarts for one in reports) + max(0, len(reports) - 1)
        if not active:
            return self._not_begun(generation, master, restarts, reports)
        running = [one for one in active if one.pid] or active
        newest = running[-1]
        return DeployedProcess(generation.process, newest.pid > 0, newest.pid, restarts, newest.why)

    def _not_begun(
        self, generation: Generation, master: SparkMaster, restarts: int, reports: Sequence[_Report]
    ) -> DeployedProcess:
        """Return how a generation fares of which no driver has reported that runs."""
        last = max(reports, key=lambda one: one.since, default=None)
        if last is not None and last.why and not last.pid:
            return DeployedProcess(generation.process, False, 0, restarts, last.why)
        submission = self._submitted(generation)
        state, worker = master.submitted(submission) if submission else ("", "")
        if last is not None:
            why = f"its driver {last.driver} on {last.host} is lost, and no other one has begun yet"
        elif state in _FAILED:
            return DeployedProcess(generation.process, False, 0, 1, f"its driver {submission} ended: {state}")
        elif worker:
            why = f"its driver {submission} has not begun yet on {worker}; see its log on the page of that worker"
        else:
            why = f"its driver {submission} is {state or 'unknown to the master'}"
        return DeployedProcess(generation.process, False, 0, restarts, why)

    # --- end ---------------------------------------------------------------------------------------------------------

    def end(self, generations: Sequence[Generation]) -> None:
        """Stop generations for good, as `Deployer` has it: drivers end by themselves once they are off the record.

        Raises:
            EnvironmentFault: AB767, one does not end; AB768, no master answers: nothing was stopped.
        """
        if not generations:
            return
        masters = {one.name: _master_of(one.process) for one in generations}
        for master in masters.values():
            master.cluster()
        self.folder.forget(generations)
        begun = time.monotonic()
        waiting = list(generations)
        while waiting := [one for one in waiting if self._is_driven(one, masters[one.name])]:
            passed = time.monotonic() - begun
            for one in waiting:
                self._kill(one, masters[one.name], everything=passed > PATIENCE + _PAUSE)
            if passed > 2 * PATIENCE:
                message = f"{waiting[0].process.name} did not end"
                remedy = "see its log; end its driver on the master's page, and apply again"
                raise EnvironmentFault(Problem("AB767", str(self.folder.path), message, remedy))
            time.sleep(_PAUSE)
        for one in generations:
            for path in (self._description(one), self._submission(one), *self._report_files(one)):
                path.unlink(missing_ok=True)

    def _is_driven(self, generation: Generation, master: SparkMaster) -> bool:
        """Return whether a driver of a generation runs or waits; while no master answers, whether one may."""
        with suppress(EnvironmentFault):
            known = {self._submitted(generation), *(one.driver for one in self._reports(generation))}
            return not known.isdisjoint(master.cluster().drivers)
        return True

    def _kill(self, generation: Generation, master: SparkMaster, *, everything: bool) -> None:
        """End a driver that no worker has taken, and after some time every one."""
        submission = self._submitted(generation)
        with suppress(EnvironmentFault):
            if submission and (everything or not master.submitted(submission).worker):
                master.kill(submission)
            for report in self._reports(generation) if everything else ():
                master.kill(report.driver)

    def log(self, process: str, lines: int) -> str:
        """Return the last lines of what a process printed."""
        return last_lines(self.folder.log_of(process), lines)

    # --- files -------------------------------------------------------------------------------------------------------

    def _reports(self, generation: Generation) -> list[_Report]:
        found = []
        for path in self._report_files(generation):
            with suppress(OSError, UnreadableFile, Misfit):
                found.append(_Report(**fields(read_json(path), _REPORT)))
        return found

    def _report_files(self, generation: Generation) -> list[Path]:
        return sorted(self.folder.run.glob(f"{generation.name}.driver-*.json"))

    def _submitted(self, generation: Generation) -> str:
        try:
            return read_text(self._submission(generation)).strip()
        except (OSError, UnreadableFile):
            return ""

    def _description(self, generation: Generation) -> Path:
        return self.folder.run / f"{generation.name}.description"

    def _submission(self, generation: Generation) -> Path:
        return self.folder.run / f"{generation.name}.submission"


def _master_of(process: Process) -> SparkMaster:
    """Return the master of a process.

    Raises:
        EnvironmentFault: AB304, its address is a reference that cannot be looked up; AB761, a record has none.
    """
    limits = dict(process.limits)
    where, declared = f"data centre {process.datacenter}: spark.master", limits.get("master", "")
    if not declared.startswith("spark://"):
        try:
            declared = settled(Reference.parse(declared), where, MASTERS)
        except ValueError:
            raise unreadable(Path(process.folder) / RECORD, "it has no spark.master") from None
    return SparkMaster(declared, limits.get("rest"), limits.get("web"))


def _submission(generation: Generation, master: str, program: Path, description: Path) -> dict[str, Any]:
    """Return the request for a driver.

    `spark-submit` refuses Python in cluster mode. Where the driver is `SparkSubmit` itself, it runs the program beside
    itself, in client mode. No variable with a value of the user is in the request: masters keep requests on disk.
    """
    process = generation.process
    name = f"anabranch {process.topology} {process.datacenter} {generation.name}"
    python = {"PYSPARK_PYTHON": process.python, "PYSPARK_DRIVER_PYTHON": process.python}
    return {
        "action": "CreateSubmissionRequest",
        "appResource": "",
        "mainClass": _DRIVER,
        "appArgs": ["--master", master, "--name", name, str(program), str(description)],
        "clientSparkVersion": spark_version(),
        "environmentVariables": python,
        "sparkProperties": {
            "spark.app.name": name,
            "spark.master": master,
            "spark.submit.deployMode": "cluster",
            "spark.driver.supervise": "true",
            "spark.driver.cores": str(_cores(process)),
            "spark.driver.memory": f"{_mebibytes(process)}m",
            "spark.jars": "",
        },
    }


def _cores(process: Process) -> int:
    return int(dict(process.limits)["cores"])


def _mebibytes(process: Process) -> int:
    return int(dict(process.limits)["memory"]) // _MEBIBYTE


def _unset(processes: Collection[Process]) -> Iterator[Problem]:
    """Yield that an environment file that this machine has as well lacks a variable."""
    for process in processes:
        file = dict(process.limits).get("environment-file")
        given = given_variables(Path(file)) if file else None
        if given is not None and (missing := [name for name in process.variables if not given.get(name)]):
            message = f"{', '.join(missing)} of {process.name} is not in {file}"
            remedy = f"write NAME=VALUE to {file}, on every worker"
            yield Problem("AB763", f"data centre {process.datacenter}", message, remedy)
