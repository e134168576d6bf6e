"""One stack of one data centre, as `automation` drives it: state out and in, preview, up.

Thin: what Pulumi's library raises leaves as one of our errors, with nothing secret in it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pulumi import automation

import reconciler
from reconciler.model.base.errors import EnvironmentFault, Locked, Problem
from stacks.command import Command, failure, holder_in
from stacks.events import Events
from stacks.state import Deployment

_LOG = logging.getLogger(__name__)
# A killed Pulumi also ends its stream of events; its exit code is reported.
warnings.filterwarnings("ignore", "Error in event stream", UserWarning)


class Stack:
    """A stack that is selected, or made when it is not there yet.

    Args:
        command: runs Pulumi.
        project: folder of the project.
        name: of the stack: its data centre.
        environment: variables for every command.
        secrets: values that never appear in a message.

    Raises:
        EnvironmentFault: AB371, Pulumi refuses.
    """

    def __init__(
        self, command: Command, project: Path, name: str, environment: Mapping[str, str], secrets: frozenset[str]
    ) -> None:
        self._command = command
        self._name = name
        self._secrets = secrets
        self._environment = {**_interpreter(), **environment}
        self._workspace = automation.LocalWorkspace(
            work_dir=str(project), env_vars=self._environment, pulumi_command=command
        )
        with self._errors():
            self._stack = automation.Stack.create_or_select(name, self._workspace)

    def configure(self, values: Mapping[str, str]) -> None:
        """Set configuration of the namespace `anabranch`."""
        config = {f"anabranch:{key}": automation.ConfigValue(value) for key, value in values.items()}
        with self._errors():
            self._stack.set_all_config(config)

    def state(self) -> tuple[int | None, Deployment]:
        """Return the version of the state's format, and the state; its secrets stay encrypted."""
        # The library's own export asks for secrets in plain text.
        command = ["stack", "export", "--stack", self._name]
        with self._errors():
            result = self._command.run(command, self._workspace.work_dir, self._environment)
        value: dict[str, Any] = json.loads(result.stdout)
        return value.get("version"), value.get("deployment") or {}

    def put_state(self, version: int | None, deployment: Deployment) -> None:
        """Replace the state."""
        state = automation.Deployment(version, dict(deployment))
        self._without_dead_lock(lambda: self._workspace.import_stack(self._name, state))

    def preview(self, parallel: int) -> Events:
        """Ask Pulumi what it would do."""
        events = Events()
        with self._errors(events):
            self._stack.preview(parallel=parallel, color="never", on_event=events.heard)
        return events

    def up(self, parallel: int, events: Events) -> None:
        """Let Pulumi do it; what became of each resource is in `events`, whether it raises or not."""

        def bring_up() -> None:
            self._stack.up(
                parallel=parallel, color="never", on_event=events.heard, show_secrets=False, suppress_outputs=True
            )

        self._without_dead_lock(bring_up, events)

    def _without_dead_lock(self, work: Callable[[], object], events: Events | None = None) -> None:
        """Do something for which Pulumi takes its lock; a lock that a killed process has left is removed.

        No other apply of ours runs on the stack: the caller holds the locks of the targets. A `pulumi` that was started
        by hand on this machine is alive, so its lock stays.
        """
        try:
            with self._errors(events):
                work()
        except Locked:
            holder = holder_in(self._command.last)
            if holder is None or not holder.is_dead:
                raise
            _LOG.debug("Pulumi stack %s: the lock of process %d, which is dead, is removed", self._name, holder.pid)
            with self._errors():
                command = ["cancel", "--yes", "--stack", self._name]
                self._command.run(command, self._workspace.work_dir, self._environment)
            with self._errors(events):
                work()

    @contextmanager
    def _errors(self, events: Events | None = None) -> Iterator[None]:
        try:
            yield
        except automation.CommandError as error:
            if events is not None:
                events.wait()
            said, folder = events.said if events else "", os.path.relpath(self._workspace.work_dir)
            found = failure(error, self._command.last, self._name, said, folder)
            raise type(found)([self.masked(problem) for problem in found.problems]) from None
        except (RuntimeError, ValueError, KeyError) as error:
            message = f"pulumi answered what this release does not understand: {error}"
            raise EnvironmentFault(
                self.masked(Problem("AB371", f"Pulumi stack {self._name}", message, "use --provisioner direct"))
            ) from None

    def masked(self, problem: Problem) -> Problem:
        """Return a problem without secrets; Pulumi hides those that it knows, and this hides all."""
        message = problem.message
        for secret in self._secrets:
            message = message.replace(secret, "[secret]")
        return Problem(problem.code, problem.where, message, problem.remedy)


def _interpreter() -> dict[str, str]:
    """Return the environment in which Pulumi runs programs with this interpreter and this Anabranch."""
    paths = [str(Path(reconciler.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
