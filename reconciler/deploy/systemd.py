"""Deployments as units of systemd, of the system or of the user that applies."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from reconciler.deploy.folder import DeploymentFolder, Generation, not_usable
from reconciler.deploy.programs import found_in, given_variables, newest, taken_addresses
from reconciler.deploy.units import instance, template_name, unit
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.deployment import SystemdScope
from reconciler.model.planning.deployments import DeployedProcess, Process

_PATIENCE = 120.0
_SHOWN = ("ActiveState", "SubState", "MainPID", "NRestarts", "Result", "ExecMainStatus")
_ROOT = 0


class SystemdDeployer:
    """Keeps processes running as units of systemd.

    Args:
        folder: of the data centre.
        scope: whose units.
    """

    def __init__(self, folder: Path, scope: SystemdScope) -> None:
        self.folder = DeploymentFolder(folder, is_private=scope == "user")
        self._scope = scope

    @property
    def units(self) -> Path:
        """The folder from which the manager reads units."""
        if self._scope == "system":
            return Path("/etc/systemd/system")
        base = os.environ.get("XDG_CONFIG_HOME")
        return (Path(base) if base else Path.home() / ".config") / "systemd" / "user"

    @property
    def _options(self) -> list[str]:
        """The options that name the manager to programs of systemd."""
        return ["--user"] if self._scope == "user" else []

    def found(self) -> dict[str, DeployedProcess]:
        """Return what is deployed, as `Deployer` has it."""
        return found_in(self.folder, self.fares)

    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here: no manager, rights, a user or a file that is missing."""
        if shutil.which("systemctl") is None:
            return [self._unusable("there is no systemctl", "declare kind: local, or apply on a machine with systemd")]
        try:
            self._ask("show", "--property=Version")
        except EnvironmentFault as error:
            return list(error.problems)
        return [*self._unfit(processes), *taken_addresses(processes, self.found)]

    def _unfit(self, processes: Collection[Process]) -> Iterator[Problem]:
        if self._scope == "system" and os.geteuid() != _ROOT:
            yield self._unusable("units of the system are written by root", "apply as root, or declare scope: user")
        for name, value in dict.fromkeys(pair for process in processes for pair in process.limits):
            if name == "user" and _ids(value) is None:
                yield self._missing(processes, f"there is no user {value}", f"make one: useradd --system {value}")
        for process in processes:
            file = dict(process.limits).get("environment-file")
            given = given_variables(Path(file)) if file else {}
            if given is None:
                yield self._missing(processes, f"the environment file {file} cannot be read", "write it, or its path")
                return
            if lacking := [name for name in process.variables if name not in given]:
                what = f"{', '.join(lacking)} of {process.name} is in no environment file"
                remedy = f"write NAME=VALUE to {file}" if file else "name a file with them as systemd.environment-file"
                yield self._missing(processes, what, remedy)

    def begin(self, process: Process) -> Generation:
        """Write the unit of a process, and start it, as `Deployer` has it."""
        user = dict(process.limits).get("user")
        state = self.folder.state_of(process.name, _ids(user) if user else None)
        text = unit(process, self.folder.path, state)
        self._verify(process, text)
        with self.folder.beginning(process) as generation:
            self._install(process, text)
            self._ask("enable", "--now", instance(process, generation.number))
        return generation

    def _install(self, process: Process, text: str) -> None:
        """Write the template of a process where the manager reads it, and have it read."""
        path = self.units / f"{template_name(process)}@.service"
        try:
            self.units.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise not_usable(path, f"cannot be written: {error.strerror}") from None
        self._ask("daemon-reload")

    def _verify(self, process: Process, text: str) -> None:
        """Have systemd read a unit before it is written where the manager finds it."""
        program = shutil.which("systemd-analyze")
        if program is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / instance(process, 0)
            path.write_text(text, encoding="utf-8")
            # For units of a user it needs the folder of the manager, which a session without one does not have.
            there = {"XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR") or folder}
            done = _run([program, "verify", *self._options, "--man=no", "--recursive-errors=no", str(path)], there)
        if done.returncode != 0:
            said = done.stderr.strip().replace(str(path), path.name)
            raise EnvironmentFault([self._unusable(f"systemd does not take the unit: {said}", "correct what it names")])

    def fares(self, generation: Generation) -> DeployedProcess:
        """Return how a generation fares, as `Deployer` has it."""
        name = instance(generation.process, generation.number)
        told = dict.fromkeys(_SHOWN, "")
        said = self._ask("show", name, f"--property={','.join(_SHOWN)}")
        told |= dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        is_running = told["ActiveState"] == "active"
        why = "" if is_running else f"{told['ActiveState']} ({told['SubState']}): {told['Result']}"
        pid, restarts = (int(told[name]) if told[name].isdecimal() else 0 for name in ("MainPID", "NRestarts"))
        return DeployedProcess(generation.process, is_running, pid, restarts, why)

    def end(self, generations: Sequence[Generation]) -> None:
        """Stop generations for good, as `Deployer` has it."""
        if not generations:
            return
        for one in generations:
            self._ask("disable", "--now", instance(one.process, one.number))
        used = {template_name(one.process) for one in self.folder.forget(generations)}
        for one in generations:
            if template_name(one.process) not in used:
                (self.units / f"{template_name(one.process)}@.service").unlink(missing_ok=True)
        self._ask("daemon-reload")

    def log(self, process: str, lines: int) -> str:
        """Return the last lines of what a process printed, from the journal."""
        one = newest(self.folder.generations()).get(process)
        if one is None or shutil.which("journalctl") is None:
            return ""
        name = f"{template_name(one.process)}@*.service"
        done = _run(["journalctl", *self._options, "--unit", name, "--lines", str(lines), "--output=cat", "--no-pager"])
        return done.stdout

    def _ask(self, *arguments: str) -> str:
        """Return what `systemctl` answers.

        Raises:
            EnvironmentFault: AB765, it fails.
        """
        command = ["systemctl", *self._options, "--no-pager", *arguments]
        try:
            done = _run(command)
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = self._unusable(f"{' '.join(command)}: {error}", "see that systemd runs")
            raise EnvironmentFault(problem) from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            problem = self._unusable(f"{' '.join(command)}: {said[0] if said else 'failed'}", "see its journal")
            raise EnvironmentFault(problem)
        return done.stdout

    def _unusable(self, why: str, remedy: str) -> Problem:
        return Problem("AB765", f"systemd ({self._scope})", why, remedy)

    def _missing(self, processes: Collection[Process], why: str, remedy: str) -> Problem:
        return Problem("AB763", f"data centre {next(iter(processes)).datacenter}", why, remedy)


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(variables or {})},
    )


def _ids(user: str) -> tuple[int, int] | None:
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        return None
    return found.pw_uid, found.pw_gid
