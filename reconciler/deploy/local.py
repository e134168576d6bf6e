"""Deployments on this machine: each process has a keeper, which starts it again whenever it ends."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from reconciler import launcher
from reconciler.deploy import keeper
from reconciler.deploy.folder import DeploymentFolder, Generation, not_usable
from reconciler.deploy.programs import command_of, found_in, last_lines, taken_addresses, variables_for
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, read_json
from reconciler.model.base.shape import COUNT, TEXT, TIME, Misfit, fields
from reconciler.model.planning.deployments import DeployedProcess, Process

PATIENCE = 60.0
"""Seconds that a process gets to end by itself."""
_BEGIN_PATIENCE = 30.0
_PAUSE = 0.1
_RUN = {"keeper": COUNT, "pid": COUNT, "since": TIME, "restarts": COUNT, "why": TEXT}


class LocalDeployer:
    """Keeps processes running on this machine, as this user.

    Args:
        folder: of the data centre.
        environ: the variables of this process.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = DeploymentFolder(folder, is_private=True)
        self._environ = environ

    def found(self) -> dict[str, DeployedProcess]:
        """Return what is deployed, as `Deployer` has it."""
        return found_in(self.folder, self.fares)

    def objections(self, processes: Collection[Process]) -> list[Problem]:
        """Return what stands against deploying processes here: variables that are not set, addresses in use."""
        return [*self._unset(processes), *taken_addresses(processes, self.found)]

    def _unset(self, processes: Collection[Process]) -> Iterator[Problem]:
        for name in sorted({name for process in processes for name in process.variables}):
            if not self._environ.get(name):
                where = next(process.datacenter for process in processes if name in process.variables)
                message = f"environment variable {name} is not set, and its processes need it"
                yield Problem("AB763", f"data centre {where}", message, f"set {name} where `anabranch apply` runs")

    def begin(self, process: Process) -> Generation:
        """Start a process under a keeper, as `Deployer` has it."""
        state = self.folder.state_of(process.name)
        command = command_of(process, self.folder.path, state)
        with self.folder.beginning(process) as generation:
            program = [sys.executable, "-I", "-S", keeper.__file__, launcher.__file__]
            program += [str(self._run_file(generation)), str(self.folder.log_of(process.name)), str(PATIENCE)]
            try:
                subprocess.Popen(
                    [*program, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    # A keeper lives on when the command that deployed it has ended.
                    start_new_session=True,
                    cwd=self.folder.path,
                    env=variables_for(process.variables, process.python, self._environ),
                )
            except OSError as error:
                raise not_usable(self.folder.path, f"a keeper cannot be started: {error.strerror}") from None
        deadline = time.monotonic() + _BEGIN_PATIENCE
        while not self._run_file(generation).exists() and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return generation

    def fares(self, generation: Generation) -> DeployedProcess:
        """Return how a generation fares, as `Deployer` has it."""
        path = self._run_file(generation)
        if not self._is_kept(generation):
            return DeployedProcess(generation.process, False, why="its keeper does not run")
        try:
            told = fields(read_json(path), _RUN)
        except (OSError, UnreadableFile, Misfit):
            return DeployedProcess(generation.process, False, why="its keeper has not reported yet")
        is_running = told["pid"] > 0
        return DeployedProcess(generation.process, is_running, told["pid"], told["restarts"], told["why"])

    def end(self, generations: Sequence[Generation]) -> None:
        """Stop generations for good, as `Deployer` has it."""
        if not generations:
            return
        for generation in generations:
            self._signal(generation, signal.SIGTERM)
        deadline = time.monotonic() + 2 * PATIENCE
        while alive := [one for one in generations if self._is_kept(one)]:
            if time.monotonic() > deadline:
                message = f"{alive[0].process.name} did not end"
                remedy = "see its log; end its processes, and apply again"
                raise EnvironmentFault(Problem("AB767", str(self.folder.path), message, remedy))
            time.sleep(_PAUSE)
        for generation in generations:
            self._run_file(generation).unlink(missing_ok=True)
            Path(f"{self._run_file(generation)}.lock").unlink(missing_ok=True)
        self.folder.forget(generations)

    def log(self, process: str, lines: int) -> str:
        """Return the last lines of what a process printed."""
        return last_lines(self.folder.log_of(process), lines)

    def _signal(self, generation: Generation, number: signal.Signals) -> None:
        if not self._is_kept(generation):
            return
        with suppress(OSError, UnreadableFile, Misfit, ProcessLookupError):
            os.kill(fields(read_json(self._run_file(generation)), _RUN)["keeper"], number)

    def _is_kept(self, generation: Generation) -> bool:
        """Return whether a keeper lives: it holds a lock as long as it does, whatever becomes of process ids."""
        try:
            lock = os.open(f"{self._run_file(generation)}.lock", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def _run_file(self, generation: Generation) -> Path:
        return self.folder.run / f"{generation.name}.json"
