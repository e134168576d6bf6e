"""The messages to a task's run and the commands to its flow, as it reads them from the control topic."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import Pauses, PauseScope
from reconciler.model.tasks.seal import Seal
from reconciler.state.command_keys import Command, is_command, parsed, run_key, written_by
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.shared_follower import SharedFollower

_LOG = logging.getLogger(__name__)
_SECONDS = 10.0


@dataclass(frozen=True)
class Restart:
    """Partitions that are to be tried again at once.

    Attributes:
        scope: which.
        parked_only: whether those that run are left alone.
    """

    scope: PauseScope
    parked_only: bool


def followed(cluster: Cluster, topology: str) -> SharedFollower:
    """Return what all listeners of a process to the commands of a topology may share."""
    return SharedFollower(Journal(cluster, JournalPlace(topology, "control"), _SECONDS), _SECONDS)


class Listener:
    """Reads, for a task, the messages to its run and the commands to its flow.

    Args:
        cluster: the target cluster.
        seal: that of the flow in its run; messages to the run without it are ignored.
        commands: what `followed` has returned for the cluster and the topology, where others listen as well.

    Attributes:
        stopped: whether the run is to stop; a stop is final.
        pauses: the pauses in force.
        shares: which partitions each task has, as last announced.
        unsealed: how many messages to the run were ignored, as they do not have its seal.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """

    def __init__(self, cluster: Cluster, seal: Seal, commands: SharedFollower | None = None) -> None:
        self._seal = seal
        self._run_keys = {run_key(command, seal): command for command in (Command.STOP, Command.SHARES)}
        # The highest number of a message to the run so far, by key.
        self._serials: dict[str, int] = {}
        self._flow = seal.flow
        self._topology = topology = seal.topology
        self._where = cluster.where
        # Rules by topology: "" for any, as older releases wrote them, and this one.
        self._rules = {"": Pauses(), topology: Pauses()}
        self._restarts: list[Restart] = []
        self.stopped = False
        self.pauses = Pauses()
        self.shares: Value | None = None
        self.unsealed = 0
        self._commands = commands or followed(cluster, seal.topology)
        self._is_alone = commands is None
        self._reader = self._commands.reader()
        for key, value in self._reader.catch_up().items():
            # Restarts from before do not count: this task has only just begun.
            if not is_command(value, Command.RESTART):
                self._take(key, value)

    @property
    def heard(self) -> int:
        """The offset in the control topic up to which this task has read."""
        return self._reader.next_offset

    def listen(self) -> bool:
        """Read what has arrived, without waiting; return whether any of it is for this run or flow."""
        return any([self._take(key, value) for key, value in self._reader.poll()])

    def take_restarts(self) -> list[Restart]:
        """Return the restarts that have arrived since the last call."""
        taken, self._restarts = self._restarts, []
        return taken

    def close(self) -> None:
        """Stop listening."""
        self._reader.close()
        if self._is_alone:
            self._commands.close()

    def _take(self, key: str, value: Value | None) -> bool:
        if (command := self._run_keys.get(key)) is not None:
            return self._take_from_driver(command, key, value)
        if (of := parsed(key)) is None or of.scope.flow != self._flow or of.topology not in self._rules:
            return False
        if of.kind == "pause":
            change = {of.scope: None if value is None else is_command(value, Command.PAUSE)}
            self._rules[of.topology] = self._rules[of.topology].changed(change, {of.scope: written_by(value)})
            own = self._rules[self._topology]
            self.pauses = self._rules[""].changed(own.rules, own.said)
        elif value is not None:
            self._restarts.append(Restart(of.scope, bool(value.get("parked-only"))))
        return True

    def _take_from_driver(self, command: Command, key: str, value: Value | None) -> bool:
        """Take a message to the run. A removal has no effect: a driver removes only after its tasks have ended."""
        if value is None:
            return False
        serial = self._seal.serial(key, value)
        if serial is None or serial < self._serials.get(key, serial):
            self.unsealed += 1
            if self.unsealed == 1:
                why = "does not have the run's seal" if serial is None else "is an old one, written again"
                _LOG.warning("%s: a message to run %s, key %s, %s: ignored", self._where, self._seal.run, key, why)
            return False
        self._serials[key] = serial
        if command is Command.STOP:
            self.stopped = True
        else:
            self.shares = value.get("shares")
        return True
