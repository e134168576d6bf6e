"""Deployments on YARN: each process is kept by the driver of an application in cluster mode.

YARN starts the driver again where it is lost, in another container. The tasks of its flows run beside it, as in pods:
the application has no executors. It is found by its tag, which no other application has.

Source: https://spark.apache.org/docs/latest/running-on-yarn.html
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from reconciler.deploy.driven import DrivenDeployer, NotBegun, Report, cores_of, mebibytes_of, placed, unset_variables
from reconciler.deploy.folder import RECORD, Generation, unreadable
from reconciler.deploy.resource_manager import ResourceManager, YarnApplication
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.installed import need
from reconciler.model.planning.deployments import CONF, Process

# Of the JVM that YARN starts, which does nothing but wait for the driver (MiB); the driver gets the rest.
_JVM = 512
_SUBMIT_SECONDS = 900
_KILL = ("org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application", "-kill")
_LINES = 5
_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


class YarnDeployer(DrivenDeployer):
    """Keeps processes running by applications of YARN.

    Args:
        folder: of the data centre, on a disk that all nodes share.
        environ: the variables of this process.
    """

    begins_context = True

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._environ = environ

    # --- before ------------------------------------------------------------------------------------------------------

    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here: no ResourceManager, no such queue, too little room."""
        first = next(iter(processes))
        manager = _manager_of(first)
        try:
            need("replicate")
            manager.check()
            room = list(self._no_room(manager, processes))
            return [*self._no_configuration(first), *_no_queue(manager, first), *room, *unset_variables(processes)]
        except EnvironmentFault as error:
            return list(error.problems)

    def _no_configuration(self, process: Process) -> Iterator[Problem]:
        """Yield that this machine does not know the cluster as its clients do."""
        folder = self._configuration(process)
        if not folder or not (Path(folder) / "yarn-site.xml").is_file():
            found = f"none in {folder}" if folder else f"neither yarn.configuration nor {_VARIABLES[0]}"
            message = f"expected the folder with the cluster's yarn-site.xml; found {found}"
            remedy = "declare yarn.configuration, such as /etc/hadoop/conf"
            yield Problem("AB768", f"data centre {process.datacenter}", message, remedy)

    def _no_room(self, manager: ResourceManager, processes: Collection[Process]) -> Iterator[Problem]:
        """Yield that containers find too few cores or too little memory: YARN would let them wait."""
        nodes = manager.nodes()
        lacking, _ = placed(processes, ((one.cores, one.memory) for one in nodes))
        if lacking is not None:
            there = ", ".join(f"{one.host} {one.cores} and {one.memory} MiB" for one in nodes)
            needed = f"{cores_of(lacking)} free cores and {mebibytes_of(lacking)} MiB"
            message = f"no node has {needed} for {lacking.name}; free are: {there or 'none, as no node runs'}"
            remedy = "add nodes or end what runs there: a process that is replaced runs beside the new one"
            yield Problem("AB769", manager.where, message, remedy)

    # --- drivers -----------------------------------------------------------------------------------------------------

    def _check(self, process: Process) -> None:
        _manager_of(process).check()

    def _submit(self, generation: Generation, program: Path, description: Path) -> None:
        self._spark(generation, "spark-submit", *_options(generation), str(program), str(description))

    def _spark(self, generation: Generation, program: str, *arguments: str) -> None:
        """Run a program of Spark that talks to the cluster; its errors are those of `_submit`."""
        process, home = generation.process, _spark_home()
        environ = dict(self._environ) | {"SPARK_HOME": str(home), "HADOOP_CONF_DIR": self._configuration(process)}
        command = [str(home / "bin" / program), *arguments]
        try:
            ended = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SUBMIT_SECONDS,
                env=environ,
                check=False,
            )
            lines, why = ended.stdout.decode(errors="replace").splitlines(), f"ended with {ended.returncode}"
            if ended.returncode == 0:
                return
        except subprocess.TimeoutExpired:
            lines, why = [], f"did not end within {_SUBMIT_SECONDS} s"
        told = "; ".join(_telling(lines))
        message = f"{program} for {process.name} {why}{': ' if told else ''}{told}"
        raise EnvironmentFault(
            Problem("AB768", _manager_of(process).where, message, "mend what it names, then apply again")
        )

    def _active(self, generation: Generation) -> Collection[str]:
        return [one.container for one in self._applications(generation) if not one.is_over]

    def _not_begun(self, generation: Generation, last: Report | None) -> NotBegun:
        found = self._applications(generation)
        if not found:
            return NotBegun("YARN has no application of it")
        newest = found[-1]
        told = f": {newest.why}" if newest.why else ""
        if newest.is_over:
            return NotBegun(f"its application {newest.id} ended: {newest.state}{told}", is_final=True)
        if last is not None:
            return NotBegun(f"its driver {last.driver} on {last.host} is lost, and no other one has begun yet")
        return NotBegun(f"its application {newest.id} is {newest.state}{told}")

    def _is_driven(self, generation: Generation) -> bool:
        with suppress(EnvironmentFault):
            return any(not one.is_over for one in self._applications(generation))
        return True

    def _kill(self, generation: Generation, *, everything: bool) -> None:
        with suppress(EnvironmentFault):
            for one in self._applications(generation):
                if not one.is_over and (everything or not one.container):
                    # By a client's protocol: the REST API refuses it where users have no login of their own there.
                    self._spark(generation, "spark-class", *_KILL, one.id)

    def _applications(self, generation: Generation) -> list[YarnApplication]:
        return _manager_of(generation.process).applications(tag_of(generation))

    def _configuration(self, process: Process) -> str:
        """Return the folder with the cluster's configuration for clients; empty where there is none."""
        declared = dict(process.limits).get("configuration")
        return declared or next((self._environ[name] for name in _VARIABLES if self._environ.get(name)), "")


