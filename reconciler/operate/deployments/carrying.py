"""Carries out the steps of deployments, wave by wave, behind the changes of clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.planning.deployments import (
    DeploymentStep,
    DeployProcess,
    FactChange,
    Process,
    StopProcess,
    UpdateProcess,
)
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.steps import Plan, PlanStep
from reconciler.operate.deployments.awaiting import AwaitedProcess, is_up
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.reporter import SILENT, Reporter

if TYPE_CHECKING:
    from reconciler.deploy.deployer import Deployer
    from reconciler.deploy.folder import Generation

_NOT_UP = "AB766"
_LINES = 5


@dataclass(frozen=True)
class DeploymentControls:
    """Callbacks and limits of carrying deployments out; by default no lock and no signal stands against anything.

    Attributes:
        may_change: asked with an alias before each change in its data centre; raises an error where nothing may be.
        is_over: returns whether the command is to end.
        progress: called after each step.
        reporter: receives what is done.
        patience: seconds that a process may take until its flows run.
    """

    may_change: Callable[[str], None] = lambda _: None
    is_over: Callable[[], bool] = lambda: False
    progress: Callable[[PlanStep], None] = lambda _: None
    reporter: Reporter = SILENT
    patience: float = 600.0


@dataclass
class FilesAhead:
    """Topology files that were written before their declaration is in force.

    Attributes:
        outcome: of putting it in force; None while that is not known.
    """

    outcome: Outcome | None = None


class DeploymentWork:
    """Carries out the steps of plans.

    Args:
        deployments: of the topology.
        controls: what is asked and reported.
    """

    def __init__(self, deployments: Deployments, controls: DeploymentControls) -> None:
        self._deployments = deployments
        self._topology = deployments.topology
        self._controls = controls

    def carry_out(self, part: Plan, outcome: Outcome) -> None:
        """Carry out the steps of a wave whose clusters are as declared, and add to the outcome what became of each."""
        for plan in part.deployments:
            if why := self._why_not(part, plan.datacenter, outcome):
                outcome.skipped += [Skipped(step, why) for step in plan.steps]
                continue
            for number, step in enumerate(plan.steps):
                if self._controls.is_over():
                    outcome.skipped += [Skipped(one, "interrupted") for one in plan.steps[number:]]
                    break
                try:
                    self._may_change(step)
                    self._do(step)
                except AnabranchError as error:
                    outcome.failed.append(Failure(step, error.problems[0]))
                else:
                    outcome.done.append(step)
                self._controls.progress(step)

    @contextmanager
    def files_ahead(self, part: Plan) -> Iterator[FilesAhead]:
        """Have the topology files of processes that run in their folders, before the declaration comes into force.

        These then go on with it at once: a process that copies records reads newer files as soon as its own
        declaration is no longer in force. Where the declaration does not come into force, the files are put back.
        """
        ahead = FilesAhead()
        updated = {
            step.process.folder: step.process for step in part.deployment_steps if isinstance(step, UpdateProcess)
        }
        former = {folder: self._deployments.at(process).folder.files() for folder, process in updated.items()}
        for process in updated.values():
            self._deployments.at(process).folder.write_files(self._topology.files)
        try:
            yield ahead
        finally:
            for folder, process in updated.items():
                if ahead.outcome is None or self._why_not(part, process.datacenter, ahead.outcome):
                    self._deployments.at(process).folder.write_files(former[folder])

    def _why_not(self, part: Plan, datacenter: str, outcome: Outcome) -> str:
        """Return why the clusters of a data centre are not as declared; empty where they are."""
        for cluster in part.clusters:
            is_due = cluster.datacenter == datacenter and cluster.alias in dict(part.to_put_in_force)
            if is_due and cluster.alias not in outcome.in_force:
                return f"the declaration did not come into force at {cluster.alias}"
        return ""

    def _may_change(self, step: DeploymentStep) -> None:
        for alias, cluster in self._topology.clusters.items():
            if cluster.datacenter == step.process.datacenter and alias in self._topology.targets:
                self._controls.may_change(alias)

    def restart(self, process: Process) -> None:
        """Have a new start of a deployed process take its place, with the variables of now.

        Raises:
            EnvironmentFault: AB763, a variable is not set; AB766, the new one does not come up: the former one goes on.
        """
        if problems := self._deployments.at(process).objections([process]):
            raise EnvironmentFault(problems)
        self._update(UpdateProcess(process, (FactChange("started", "before", "now"),)))

    # --- one step ----------------------------------------------------------------------------------------------------

    def _do(self, step: DeploymentStep) -> None:
        match step:
            case StopProcess():
                self._stop(step.process)
            case DeployProcess():
                self._deploy(step.process)
            case UpdateProcess():
                self._update(step)

    def _deploy(self, process: Process) -> None:
        """Start a process in a folder that may be new; one of its name that still runs goes on until it is up."""
        from reconciler.deploy.registry import RegisteredDeployment, Registry

        deployer = self._deployments.at(process)
        deployer.folder.make()
        deployer.folder.write_files(self._topology.files)
        place = RegisteredDeployment(process.datacenter, process.kind, process.folder, process.scope)
        Registry(self._topology.name, self._deployments.environ).add(place)
        self._replace(deployer, process)

    def _replace(self, deployer: Deployer, process: Process) -> None:
        """Start a process in place of what runs under its name; one that copies records beside that, until it is up.

        Raises:
            EnvironmentFault: AB766, it does not come up: the former one goes on.
        """
        former = self._generations(deployer, process.name)
        running = [one for one in former if deployer.fares(one).is_running]
        deployer.end([one for one in former if one not in running])
        if process.name.startswith("replicate"):
            self._begin(deployer, process)
            deployer.end(running)
            return
        # What listens has its address to itself.
        deployer.end(running)
        try:
            self._begin(deployer, process)
        except EnvironmentFault:
            if running:
                deployer.begin(running[-1].process)
            raise

    def _begin(self, deployer: Deployer, process: Process) -> Generation:
        """Start a process and wait until its flows run, or it listens.

        Raises:
            EnvironmentFault: AB766, it does not come up; it was ended again.
        """
        self._controls.reporter.note(f"{process.datacenter}: {process.name} starts", "detail")
        with closing(AwaitedProcess(self._topology, process)) as awaited:
            generation = deployer.begin(process)
            deadline = time.monotonic() + self._controls.patience
            why = is_up(deployer, generation, awaited)
            while why is not None and not why.is_final and time.monotonic() < deadline and not self._controls.is_over():
                time.sleep(awaited.pause)
                why = is_up(deployer, generation, awaited)
        if why is None:
            return generation
        said = deployer.log(process.name, _LINES).strip()
        deployer.end([generation])
        message = f"{process.name} did not come up: {why.text}; it was ended again"
        message += f". The end of its log: {said}" if said else ""
        remedy = "correct what it names, and apply again"
        raise EnvironmentFault(Problem(_NOT_UP, f"data centre {process.datacenter}", message, remedy))

    def _update(self, step: UpdateProcess) -> None:
        """Replace a process, or end what is too much of it; errors are those of `_replace`."""
        deployer = self._deployments.at(step.process)
        if step.ends_surplus:
            deployer.end(self._generations(deployer, step.name)[:-1])
        elif step.starts:
            self._replace(deployer, step.process)

    def _stop(self, process: Process) -> None:
        from reconciler.deploy.registry import Registry

        deployer = self._deployments.at(process)
        deployer.end(self._generations(deployer, process.name))
        if not deployer.folder.generations():
            deployer.folder.clear()
            registry = Registry(self._topology.name, self._deployments.environ)
            for one in registry.read():
                if (one.datacenter, one.kind, one.folder) == (process.datacenter, process.kind, process.folder):
                    registry.remove(one)

    def _generations(self, deployer: Deployer, name: str) -> list[Generation]:
        found = [one for one in deployer.folder.generations() if one.process.name == name]
        return sorted(found, key=lambda one: one.number)
