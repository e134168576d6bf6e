"""Whether a process that was deployed has come up: its flows run, or it listens."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, NamedTuple

from reconciler.model.base.errors import AnabranchError, EnvironmentFault
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.deployments import Process
from reconciler.model.recorded.failed_flows import failed_flows
from reconciler.operate.watching import Lookout, StatusView

if TYPE_CHECKING:
    from reconciler.deploy.deployer import Deployer
    from reconciler.deploy.folder import Generation

_STEADY_SECONDS = 3.0
_CONNECT_SECONDS = 2.0


class NotUp(NamedTuple):
    """Why a process is not up.

    Attributes:
        text: why.
        is_final: whether waiting does not mend it.
    """

    text: str
    is_final: bool = False


class AwaitedProcess:
    """What is looked at until a process is up.

    Args:
        topology: what is declared.
        process: what is awaited; before it begins, so that runs that are there already are known.

    Attributes:
        pause: seconds between two checks.
    """

    def __init__(self, topology: Topology, process: Process) -> None:
        self._topology = topology
        self._process = process
        self._lookout: Lookout | None = None
        self._before: frozenset[str] = frozenset()
        self._begun = time.monotonic()
        self.pause = 0.2
        if process.command[0] == "replicate":
            self.pause = 1.0
            self._lookout = Lookout(topology, process.targets, with_in_force=True)
            view = self._lookout.look()
            self._before = frozenset(one.run for one in view.statuses if one.is_live(view.now))

    def why_not(self) -> str | None:
        """Return why it is not up; None when it is."""
        if self._lookout is not None:
            try:
                return self._of_flows(self._lookout.look())
            except AnabranchError as error:
                return error.problems[0].message
        return self._of_address()

    def _of_flows(self, view: StatusView) -> str | None:
        """Return which flow has no task of the new run yet."""
        if view.failures:
            return f"{', '.join(view.failures)} does not answer"
        told: dict[str, str] = {}
        for status in view.statuses:
            if status.is_live(view.now) and status.run not in self._before:
                told.setdefault(status.flow, "")
                said = status.failing or (f"it waits {status.waiting}" if status.is_held and status.waiting else "")
                told[status.flow] = "up" if not status.is_held else told[status.flow] or said
        for flow in view.flows:
            if failed_flows([flow], view.failed_over.get(flow.target, {})) or told.get(flow.name) == "up":
                continue
            more = told.get(flow.name)
            return f"no task of flow {flow.name} runs yet{f': {more}' if more else ''}"
        return None

    def _of_address(self) -> str | None:
        """Return why nothing can be connected to; of a port that the process chooses, that it has just begun."""
        from reconciler.deploy.programs import listen_address

        address = listen_address(self._process)
        if address is None:
            return None if time.monotonic() > self._begun + _STEADY_SECONDS else "it has just begun"
        host, port = address
        try:
            socket.create_connection((_reachable(host), port), _CONNECT_SECONDS).close()
        except OSError as error:
            return f"it does not listen at {host}:{port}: {error.strerror or error}"
        return None

    def close(self) -> None:
        """Close the connections."""
        if self._lookout is not None:
            self._lookout.close()


def _reachable(host: str) -> str:
    """Return where a server that listens everywhere is connected to."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def is_up(deployer: Deployer, generation: Generation, awaited: AwaitedProcess) -> NotUp | None:
    """Return why a generation is not up; None when it is."""
    try:
        fares = deployer.fares(generation)
    except EnvironmentFault as error:
        return NotUp(error.problems[0].message)
    if fares.restarts:
        return NotUp(f"it {fares.why}" if fares.why else "it ended", is_final=True)
    if not fares.is_running:
        return NotUp(fares.why or "it does not run yet")
    why = awaited.why_not()
    return None if why is None else NotUp(why)
