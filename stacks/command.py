"""The command `pulumi`: how it is found, in which environment it runs, and what its exit codes mean.

Called by `automation`. Pulumi's own class hands every variable of this process on; this one leaves out those that the
Kafka provider would read, runs one command at a time, and keeps what the last one said.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from pulumi import automation
from pulumi.automation.errors import create_command_error

from reconciler.launcher import launched
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Locked, Problem

OnOutput = Callable[[str], Any]

HIDDEN_PREFIX = "KAFKA_"
"""Variables that the Kafka provider falls back to."""

_HEED_SECONDS = 0.2
"""How long a running command may go on when it must end."""

_INSTALL = "install it (https://www.pulumi.com/docs/install/), or use --provisioner direct"
_HOLDER = re.compile(r": created by (\S+)@(\S+) \(pid (\d{1,10})\) at (\S+)")
_COLOURS = re.compile(r"<\{%.*?%\}>|\x1b\[[0-9;]*m")
_AGAIN = "mend what it names, then apply again; --provisioner direct does without Pulumi"
_AGAIN_AS_IT_IS = "apply again: what was done is found, and the rest is done"

_MEANINGS = {
    2: ("does not accept its configuration or arguments", _AGAIN),
    3: ("is not logged in, or not allowed", "log in with `pulumi login`, or set PULUMI_ACCESS_TOKEN"),
    5: ("was stopped by a policy", _AGAIN),
    7: ("found other changes than were expected", "apply again, and read the new plan"),
    8: ("was cancelled", _AGAIN_AS_IT_IS),
    9: ("took too long", _AGAIN_AS_IT_IS),
}
"""Exit codes since Pulumi 3.226; before, nearly everything is 255."""


class Command(automation.PulumiCommand):
    """Runs `pulumi`, without variables that would point a Kafka provider elsewhere.

    Args:
        kept: names of variables that it gets although they look like that: a topology keeps secrets in them.

    Raises:
        EnvironmentFault: AB370, there is no such command, or one that this release does not work with.
    """

    def __init__(self, kept: Collection[str] = ()) -> None:
        self._kept = frozenset(kept)
        self._running: subprocess.Popen[str] | None = None
        self._is_interrupted = False
        self._must_end: Callable[[], bool] = _never
        self._lock = threading.Lock()
        self.last = automation.CommandResult("", "", 0)
        try:
            super().__init__()
        except FileNotFoundError:
            problem = Problem("AB370", "Pulumi", "there is no command `pulumi` on PATH", _INSTALL)
        except (OSError, subprocess.CalledProcessError) as error:
            problem = Problem("AB370", "Pulumi", f"the command `pulumi` does not run: {error}", _INSTALL)
        except automation.InvalidVersionError as error:
            problem = Problem("AB370", "Pulumi", str(error), _INSTALL)
        else:
            return
        raise EnvironmentFault(problem)

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> automation.CommandResult:
        """Run one command to its end; signature and errors are Pulumi's.

        Raises:
            automation.CommandError: it did not end with 0.
        """
        arguments = ["--non-interactive", *(arg for arg in args if arg != "--non-interactive")]
        # An orphan would go on changing targets whose locks have expired.
        command = launched(self.command, *arguments, number=signal.SIGINT)
        environment = {**self._environment(), **additional_env, "PULUMI_AUTOMATION_API": "true"}
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            encoding="utf-8",
            errors="replace",
            # A terminal's Ctrl-C must not reach it beside ours: at the second one it leaves its work where it is.
            start_new_session=True,
        ) as process:
            self._is_interrupted = False
            self._running = process
            try:
                stdout, stderr = self._end_of(process)
            except BaseException:
                # Somebody does not wait: it ends what is under way and writes its state, and nobody leaves before it.
                process.send_signal(signal.SIGINT)
                process.communicate()
                raise
            finally:
                self._running = None
        for text, callback in ((stdout, on_output), (stderr, on_error)):
            if callback is not None:
                for line in text.splitlines():
                    callback(line)
        self.last = automation.CommandResult(stdout.rstrip(), stderr.rstrip(), process.returncode)
        if process.returncode != 0:
            raise create_command_error(self.last)
        return self.last

    @contextmanager
    def heeding(self, must_end: Callable[[], bool]) -> Iterator[None]:
        """Ask, while commands run, whether they must end, and interrupt those that must."""
        self._must_end = must_end
        try:
            yield
        finally:
            self._must_end = _never

    def interrupt(self) -> None:
        """Let a running command end what is under way, and begin nothing else; said once, however often it is asked."""
        with self._lock:
            process, was_interrupted = self._running, self._is_interrupted
            self._is_interrupted = True
        if process is not None and not was_interrupted:
            process.send_signal(signal.SIGINT)

    def _end_of(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        """Wait for the end of a command; return what it wrote."""
        while True:
            try:
                return process.communicate(timeout=_HEED_SECONDS)
            except subprocess.TimeoutExpired:
                if self._must_end():
                    self.interrupt()

    def _environment(self) -> dict[str, str]:
        return {
            key: value
            for key, value in os.environ.items()
            if not key.upper().startswith(HIDDEN_PREFIX) or key in self._kept
        }


def check_interpreter() -> None:
    """Make sure that Pulumi can run programs with this interpreter: before each it lists its packages by pip.

    Raises:
        EnvironmentFault: AB370, there is no pip.
    """
    if find_spec("pip") is None:
        message = f"lists a program's packages by pip, and {sys.executable} has none"
        remedy = f"{sys.executable} -m ensurepip (with uv: uv pip install pip), or use --provisioner direct"
        raise EnvironmentFault(Problem("AB370", "Pulumi", message, remedy))


def _never() -> bool:
    return False


def failure(
    error: automation.CommandError, last: automation.CommandResult, stack: str, said: str = "", folder: str = "."
) -> AnabranchError:
    """Return in our words why a command failed.

    Args:
        error: what Pulumi's library made of it.
        last: what the command itself said.
        stack: the stack's name.
        folder: of the project.
        said: what its events said, where they did: it is better than the end of its output.
    """
    where = f"Pulumi stack {stack}"
    words = said or _last_words(last)
    if isinstance(error, automation.ConcurrentUpdateError):
        remedy = f"wait for it; where nobody is at work any more: pulumi cancel --stack {stack} --cwd {folder}"
        holder = holder_in(last)
        who = f"begun {holder.when} by {holder.user}@{holder.host}, process {holder.pid}" if holder else words
        return Locked(Problem("AB503", where, f"another update of it is under way: {who}", remedy))
    if last.code < 0:
        message = f"pulumi was killed ({signal.Signals(-last.code).name})"
        return EnvironmentFault(Problem("AB371", where, message, _AGAIN_AS_IT_IS))
    meaning, remedy = _MEANINGS.get(last.code, ("failed", _AGAIN))
    return EnvironmentFault(Problem("AB371", where, f"pulumi {meaning} (exit code {last.code}): {words}", remedy))


class Holder(NamedTuple):
    """The process that has a stack locked, and since when."""

    user: str
    host: str
    pid: int
    when: str

    @property
    def is_dead(self) -> bool:
        """Whether it ran on this machine, and no such process is left."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return False


def holder_in(result: automation.CommandResult) -> Holder | None:
    """Return the process that has a stack locked, from the output of a backend of files; None where it has none."""
    found = _HOLDER.search(result.stderr)
    return Holder(found[1], found[2], int(found[3]), found[4]) if found else None


def plain(text: str) -> str:
    """Return what Pulumi says in one line, without its marks for colours."""
    return " ".join(_COLOURS.sub("", text).split())


def _last_words(result: automation.CommandResult) -> str:
    """Return the error that a command ends with."""
    lines = [plain(line) for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (told or lines or ["it said nothing"])[-1]
