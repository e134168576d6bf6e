"""How the processes of a data centre are kept running, as declared: `deploy` of a data centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

DeploymentKind = Literal["none", "local", "systemd", "standalone", "kubernetes", "yarn"]
"""`none`: others start them. `local`: keepers on the machine of `apply`. `systemd`: units there. `standalone`: drivers
on the Spark cluster of the data centre. `yarn`: drivers of YARN's applications. `kubernetes`: manifests, which others
apply."""

DEPLOYMENT_KINDS: tuple[DeploymentKind, ...] = get_args(DeploymentKind)
APPLIED_KINDS = tuple(kind for kind in DEPLOYMENT_KINDS if kind not in ("none", "kubernetes"))
"""Those whose processes `apply` starts."""

SystemdScope = Literal["system", "user"]


@dataclass(frozen=True)
class SystemdUnits:
    """What units of systemd get beside the process.

    Attributes:
        scope: the manager: of the system, or of the user that applies.
        user: as which units of the system run.
        environment_file: with the variables that the topology refers to; None where it needs none.
        memory: bytes that a process may use; None for any.
        cpus: processors that a process may use; None for all.
    """

    scope: SystemdScope = "system"
    user: str = "anabranch"
    environment_file: str | None = None
    memory: int | None = None
    cpus: float | None = None


PLAIN_UNITS = SystemdUnits()


@dataclass(frozen=True)
class SparkDrivers:
    """What drivers on a standalone Spark cluster get beside the process.

    Attributes:
        rest: URL of the master's submissions; None for port 6066 of each master.
        web: URL of the master's page; None for port 8080 of each master.
        cores: of the worker, for one driver.
        memory: bytes of the worker, for one driver.
        environment_file: on every worker, with variables that the topology refers to; None where workers have them.
    """

    rest: str | None = None
    web: str | None = None
    cores: int = 1
    memory: int = 2**30
    environment_file: str | None = None


PLAIN_DRIVERS = SparkDrivers()


@dataclass(frozen=True)
class YarnApplications:
    """What applications of YARN get beside the process.

    Attributes:
        resource_managers: URLs of the web interfaces of all ResourceManagers.
        configuration: absolute path of the folder with the cluster's `yarn-site.xml`, on the machine of `apply`; None
            for that of `HADOOP_CONF_DIR`.
        archive: where YARN fetches a packed environment from; None where every node has the interpreter.
        queue: in which they run; None for the user's own.
        cores: of a container.
        memory: bytes of a container.
        environment_file: on every node, with variables that the topology refers to; None where nodes have them.
    """

    resource_managers: tuple[str, ...] = ()
    configuration: str | None = None
    archive: str | None = None
    queue: str | None = None
    cores: int = 2
    memory: int = 4 * 2**30
    environment_file: str | None = None


PLAIN_APPLICATIONS = YarnApplications()


@dataclass(frozen=True)
class KubernetesPods:
    """What pods get beside the process.

    Attributes:
        namespace: of everything.
        image: with Spark and Anabranch.
        secret: name of the Secret whose keys are the variables that the topology refers to; None where it needs none.
        mounts: by absolute path of a folder, the name of the Secret whose keys are the files in it.
        pull_secret: name of the Secret with which images are pulled; None where none is needed.
        context: of kubectl, through which `doctor` asks whether the cluster would take all of it; None for not asking.
        memory: bytes of a pod that copies records.
        cpus: processors of a pod that copies records.
    """

    namespace: str = "anabranch"
    image: str = ""
    secret: str | None = None
    mounts: tuple[tuple[str, str], ...] = ()
    pull_secret: str | None = None
    context: str | None = None
    memory: int = 4 * 2**30
    cpus: float = 2.0


PLAIN_PODS = KubernetesPods()


@dataclass(frozen=True)
class Deployment:
    """What one data centre runs, and where.

    Attributes:
        kind: what keeps the processes running.
        folder: absolute path of the folder with their files, logs and state.
        host: name of the one machine on which `apply` deploys it; None for whichever applies.
        python: absolute path of the interpreter that has Anabranch; None for that of `apply`.
        environment: names of variables that processes get beside those that the topology refers to.
        processes: how many copy records; the clusters of the data centre are dealt to them.
        metrics: options of `anabranch metrics`; None where it does not run.
        serve: options of `anabranch serve`; None where it does not run.
        systemd: of the kind `systemd`.
        standalone: of the kind `standalone`.
        kubernetes: of the kind `kubernetes`.
        yarn: of the kind `yarn`.
        place: `file:line:column (json path)` where it is declared, no part of what it is.
    """

    kind: DeploymentKind = "none"
    folder: str = ""
    host: str | None = None
    python: str | None = None
    environment: tuple[str, ...] = ()
    processes: int = 1
    metrics: tuple[str, ...] | None = None
    serve: tuple[str, ...] | None = None
    systemd: SystemdUnits = PLAIN_UNITS
    standalone: SparkDrivers = PLAIN_DRIVERS
    kubernetes: KubernetesPods = PLAIN_PODS
    yarn: YarnApplications = PLAIN_APPLICATIONS
    place: str = ""

    @property
    def is_applied(self) -> bool:
        """Whether `apply` starts its processes."""
        return self.kind in APPLIED_KINDS

    def is_on(self, machine: str) -> bool:
        """Return whether `apply` deploys it on a machine of this name."""
        return self.host in (None, machine)


NO_DEPLOYMENT = Deployment()
