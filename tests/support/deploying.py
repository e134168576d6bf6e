"""Deployed processes whose interpreter is a script, so that nothing starts Spark."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reconciler import __version__
from reconciler.deploy.local import LocalDeployer
from reconciler.model.declared.topology import TopologyFile
from reconciler.model.planning.deployments import Process, digest_of
from tests.support.programs import write_program

EAST_AND_WEST = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"], datacenter: dc1}}
  west: {{bootstrap: ["{west}"], datacenter: dc2}}
"""
"""How a topology of two clusters begins, to be formatted."""
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
BROKEN = "#!/bin/sh\necho no good >&2\nexit 3\n"
DIES = "#!/bin/sh\necho no such thing >&2\nexit 3\n"


def lives(pid: int) -> bool:
    """Return whether a process lives, and is no zombie."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False


def interpreter(folder: Path, text: str = LIVES, name: str = "python") -> str:
    """Write a script that stands for an interpreter with Anabranch, and return its path."""
    path = folder / f"{name}-prefix" / "bin" / name
    (path.parents[1] / "lib" / "python3.11" / "site-packages" / f"anabranch-{__version__}.dist-info").mkdir(
        parents=True, exist_ok=True
    )
    write_program(path, text)
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
