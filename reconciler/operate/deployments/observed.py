"""The deployments of a topology: what is declared and what was found on this machine, and the steps between."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.declared.deployment import Deployment, DeploymentKind
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.deployments import (
    DeployedProcess,
    DeploymentPlan,
    DeploymentsFound,
    Process,
)
from reconciler.model.planning.drift import DriftedProcess
from reconciler.model.planning.health import Check
from reconciler.operate.targets import InvalidArgument

if TYPE_CHECKING:
    from reconciler.deploy.deployer import Deployer
    from reconciler.deploy.registry import RegisteredDeployment


_ELSEWHERE = ("standalone", "kubernetes", "yarn")


@dataclass(frozen=True)
class Deployments:
    """The deployments of one topology.

    Attributes:
        topology: what is declared.
        environ: the variables of this process.
    """

    topology: Topology
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def plans(self, targets: Collection[str]) -> tuple[DeploymentPlan, ...]:
        """Return the steps of all data centres of some targets.

        Raises:
            EnvironmentFault: AB761, a record cannot be read; AB762 to AB765, what is declared cannot be deployed here.
            Refused: AB760, a folder is that of another deployment.
        """
        from reconciler.plan.deployments import deployment_plans

        if not self.places() and not any(one.deployment.kind != "none" for one in self.topology.datacenters.values()):
            return ()
        found = self.found()
        plans = deployment_plans(self.topology, targets, self.wanted(), found, socket.gethostname())
        self._check(plans)
        return plans

    def wanted(self) -> tuple[Process, ...]:
        """Return all processes that are declared, and that `apply` starts."""
        from reconciler.plan.deployments import wanted_processes

        versions = lru_cache(version_at)
        return tuple(
            process
            for datacenter in self.topology.datacenters.values()
            if datacenter.deployment.is_applied
            for process in wanted_processes(self.topology, datacenter, sys.executable, versions)
        )

    def found(self) -> DeploymentsFound:
        """Return what is deployed on this machine, where it is declared and where it was; errors as of `plans`."""
        found: dict[str, tuple[DeployedProcess, ...]] = {}
        for place in self.places():
            there = self.at(place).found()
            found[place.datacenter] = (*found.get(place.datacenter, ()), *there.values())
        return {name: processes for name, processes in found.items() if processes}

    def removal(self, targets: Collection[str]) -> tuple[DeploymentPlan, ...]:
        """Return the steps that stop what runs in data centres of which all clusters are among some targets.

        Raises:
            EnvironmentFault: AB761, a record cannot be read.
        """
        from reconciler.plan.deployments import removal_plans

        return removal_plans(self.topology, targets, self.found()) if self.places() else ()

    def drift(self, targets: Collection[str]) -> tuple[DriftedProcess, ...]:
        """Return what runs otherwise than it is declared in the data centres of some targets; errors as of `plans`."""
        from reconciler.plan.deployments import deployment_drift

        if not self.places():
            return ()
        chosen = {self.topology.clusters[alias].datacenter for alias in targets}
        here = [one for one in self.wanted() if one.datacenter in chosen and self._is_here(one.datacenter)]
        return tuple(deployment_drift(here, self.found()))

    def processes(self, datacenter: str | None = None) -> list[DeployedProcess]:
        """Return every process that is deployed, or declared and not deployed.

        Args:
            datacenter: name of the only one to return processes of.

        Raises:
            InvalidArgument: `datacenter`, nothing is deployed or declared there.
            EnvironmentFault: as of `plans`.
        """
        there = [one for processes in self.found().values() for one in processes]
        known = {(one.process.datacenter, one.process.name) for one in there}
        lacking = [one for one in self.wanted() if (one.datacenter, one.name) not in known]
        found = [*there, *(DeployedProcess(one, False, why=self._why_not_here(one.datacenter)) for one in lacking)]
        names = {one.process.datacenter for one in found}
        if datacenter is not None and datacenter not in names:
            message = f"no process of {datacenter} is deployed or declared; there are {', '.join(sorted(names))}"
            raise InvalidArgument(message, "datacenter")
        return [one for one in found if datacenter in (None, one.process.datacenter)]

    def checks(self, targets: Collection[str]) -> Iterator[Check]:
        """Yield whether the data centres of some targets can be deployed on this machine, as declared."""
        chosen = {self.topology.clusters[alias].datacenter for alias in targets}
        wanted = [one for one in self.wanted() if one.datacenter in chosen and self._is_here(one.datacenter)]
        for name in dict.fromkeys(one.datacenter for one in wanted):
            mine = [one for one in wanted if one.datacenter == name]
            try:
                # What runs has what it needs, and the room that it takes.
                there = [one for one in self.found().get(name, ()) if one.process.topology == self.topology.name]
                running = {one.process.name for one in there if one.is_running}
                left = [one for one in mine if one.name not in running]
                problems = self._against(left) if left else []
            except AnabranchError as error:
                problems = list(error.problems)
            if not problems:
                found = f"{', '.join(one.name for one in mine)}: {mine[0].kind}, in {mine[0].folder}"
                yield Check(f"deployment {name}", "ok", found)
            yield from (Check(f"deployment {name}", "failure", one.message, one.remedy) for one in problems)

    def log(self, process: str, lines: int, datacenter: str | None = None) -> str:
        """Return the last lines of what a process printed; errors are those of `named`."""
        return self.at(self.named(process, datacenter)).log(process, lines)

    def named(self, process: str, datacenter: str | None) -> Process:
        """Return the deployed process of a name.

        Raises:
            InvalidArgument: `process`, there is none, or one in several data centres, of which none is named.
            EnvironmentFault: AB761, a record cannot be read.
        """
        there = [one.process for processes in self.found().values() for one in processes]
        found = [one for one in there if one.name == process and datacenter in (None, one.datacenter)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(f"{one.name} of {one.datacenter}" for one in found or there) or "none"
        message = f"expected one deployed process {process}; there are {names}"
        raise InvalidArgument(message, "datacenter" if found else "process")

    def _is_here(self, datacenter: str) -> bool:
        return self.topology.datacenters[datacenter].deployment.is_on(socket.gethostname())

    def _why_not_here(self, datacenter: str) -> str:
        host = self.topology.datacenters[datacenter].deployment.host
        return "not deployed" if self._is_here(datacenter) else f"deployed on {host}, which this machine is not"

    # --- places ------------------------------------------------------------------------------------------------------

    def places(self) -> list[RegisteredDeployment]:
        """Return where deployments of this topology are or are to be, each place once."""
        from reconciler.deploy.registry import RegisteredDeployment, Registry

        declared = {
            name: one.deployment for name, one in self.topology.datacenters.items() if one.deployment.is_applied
        }
        places = [
            RegisteredDeployment(name, one.kind, one.folder, one.systemd.scope)
            for name, one in declared.items()
            if one.is_on(socket.gethostname())
        ]
        return list(dict.fromkeys((*Registry(self.topology.name, self.environ).read(), *places)))

    def at(self, place: Process | RegisteredDeployment) -> Deployer:
        """Return what keeps a process, or those of a place, running."""
        from reconciler.deploy.deployer import deployer_of

        return deployer_of(place.kind, Path(place.folder), place.scope, self.environ, self._tasks)

    def _tasks(self, process: Process) -> int:
        return sum(flow.tasks for flow in self.topology.flows_into(process.targets))

    # --- checks ------------------------------------------------------------------------------------------------------

    def _check(self, plans: Sequence[DeploymentPlan]) -> None:
        """Raise everything that stands against deploying what is planned, together."""
        problems: list[Problem] = []
        for plan in plans:
            if processes := [step.process for step in plan.steps if step.starts]:
                problems += self._against(processes)
        if problems:
            raise EnvironmentFault(problems)

    def _against(self, processes: Sequence[Process]) -> list[Problem]:
        """Return what stands against deploying processes of one data centre here.

        Raises:
            AnabranchError: AB760, AB761 or AB765, as of `plans`.
        """
        deployment, deployer = self.topology.datacenters[processes[0].datacenter].deployment, self.at(processes[0])
        deployer.folder.check(self.topology.name, processes[0].datacenter)
        found = [*_unfit(processes[0]), *deployer.objections(processes)]
        return list(dict.fromkeys(_placed(problem, deployment) for problem in found))


def version_at(kind: DeploymentKind, python: str) -> str:
    """Return which version of Anabranch an interpreter has; empty where none could be found."""
    from reconciler.deploy.programs import version_of

    # Of interpreters elsewhere nothing can be seen: drivers look whether these have the version of `apply`.
    return __version__ if kind in _ELSEWHERE else version_of(python)


def _unfit(process: Process) -> list[Problem]:
    """Return that an interpreter has no Anabranch that could run."""
    if process.version:
        return []
    message = f"no Anabranch is installed for {process.python}"
    remedy = "install it there, as ci/install.sh does, or correct the path"
    return [Problem("AB762", f"data centre {process.datacenter}", message, remedy)]


def _placed(problem: Problem, deployment: Deployment) -> Problem:
    """Return a problem with the place in the file at which the deployment is declared."""
    return replace(problem, where=deployment.place or problem.where)