def tag_of(generation: Generation) -> str:
    """Return the tag of the application of a generation: no other folder, process or start has it."""
    process = generation.process
    told = "\n".join((process.folder, process.topology, process.datacenter, generation.name))
    return f"anabranch-{hashlib.sha256(told.encode()).hexdigest()[:32]}"


def _options(generation: Generation) -> list[str]:
    """Return the options of `spark-submit`; no variable with a value of the user is among them."""
    process = generation.process
    limits = dict(process.limits)
    ours = {
        "spark.yarn.tags": tag_of(generation),
        "spark.yarn.submit.waitAppCompletion": "false",
        # The cluster's own limit holds where it is lower; failures that are longer ago do not count.
        "spark.yarn.maxAppAttempts": "100",
        "spark.yarn.am.attemptFailuresValidityInterval": "10m",
        "spark.yarn.am.waitTime": "600s",
        "spark.driver.cores": str(cores_of(process)),
        "spark.driver.memory": f"{_JVM}m",
        "spark.driver.memoryOverhead": f"{max(_JVM, mebibytes_of(process) - _JVM)}m",
        # Without executors: a number of 0 is refused, but for dynamic allocation.
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.ui.enabled": "false",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": process.python,
        "spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON": process.python,
    }
    if "archive" in limits:
        ours["spark.yarn.dist.archives"] = f"{limits['archive']}#environment"
    elif process.python == sys.executable:
        # Every node has the environment of `apply`, and Spark with it.
        ours["spark.yarn.jars"] = f"local:{_spark_home()}/jars/*"
    given = {name.removeprefix(CONF): value for name, value in limits.items() if name.startswith(CONF)}
    name = f"anabranch {process.topology} {process.datacenter} {generation.name}"
    options = ["--master", "yarn", "--deploy-mode", "cluster", "--name", name]
    if "queue" in limits:
        options += ["--queue", limits["queue"]]
    return options + [word for key, value in (ours | given).items() for word in ("--conf", f"{key}={value}")]


def _no_queue(manager: ResourceManager, process: Process) -> Iterator[Problem]:
    """Yield that a queue is not there, which a submission would end with."""
    queue = dict(process.limits).get("queue")
    known = manager.queues() if queue else set()
    if queue and queue not in known:
        message = f"it has no queue {queue}; there are {', '.join(sorted(known)) or 'none'}"
        yield Problem("AB768", manager.where, message, "correct yarn.queue, or have the queue made")


def _manager_of(process: Process) -> ResourceManager:
    """Return the ResourceManager of a process.

    Raises:
        EnvironmentFault: AB761, a record has none.
    """
    named = dict(process.limits).get("resource-managers", "")
    if not named:
        raise unreadable(Path(process.folder) / RECORD, "it has no yarn.resource-managers")
    return ResourceManager(named.split(","))


def _telling(lines: list[str]) -> list[str]:
    """Return the lines with what went wrong: those of exceptions, else the last ones."""
    of_exceptions = [line.strip() for line in lines if line.startswith(("Exception in", "Caused by"))]
    found = of_exceptions or [line.strip() for line in lines[-_LINES:]]
    return [line[:300] for line in found[:_LINES]]


def _spark_home() -> Path:
    need("replicate")
    # Importing it would load all of it.
    spec = find_spec("pyspark")
    assert spec is not None, "it is installed"
    assert spec.origin is not None, "it is a package with an __init__"
    return Path(spec.origin).parent
