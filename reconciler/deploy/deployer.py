"""What every kind of deployment can do, and which one a data centre has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from reconciler.deploy.folder import DeploymentFolder, Generation
from reconciler.deploy.local import LocalDeployer
from reconciler.deploy.standalone import StandaloneDeployer
from reconciler.deploy.systemd import SystemdDeployer
from reconciler.deploy.yarn import YarnDeployer
from reconciler.model.base.errors import Problem
from reconciler.model.declared.deployment import DeploymentKind, SystemdScope
from reconciler.model.planning.deployments import DeployedProcess, Process


class Deployer(Protocol):
    """Keeps the processes of one data centre running.

    Attributes:
        folder: with their files.
    """

    folder: DeploymentFolder

    def found(self) -> dict[str, DeployedProcess]:
        """Return what is deployed, by name of the process; of several generations the newest.

        Raises:
            EnvironmentFault: AB761, the record cannot be read; AB765, the manager of the units does not answer.
        """

    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here, as far as it can be seen before."""

    def begin(self, process: Process) -> Generation:
        """Start a process, beside one of its name that runs, and record it.

        Raises:
            EnvironmentFault: it cannot be started.
        """

    def fares(self, generation: Generation) -> DeployedProcess:
        """Return how a generation fares."""

    def end(self, generations: Sequence[Generation]) -> None:
        """Stop generations for good, wait until they are gone, and record it.

        Raises:
            EnvironmentFault: AB767, one does not end.
        """

    def log(self, process: str, lines: int) -> str:
        """Return the last lines of what a process printed."""


def deployer_of(
    kind: DeploymentKind, folder: Path, scope: SystemdScope, environ: Mapping[str, str], tasks: Callable[[Process], int]
) -> Deployer:
    """Return the deployer of a kind.

    Args:
        kind: one that `apply` carries out.
        folder: of the data centre.
        scope: whose units, of the kind `systemd`.
        environ: the variables of this process, of which processes get those that they name.
        tasks: returns how many tasks the flows of a process have.
    """
    if kind == "standalone":
        return StandaloneDeployer(folder, tasks)
    if kind == "yarn":
        return YarnDeployer(folder, environ)
    return SystemdDeployer(folder, scope) if kind == "systemd" else LocalDeployer(folder, environ)
