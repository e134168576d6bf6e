"""What `apply` keeps running in data centres: processes as wanted and as found, and the steps between the two."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.base.shape import TEXT, WORD, fields, listed, mapped, one_of
from reconciler.model.declared.deployment import DEPLOYMENT_KINDS, DeploymentKind, SystemdScope
from reconciler.model.declared.topology import TopologyFile

FILES = "files"
"""The fact of a process that is a digest of its topology files."""
GENERATIONS = "generations"
"""The fact that more than one of a name runs."""
CONF = "conf."
"""How the names of limits begin that are settings of Spark."""


@dataclass(frozen=True)
class Process:
    """A process of a data centre.

    Attributes:
        topology: name of the topology.
        datacenter: name of the data centre.
        name: unique in the data centre: `replicate`, `replicate-2`, `metrics`, `serve`.
        kind: of the deployment.
        folder: of the data centre's files.
        python: path of the interpreter.
        version: of Anabranch in it; empty where it has none that could be found.
        command: arguments of `anabranch`; topology files are named behind it.
        variables: names of those it gets.
        files: name and digest of each topology file.
        limits: what its kind adds, by name.
    """

    topology: str
    datacenter: str
    name: str
    kind: DeploymentKind
    folder: str
    python: str
    version: str
    command: tuple[str, ...]
    variables: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, str], ...] = ()

    @property
    def scope(self) -> SystemdScope:
        """Whose units, of the kind `systemd`."""
        return "user" if dict(self.limits).get("scope") == "user" else "system"

    def option(self, name: str) -> str | None:
        """Return the value of an option of its command, such as `--listen`; None where it has none."""
        return self.command[self.command.index(name) + 1] if name in self.command else None

    @property
    def targets(self) -> tuple[str, ...]:
        """Aliases of the clusters that it is for."""
        return tuple((self.option("--clusters") or "").split(","))

    @property
    def facts(self) -> dict[str, str]:
        """What is compared between a process that is wanted and the one that was deployed, by name."""
        told = {
            "kind": self.kind,
            "folder": self.folder,
            "python": self.python,
            "version": self.version,
            "command": " ".join(self.command),
            "variables": ", ".join(self.variables),
            FILES: " ".join(f"{name}@{digest}" for name, digest in self.files),
        }
        return told | dict(self.limits)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json` is its inverse."""
        return {
            **{name: getattr(self, name) for name in _WORDS},
            "command": list(self.command),
            "variables": list(self.variables),
            "files": dict(self.files),
            "limits": dict(self.limits),
        }

    @classmethod
    def from_json(cls, value: Any) -> Process:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        known = fields(value, _SHAPE)
        known |= {name: tuple(known[name].items()) for name in ("files", "limits")}
        return cls(**known | {name: tuple(known[name]) for name in ("command", "variables")})


_WORDS = ("topology", "datacenter", "name", "kind", "folder", "python", "version")
_SHAPE = {
    **dict.fromkeys(_WORDS, WORD),
    "kind": one_of(*(kind for kind in DEPLOYMENT_KINDS if kind != "none")),
    "version": TEXT,
    "command": listed(TEXT),
    "variables": listed(TEXT),
    "files": mapped(TEXT, TEXT),
    "limits": mapped(TEXT, TEXT),
}


def digest_of(file: TopologyFile) -> str:
    """Return a short digest of a file's content."""
    return hashlib.sha256(file.text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class DeployedProcess:
    """A process as it was found.

    Attributes:
        process: as it was deployed.
        is_running: whether it runs.
        pid: its process id; 0 while it does not run.
        restarts: how often it was started again since it was deployed.
        why: why it does not run, or did not stay up; empty while all is well.
        generations: how many of its name run: two while one takes the place of another, or where that was broken off.
    """

    process: Process
    is_running: bool
    pid: int = 0
    restarts: int = 0
    why: str = ""
    generations: int = 1


@dataclass(frozen=True)
class FactChange:
    """One fact of a process that changes.

    Attributes:
        fact: its name.
        old: as deployed.
        new: as wanted.
    """

    fact: str
    old: str
    new: str


@dataclass(frozen=True)
class _DeploymentStep:
    """What all steps of deployments share.

    Attributes:
        process: the process, as it is to be; of one that is stopped, as it was.
    """

    process: Process

    @property
    def cluster(self) -> str:
        """The data centre, which stands where other steps have a cluster."""
        return self.process.datacenter

    @property
    def name(self) -> str:
        """The process."""
        return self.process.name

    @property
    def starts(self) -> bool:
        """Whether a process is started."""
        return True


@dataclass(frozen=True)
class DeployProcess(_DeploymentStep):
    """Start a process, and keep it running.

    Attributes:
        why: why it is deployed again although it is on record; empty of a new one.
    """

    why: str = ""


@dataclass(frozen=True)
class UpdateProcess(_DeploymentStep):
    """Replace a process by one with other facts.

    Attributes:
        changes: what changes.
    """

    changes: tuple[FactChange, ...] = ()

    @property
    def restarts(self) -> bool:
        """Whether the process is replaced; one that copies records reads files of another content by itself."""
        return not self.name.startswith("replicate") or any(one.fact != FILES for one in self.changes)

    @property
    def ends_surplus(self) -> bool:
        """Whether nothing changes but that only one of its name runs."""
        return {one.fact for one in self.changes} == {GENERATIONS}

    @property
    def starts(self) -> bool:
        """Whether a process is started."""
        return self.restarts and not self.ends_surplus


@dataclass(frozen=True)
class StopProcess(_DeploymentStep):
    """Stop a process for good.

    Attributes:
        why: why it is.
    """

    why: str = "no longer declared"

    @property
    def starts(self) -> bool:
        """Whether a process is started."""
        return False


DeploymentStep = DeployProcess | UpdateProcess | StopProcess


@dataclass(frozen=True)
class DeploymentPlan:
    """What a plan holds for the processes of one data centre.

    Attributes:
        datacenter: its name.
        kind: of the deployment that is declared; `none` where none is, and one is on record.
        wave: in which wave of a rollout it is changed.
        steps: in the order in which they are carried out.
        kept: names of the processes that stay as they are.
        notices: what the user should know.
    """

    datacenter: str
    kind: str
    wave: int
    steps: tuple[DeploymentStep, ...] = ()
    kept: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


DeploymentsFound = Mapping[str, tuple[DeployedProcess, ...]]
"""By data centre what was found, each process of a place once."""
