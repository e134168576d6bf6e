"""Deployed processes whose interpreter is a script, so that nothing starts Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reconciler.deploy.local import LocalDeployer
from reconciler.model.declared.topology import TopologyFile
from reconciler.model.planning.deployments import Process, digest_of

FILE = TopologyFile("shop.yaml", "version: 1\n")
PROCESS = Process(
    topology="shop",
    datacenter="dc1",
    name="replicate",
    kind="local",
    folder="",
    python="",
    version="0.1.0",
    command=("replicate", "--clusters", "b", "--wait=forever"),
    files=((FILE.name, digest_of(FILE)),),
)
# Prints what it gets, and lives until a signal ends it.
LIVES = "#!/bin/sh\necho began \"$@\"\ntrap 'echo ended; exit 0' TERM\nwhile :; do sleep 0.1; done\n"
# Has the command line options of an interpreter, which come first.
DIES = "#!/bin/sh\necho no such thing >&2\nexit 3\n"


def interpreter(folder: Path, text: str = LIVES, name: str = "python") -> str:
    """Write a script that stands for an interpreter with Anabranch, and return its path."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def process(folder: Path, text: str = LIVES, name: str = "replicate") -> Process:
    """Return a process in a folder whose interpreter is a script."""
    return replace(PROCESS, name=name, folder=str(folder / "dc1"), python=interpreter(folder, text))


def deployer(folder: Path, **environ: str) -> LocalDeployer:
    """Return the deployer of that folder, with the topology file in it."""
    made = LocalDeployer(folder / "dc1", {"PATH": "/usr/bin:/bin", **environ})
    made.folder.make()
    made.folder.write_files([FILE])
    return made
