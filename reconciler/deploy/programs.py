"""What the processes of deployments run, and what is checked before they do."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from reconciler import __version__
from reconciler.deploy.folder import DeploymentFolder, Generation
from reconciler.model.base.errors import Problem
from reconciler.model.base.installed import need
from reconciler.model.planning.deployments import DeployedProcess, Process

_LARGEST_TAIL = 2**20
# What programs need whatever they do; everything else is named by the topology.
_ALWAYS = (
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "SPARK_LOCAL_IP",
)
_ALWAYS_LIKE = ("LC_", "ANABRANCH_VERBOSE")


def command_of(process: Process, folder: Path, state: Path) -> list[str]:
    """Return the command that runs a process; arguments are those of `arguments_of`."""
    return [process.python, "-m", "reconciler.cli.main", *arguments_of(process, folder, state)]


def arguments_of(process: Process, folder: Path, state: Path) -> list[str]:
    """Return the arguments of `anabranch` for a process.

    Args:
        process: what is deployed.
        folder: of the data centre, with the topology files.
        state: folder of the process.
    """
    files = [str(folder / "topology" / name) for name, _ in process.files]
    where = ["--state-dir", str(state)] if process.command[0] == "replicate" else []
    return [process.command[0], *files, *process.command[1:], *where]


def variables_for(names: Collection[str], python: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a process: few, so that it gets no secret that it does not use.

    Args:
        names: of those that it names.
        python: path of its interpreter.
        environ: where they are.
    """
    named = {*_ALWAYS, *names}
    found = {key: one for key, one in environ.items() if key in named or key.startswith(_ALWAYS_LIKE)}
    return found | {"PYSPARK_PYTHON": python, "PYTHONUNBUFFERED": "1"}


def given_variables(file: Path) -> dict[str, str] | None:
    """Return the variables that an environment file gives; None where it cannot be read.

    Lines are read as systemd does the plain ones (systemd.exec(5), `EnvironmentFile=`): NAME=VALUE, with or without
    quotes around the value, and comments that begin with # or ;.
    """
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = {}
    for line in lines:
        name, sign, value = line.strip().partition("=")
        if sign and value and not name.startswith(("#", ";")):
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name.strip()] = value[1:-1] if is_quoted else value
    return found


def spark_version() -> str:
    """Return the version of PySpark, which is that of Spark.

    Raises:
        EnvironmentFault: AB327, it is not installed.
    """
    need("replicate")
    return version("pyspark")


def version_of(python: str) -> str:
    """Return which version of Anabranch is installed for an interpreter; empty where none is.

    It is read from the names of folders. The interpreter is not run: its path stands in a topology file, and a plan of
    a file without a review must start no program that the file names.

    Args:
        python: path of the interpreter; that of a virtual environment, or of a prefix such as `/usr/local`.
    """
    if Path(python) == Path(sys.executable):
        return __version__
    prefix = Path(python).parent.parent
    found = sorted(prefix.glob("lib/python3*/*-packages/anabranch-*.dist-info"))
    if not found or not Path(python).exists():
        return ""
    return found[-1].name.removeprefix("anabranch-").removesuffix(".dist-info")


def newest(generations: Iterable[Generation]) -> dict[str, Generation]:
    """Return the newest generation of each process, by its name."""
    found: dict[str, Generation] = {}
    for one in generations:
        if one.process.name not in found or one.number > found[one.process.name].number:
            found[one.process.name] = one
    return found


def found_in(folder: DeploymentFolder, fares: Callable[[Generation], DeployedProcess]) -> dict[str, DeployedProcess]:
    """Return what is deployed in a folder, by name of the process: the newest generation, with the files of now."""
    files, recorded = folder.file_digests(), folder.generations()
    found = {}
    for name, one in newest(recorded).items():
        known = fares(Generation(replace(one.process, files=files), one.number))
        older = [other for other in recorded if other.process.name == name and other.number < one.number]
        found[name] = replace(known, generations=1 + sum(fares(other).is_running for other in older))
    return found


def listen_address(process: Process) -> tuple[str, int] | None:
    """Return where a process listens; None where it does not, or takes any free port."""
    listen = process.option("--listen")
    if listen is None:
        return None
    host, _, port = listen.rpartition(":")
    return (host.removeprefix("[").removesuffix("]"), int(port)) if int(port) else None


def taken_addresses(
    processes: Iterable[Process], found: Callable[[], Mapping[str, DeployedProcess]]
) -> Iterator[Problem]:
    """Yield a problem for each address of processes at which another program listens.

    Args:
        processes: that are to be deployed.
        found: returns what runs of them, which may have its own address; called where one listens.
    """
    listening = [(process, address) for process in processes if (address := listen_address(process))]
    known = found() if listening else {}
    for process, address in listening:
        there = known.get(process.name)
        if there is not None and there.is_running and listen_address(there.process) == address:
            continue
        if why := _why_not_listening(address):
            where = f"data centre {process.datacenter}: {process.name}"
            message = f"cannot listen at {process.option('--listen')}: {why}"
            yield Problem("AB764", where, message, "end what listens there, or declare another listen")


def _why_not_listening(address: tuple[str, int]) -> str:
    """Return why nothing can listen at an address, as seen by listening there for a moment; empty where it can."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def last_lines(path: Path, lines: int) -> str:
    """Return the last lines of a file; none of one that cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LARGEST_TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "".join(f"{line}\n" for line in text.splitlines()[-lines:])
