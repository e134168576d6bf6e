"""Deployments on a standalone Spark cluster: each process is kept by a driver, which the master keeps running."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from reconciler.deploy.driven import DrivenDeployer, NotBegun, Report, cores_of, mebibytes_of, placed, unset_variables
from reconciler.deploy.folder import RECORD, Generation, unreadable
from reconciler.deploy.programs import spark_version
from reconciler.deploy.spark_master import SparkCluster, SparkMaster
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, read_text
from reconciler.model.connection.references import MASTERS, Reference, settled
from reconciler.model.planning.deployments import Process

_DRIVER = "org.apache.spark.deploy.SparkSubmit"
# A driver in one of these states was not begun, and will not be.
_FAILED = ("ERROR", "FAILED", "KILLED")


class StandaloneDeployer(DrivenDeployer):
    """Keeps processes running by drivers on a Spark cluster.

    Args:
        folder: of the data centre, on a disk that all workers share.
        tasks: returns how many tasks the flows of a process have, each of which needs a core.
    """

    def __init__(self, folder: Path, tasks: Callable[[Process], int]) -> None:
        super().__init__(folder)
        self._tasks = tasks

    # --- before ------------------------------------------------------------------------------------------------------

    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here: no master, another version of Spark, too little room."""
        try:
            master = _master_of(next(iter(processes)))
            cluster, theirs, ours = master.cluster(), master.version(), spark_version()
        except EnvironmentFault as error:
            return list(error.problems)
        room = self._no_room(master, cluster, processes)
        return [*self._other_version(master, theirs, ours), *room, *unset_variables(processes)]

    def _other_version(self, master: SparkMaster, theirs: str, ours: str) -> Iterator[Problem]:
        if theirs.split(".")[:2] != ours.split(".")[:2]:
            message = f"expected Spark {'.'.join(ours.split('.')[:2])}, which pyspark {ours} is of; found {theirs}"
            remedy = "deploy on a cluster of that version, or install the pyspark of the cluster's version"
            yield Problem("AB768", f"Spark cluster {master.address}", message, remedy)

    def _no_room(self, master: SparkMaster, cluster: SparkCluster, processes: Collection[Process]) -> Iterator[Problem]:
        """Yield that drivers and tasks find too few cores or too little memory: the master would let them wait."""
        lacking, free = placed(processes, ((one.cores, one.memory) for one in cluster.workers))
        where = f"Spark cluster {master.address}"
        remedy = "add workers or end what runs there: a process that is replaced runs beside the new one for a while"
        if lacking is not None:
            there = ", ".join(f"{one.host} {one.cores} and {one.memory} MiB" for one in cluster.workers)
            needed = f"{cores_of(lacking)} free cores and {mebibytes_of(lacking)} MiB"
            message = f"no worker has {needed} for the driver of {lacking.name}"
            yield Problem("AB769", where, f"{message}; free are: {there or 'none, as no worker lives'}", remedy)
            return
        tasks, left = sum(map(self._tasks, processes)), sum(cores for cores, _ in free)
        if left < tasks:
            drivers = sum(map(cores_of, processes))
            message = f"{left} free cores are left beside {drivers} of drivers, for {tasks} tasks, all at once"
            yield Problem("AB769", where, message, remedy)

    # --- drivers -----------------------------------------------------------------------------------------------------

    def _check(self, process: Process) -> None:
        _master_of(process).cluster()

    def _submit(self, generation: Generation, program: Path, description: Path) -> None:
        master = _master_of(generation.process)
        submission = master.submit(_submission(generation, master.address, program, description))
        self.folder.write(self._submission(generation), submission)

    def _active(self, generation: Generation) -> Collection[str]:
        return _master_of(generation.process).cluster().drivers

    def _not_begun(self, generation: Generation, last: Report | None) -> NotBegun:
        if last is not None:
            return NotBegun(f"its driver {last.driver} on {last.host} is lost, and no other one has begun yet")
        submission = self._submitted(generation)
        state, worker = _master_of(generation.process).submitted(submission) if submission else ("", "")
        if state in _FAILED:
            return NotBegun(f"its driver {submission} ended: {state}", is_final=True)
        if worker:
            return NotBegun(f"its driver {submission} has not begun yet on {worker}; see its log on that worker's page")
        return NotBegun(f"its driver {submission} is {state or 'unknown to the master'}")

    def _is_driven(self, generation: Generation) -> bool:
        with suppress(EnvironmentFault):
            known = {self._submitted(generation), *(one.driver for one in self._reports(generation))}
            return not known.isdisjoint(self._active(generation))
        return True

    def _kill(self, generation: Generation, *, everything: bool) -> None:
        submission = self._submitted(generation)
        with suppress(EnvironmentFault):
            master = _master_of(generation.process)
            if submission and (everything or not master.submitted(submission).worker):
                master.kill(submission)
            for report in self._reports(generation) if everything else ():
                master.kill(report.driver)

    def _submitted(self, generation: Generation) -> str:
        try:
            return read_text(self._submission(generation)).strip()
        except (OSError, UnreadableFile):
            return ""

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
            "spark.driver.cores": str(cores_of(process)),
            "spark.driver.memory": f"{mebibytes_of(process)}m",
            "spark.jars": "",
        },
    }
