"""The folder of a data centre: copies of the topology files, the record of what is deployed, logs and state.

    deployment.json    the processes as deployed, each with its generation
    topology/          the topology files
    logs/, run/        of keepers: what each process prints, and how it fares
    state/NAME/        Spark's log and files of one process
    driver.py          of drivers on a Spark cluster: what they run first

Nothing in it is a secret: files have references, and variables are named and not written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.base.files import UnreadableFile, read_json, read_text, write_private
from reconciler.model.base.shape import COUNT, Misfit, fields, listed, whole
from reconciler.model.base.text import json_text
from reconciler.model.declared.topology import TopologyFile
from reconciler.model.planning.deployments import Process, digest_of

RECORD = "deployment.json"
_FORMAT = 1
_FOLDER, _FILE, _STATE = 0o755, 0o644, 0o700


@dataclass(frozen=True)
class Generation:
    """One start of a process under its name: while one takes the place of another, two of a process run.

    Attributes:
        process: as deployed.
        number: from 1; higher is newer.
    """

    process: Process
    number: int

    @property
    def name(self) -> str:
        """Of the files of its keeper."""
        return f"{self.process.name}.{self.number}"


class DeploymentFolder:
    """The folder of one data centre.

    Args:
        path: of the folder, which need not be there.
        is_private: whether no other user may read what is in it.

    Attributes:
        path: of the folder.
    """

    def __init__(self, path: Path, is_private: bool) -> None:
        self.path = path
        self._folder_mode, self._file_mode = (0o700, 0o600) if is_private else (_FOLDER, _FILE)

    @property
    def record(self) -> Path:
        """The file with what is deployed."""
        return self.path / RECORD

    @property
    def run(self) -> Path:
        """The folder in which keepers report."""
        return self.path / "run"

    def log_of(self, process: str) -> Path:
        """Return the file that gets what a process prints under a keeper."""
        return self.path / "logs" / f"{process}.log"

    def generations(self) -> list[Generation]:
        """Return what is deployed, as recorded; the files of each are those that stand in the folder now.

        Raises:
            EnvironmentFault: AB761, the record cannot be read.
        """
        try:
            found = fields(
                read_json(self.record), {"format": whole(_FORMAT, _FORMAT), "processes": listed(_generation)}
            )
        except FileNotFoundError:
            return []
        except (OSError, UnreadableFile, Misfit) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise unreadable(self.record, why) from None
        return list(found["processes"])

    def files(self) -> tuple[TopologyFile, ...]:
        """Return the topology files in the folder.

        Raises:
            EnvironmentFault: AB761, one cannot be read.
        """
        found = []
        try:
            for path in sorted((self.path / "topology").iterdir()):
                found.append(TopologyFile(path.name, read_text(path)))
        except FileNotFoundError:
            return ()
        except (OSError, UnreadableFile) as error:
            raise unreadable(self.path / "topology", error) from None
        return tuple(found)

    def file_digests(self) -> tuple[tuple[str, str], ...]:
        """Return name and digest of each topology file in the folder."""
        return tuple((file.name, digest_of(file)) for file in self.files())

    def make(self) -> None:
        """Make the folder and those in it.

        Raises:
            EnvironmentFault: AB760, one cannot be made.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.path, *(self.path / name for name in ("topology", "logs", "run", "state"))):
                folder.mkdir(exist_ok=True)
                folder.chmod(self._folder_mode)
        except OSError as error:
            raise not_usable(self.path, f"cannot be made: {error.strerror}") from None

    def write_files(self, files: Iterable[TopologyFile]) -> None:
        """Have these topology files in the folder, and no others; those with the same content are not touched.

        Raises:
            EnvironmentFault: AB760, one cannot be written.
        """
        there = {file.name: file.text for file in self.files()}
        wanted = {file.name: file.text for file in files}
        for name, text in wanted.items():
            if there.get(name) != text:
                self.write(self.path / "topology" / name, text)
        for name in there.keys() - wanted.keys():
            (self.path / "topology" / name).unlink(missing_ok=True)

    @contextmanager
    def beginning(self, process: Process) -> Iterator[Generation]:
        """Record the next generation of a process while it is started; where that fails it is off the record again.

        Raises:
            EnvironmentFault: AB760, AB761, the record cannot be written or read.
        """
        known = self.generations()
        number = 1 + max((one.number for one in known if one.process.name == process.name), default=0)
        generation = Generation(process, number)
        self.write_record([*known, generation])
        try:
            yield generation
        except EnvironmentFault:
            self.write_record(known)
            raise

    def forget(self, generations: Iterable[Generation]) -> list[Generation]:
        """Take generations off the record, and return those that stay; errors are those of `beginning`."""
        names = {one.name for one in generations}
        rest = [one for one in self.generations() if one.name not in names]
        self.write_record(rest)
        return rest

    def write_record(self, generations: Iterable[Generation]) -> None:
        """Record what is deployed.

        Raises:
            EnvironmentFault: AB760, it cannot be written.
        """
        told = [{"number": one.number, **one.process.to_json()} for one in generations]
        self.write(self.record, f"{json_text({'format': _FORMAT, 'processes': told}, indent=2)}\n")

    def state_of(self, process: str, user: tuple[int, int] | None = None) -> Path:
        """Make and return the folder with the state of a process.

        Args:
            process: its name.
            user: ids of the user and the group that it runs as; None for those of this process.

        Raises:
            EnvironmentFault: AB760, it cannot be made.
        """
        folder = self.path / "state" / process
        try:
            folder.mkdir(exist_ok=True)
            folder.chmod(_STATE)
            if user is not None:
                os.chown(folder, *user)
        except OSError as error:
            raise not_usable(folder, f"cannot be made: {error.strerror}") from None
        return folder

    def clear(self) -> None:
        """Remove what was deployed; logs stay."""
        self.record.unlink(missing_ok=True)
        for name in ("topology", "run", "state"):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def check(self, topology: str, datacenter: str) -> None:
        """Make sure that it is, or can become, the folder of a data centre; changes nothing.

        Raises:
            Refused: AB760, another topology or data centre has it.
            EnvironmentFault: AB760, it cannot be written to; AB761, its record cannot be read.
        """
        owners = {(one.process.topology, one.process.datacenter) for one in self.generations()}
        if others := owners - {(topology, datacenter)}:
            other, place = min(others)
            message = f"holds the deployment of data centre {place} of topology {other}"
            raise Refused(Problem("AB760", str(self.path), message, "declare another folder for this data centre"))
        nearest = next(one for one in (self.path, *self.path.parents) if one.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise not_usable(nearest, "no folder that this user may write to")

    def write(self, path: Path, text: str) -> None:
        """Write a file of the folder, with the rights that all have there.

        Raises:
            EnvironmentFault: AB760, it cannot be written.
        """
        try:
            write_private(path, text)
            path.chmod(self._file_mode)
        except OSError as error:
            raise not_usable(path, f"cannot be written: {error.strerror}") from None


def not_usable(path: Path, why: str) -> EnvironmentFault:
    """Return the error that a folder cannot be used."""
    return EnvironmentFault(Problem("AB760", str(path), why, "correct its rights, or declare another folder"))


def unreadable(path: Path, why: object) -> EnvironmentFault:
    """Return the error that a record cannot be read."""
    remedy = "see what has changed it; once nothing of it runs, remove it and apply again"
    return EnvironmentFault(Problem("AB761", str(path), f"cannot be read: {why}", remedy))


def _generation(value: Any) -> Generation:
    if not isinstance(value, Mapping):
        message = "expected a mapping"
        raise Misfit(message)
    rest = {key: one for key, one in value.items() if key != "number"}
    return Generation(Process.from_json(rest), COUNT(value.get("number")))
