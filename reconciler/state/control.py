"""The control topic: commands to running tasks, which read them within a second.

`replicate` writes to its own run: to stop, and which partitions each task has (its shares). These messages are sealed
with a key that only the driver and its tasks have (`model/tasks/seal`); a message without the seal is ignored.
Operators write to a flow: pauses hold for every later run, a restart for the tasks that run then. Flows of several
topologies may have one name, so these commands name the topology, and their user. All are in one compacted topic on
the target, so a task that starts late still reads those of its run and flow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reconciler.model.base.shape import decimal, fits
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import Pauses, PauseScope, Written
from reconciler.model.tasks.seal import Seal
from reconciler.state.journals import following
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.user import user

# A stop must not wait long for a cluster that is gone.
_TIMEOUT = 2.0
_PATIENT = 10.0
# A run repeats its shares much more often than this.
_FORGET_SECONDS = 86_400.0
# Names of users and hosts are shorter.
_LONGEST_NAME = 200
_LOG = logging.getLogger(__name__)
_PARTITION = decimal()


class Command(StrEnum):
    """The commands."""

    STOP = "stop"
    SHARES = "shares"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"


@dataclass(frozen=True)
class Restart:
    """Partitions that are to be tried again at once.

    Attributes:
        scope: which.
        parked_only: whether those that run are left alone.
    """

    scope: PauseScope
    parked_only: bool


def send(cluster: Cluster, seals: Iterable[Seal], command: Command) -> None:
    """Send a command to the tasks of flows of a run that write to `cluster`.

    Args:
        cluster: the target.
        seals: those of the flows.
        command: what they are to do.

    Raises:
        EnvironmentFault: AB310 or AB311, the command is not stored.
    """
    for topology, some in _by_topology(seals).items():
        values: dict[str, Value | None] = {}
        for seal in some:
            key = _run_key(command, seal)
            values[key] = seal.sealed(key, _value(command))
        Journal(cluster, JournalPlace(topology, "control"), timeout=_TIMEOUT).write_all(values)


def withdraw(cluster: Cluster, seals: Collection[Seal]) -> None:
    """Remove the messages to flows of a run that has ended.

    Raises:
        EnvironmentFault: AB310 or AB311, the removal is not stored.
    """
    for topology, some in _by_topology(seals).items():
        keys = [_run_key(command, seal) for seal in some for command in (Command.STOP, Command.SHARES)]
        Journal(cluster, JournalPlace(topology, "control"), timeout=_TIMEOUT).write_all(dict.fromkeys(keys))


def announce(cluster: Cluster, seal: Seal, shares: Value) -> None:
    """Announce to the tasks of a flow which partitions each of them has.

    Args:
        cluster: the target.
        seal: that of the flow in its run.
        shares: as `replicator.partition.shares.Shares.to_json` returns them.

    Raises:
        EnvironmentFault: AB310 or AB311, the shares are not stored.
    """
    key = _run_key(Command.SHARES, seal)
    value = seal.sealed(key, _value(Command.SHARES) | {"shares": shares})
    Journal(cluster, JournalPlace(seal.topology, "control"), timeout=_PATIENT / 2).write(key, value)


def pause(cluster: Cluster, topology: str, scopes: Iterable[PauseScope], by: str = "") -> int:
    """Pause partitions of a topology's flows until they are resumed, in this run and all later ones.

    Args:
        cluster: the target.
        topology: name of the topology whose flows these are.
        scopes: which partitions.
        by: who wants it, as the journal has it; empty for this process's user.

    Returns:
        The offset behind the command in the control topic: tasks that have read up to it obey.

    Raises:
        EnvironmentFault: AB310 or AB311, the command is not stored.
    """
    return _set_paused(cluster, topology, scopes, True, by)


def resume(cluster: Cluster, topology: str, scopes: Iterable[PauseScope], by: str = "") -> int:
    """Let paused partitions go on; takes, returns and raises what `pause` does."""
    return _set_paused(cluster, topology, scopes, False, by)


def restart(cluster: Cluster, topology: str, scopes: Iterable[PauseScope], parked_only: bool, by: str = "") -> int:
    """Have partitions tried again at once by the tasks that run now; returns and raises as `pause` does.

    Args:
        cluster: the target.
        topology: name of the topology whose flows these are.
        scopes: which partitions.
        parked_only: whether those that run are left alone.
        by: as of `pause`.
    """
    values: dict[str, Value | None] = {
        _key("restart", topology, scope): _value(Command.RESTART, scope, by) | {"parked-only": parked_only}
        for scope in scopes
    }
    return _journal(cluster, topology).write_all(values)


def forget_old(cluster: Cluster, topology: str) -> None:
    """Remove messages to runs that are older than a day, left by drivers that were killed.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading or writing is refused.
    """
    journal = Journal(cluster, JournalPlace(topology, "control"))
    horizon = time.time() - _FORGET_SECONDS
    old = [key for key, value in journal.read().items() if _is_for_a_run(key, value) and value["time"] < horizon]
    if old:
        journal.write_all(dict.fromkeys(old))


class Listener:
    """Reads, for a task, the messages to its run and the commands to its flow.

    Args:
        cluster: the target cluster.
        seal: that of the flow in its run; messages to the run without it are ignored.

    Attributes:
        stopped: whether the run is to stop; a stop is final.
        pauses: the pauses in force.
        shares: which partitions each task has, as last announced.
        unsealed: how many messages to the run were ignored, as they do not have its seal.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """

    def __init__(self, cluster: Cluster, seal: Seal) -> None:
        self._seal = seal
        self._run_keys = {_run_key(command, seal): command for command in (Command.STOP, Command.SHARES)}
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
        self._follower: Follower = Journal(cluster, JournalPlace(seal.topology, "control")).follow()
        for key, value in self._follower.catch_up().items():
            # Restarts from before do not count: this task has only just begun.
            if not _is(value, Command.RESTART):
                self._take(key, value)

    @property
    def heard(self) -> int:
        """The offset in the control topic up to which this task has read."""
        return self._follower.next_offset

    def listen(self) -> bool:
        """Read what has arrived, without waiting; return whether any of it is for this run or flow."""
        return any([self._take(key, value) for key, value in self._follower.poll(0.0)])

    def take_restarts(self) -> list[Restart]:
        """Return the restarts that have arrived since the last call."""
        taken, self._restarts = self._restarts, []
        return taken

    def close(self) -> None:
        """Close the connection."""
        self._follower.close()

    def _take(self, key: str, value: Value | None) -> bool:
        if (command := self._run_keys.get(key)) is not None:
            return self._take_from_driver(command, key, value)
        if (of := _parsed(key)) is None or of.scope.flow != self._flow or of.topology not in self._rules:
            return False
        if of.kind == "pause":
            change = {of.scope: None if value is None else _is(value, Command.PAUSE)}
            self._rules[of.topology] = self._rules[of.topology].changed(change, {of.scope: _written_by(value)})
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


def lasting(values: Mapping[str, Value], topology: str, flows: Collection[str]) -> dict[str, Value]:
    """Return the pause rules that concern a topology, by key: its own, and those of any topology about flows of it."""
    return {
        key: value
        for key, value in values.items()
        if (one := _parsed(key)) is not None
        and one.kind == "pause"
        and (one.topology == topology or (not one.topology and one.scope.flow in flows))
    }


class PauseRules:
    """The pauses of a topology's flows at one target, also while no run is there.

    Args:
        cluster: the target cluster.
        topology: name of the topology.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topology: str, timeout: float) -> None:
        self._topology = topology
        self._values: dict[str, Value] = {}
        self._follower: Follower | None = None
        self._journal = Journal(cluster, JournalPlace(topology, "control"), timeout)

    def current(self) -> Pauses:
        """Return the rules; only the first call waits for the cluster, later ones take in what has arrived.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if self._follower is None:
            self._follower, self._values = following.begin(self._journal)
        following.take_in(self._values, self._follower.arrived())
        rules = _rules(self._values, self._topology)
        users = {
            one.scope: _written_by(value) for key, value in self._values.items() if (one := _parsed(key)) is not None
        }
        return Pauses({**rules[""], **rules[self._topology]}, users)

    def written(self, scope: PauseScope) -> Written | None:
        """Return the user and the time of a rule that `current` has found; None where the rule has none."""
        found = (_written(value) for key, value in self._values.items() if (one := _parsed(key)) and one.scope == scope)
        return next((one for one in found if one is not None), None)

    def close(self) -> None:
        """Close the connection."""
        if self._follower is not None:
            self._follower.close()


def _rules(values: Mapping[str, Value], topology: str) -> dict[str, dict[PauseScope, bool]]:
    """Return the rules of any topology, under "", and those of a topology."""
    rules: dict[str, dict[PauseScope, bool]] = {"": {}, topology: {}}
    for key, value in values.items():
        if (one := _parsed(key)) is not None and one.kind == "pause" and one.topology in rules:
            rules[one.topology][one.scope] = _is(value, Command.PAUSE)
    return rules


def _set_paused(cluster: Cluster, topology: str, scopes: Iterable[PauseScope], paused: bool, by: str) -> int:
    journal = _journal(cluster, topology)
    rules = _rules(journal.read(), topology)
    pauses = Pauses({**rules[""], **rules[topology]})
    values: dict[str, Value | None] = {}
    for scope in scopes:
        changes = pauses.changes(scope, paused)
        pauses = pauses.changed(changes)
        for changed, rule in changes.items():
            # A rule for any topology stays for the others, so here a rule of its own must replace it.
            kept = paused if rule is None and changed in rules[""] else rule
            command = Command.PAUSE if kept else Command.RESUME
            values[_key("pause", topology, changed)] = None if kept is None else _value(command, changed, by)
    return journal.write_all(values)


def _journal(cluster: Cluster, topology: str) -> Journal:
    """Return the journal, made if nothing ever ran there."""
    journal = Journal(cluster, JournalPlace(topology, "control"), timeout=_PATIENT)
    journal.ensure()
    return journal


def _value(command: Command, scope: PauseScope | None = None, by: str = "") -> Value:
    about = {} if scope is None else {"flow": scope.flow, "topic": scope.topic, "partition": scope.partition}
    return {"command": command.value, "time": time.time(), "by": by or user()} | about


def _is(value: Value | None, command: Command) -> bool:
    return value is not None and value.get("command") == command


def _by_topology(seals: Iterable[Seal]) -> dict[str, list[Seal]]:
    found: dict[str, list[Seal]] = {}
    for seal in seals:
        found.setdefault(seal.topology, []).append(seal)
    return found


def _is_for_a_run(key: str, value: Value) -> bool:
    commands = [command for command in (Command.STOP, Command.SHARES) if _is(value, command)]
    return any(key.startswith(f"{command.value}/") for command in commands)


def _written_by(value: Value | None) -> str:
    """Return the user that wrote a command and when; empty where the command has no user."""
    return str(_written(value) or "")


def _written(value: Value | None) -> Written | None:
    return None if value is None or "by" not in value else Written(value["by"][:_LONGEST_NAME], value["time"])


def _run_key(command: Command, seal: Seal) -> str:
    return f"{command.value}/{seal.run}/{seal.flow}"


def _key(kind: str, topology: str, scope: PauseScope) -> str:
    parts = (f"{kind}@{topology}", scope.flow, scope.topic, scope.partition)
    # Neither topologies nor flows nor topics have a slash in their names.
    return "/".join(str(part) for part in parts if part is not None)


class _CommandKey(NamedTuple):
    """The key of an operator's command: `pause` or `restart`, the topology ("" for any), and the scope."""

    kind: str
    topology: str
    scope: PauseScope


def _parsed(key: str) -> _CommandKey | None:
    """Return what `_key` was made from; None for other kinds of keys. Older releases named no topology."""
    first, *parts = key.split("/")
    kind, _, topology = first.partition("@")
    if kind not in ("pause", "restart") or not 1 <= len(parts) <= len(("flow", "topic", "partition")):
        return None
    flow, topic, partition = [*parts, None, None][:3]
    # A removal has a key alone, which any program may have written.
    number = None if partition is None else fits(_PARTITION, partition)
    if flow is None or (number is None and partition is not None):
        return None
    return _CommandKey(kind, topology, PauseScope(flow, topic, number))
