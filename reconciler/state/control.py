"""The control topic: what running tasks are told, heard within a second.

`replicate` writes to its own run: to stop, and which partitions each task has (its shares). People write to a flow:
pauses stay in force for every later run, a restart is heard by those who listen and by nobody later. Flows of several
topologies may have one name, so what people write names the topology, too. Everything lies in one compacted topic on
the target, so a task that starts late still hears what concerns it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reconciler.model.cluster import Cluster
from reconciler.model.pauses import Pauses, Scope
from reconciler.model.shape import decimal, fits
from reconciler.state.journal import CONTROL, Follower, Journal, Value

# A stop must not wait long for a cluster that is gone.
_TIMEOUT = 2.0
_PATIENT = 10.0
# A run repeats its shares much more often than this.
_FORGET_SECONDS = 86_400.0
_PARTITION = decimal()


class Command(StrEnum):
    """What can be told."""

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

    scope: Scope
    parked_only: bool


def send(cluster: Cluster, run: str, command: Command) -> None:
    """Tell all tasks of `run` that write to `cluster`.

    Raises:
        EnvironmentFault: AB310 or AB311, the command is not stored.
    """
    Journal(cluster, CONTROL, timeout=_TIMEOUT).write(run, _value(command))


def withdraw(cluster: Cluster, run: str, flows: Iterable[str] = ()) -> None:
    """Remove what a run that has ended was told, and the shares of its flows.

    Raises:
        EnvironmentFault: AB310 or AB311, the removal is not stored.
    """
    keys = [run, *(_shares_key(run, flow) for flow in flows)]
    Journal(cluster, CONTROL, timeout=_TIMEOUT).write_all(dict.fromkeys(keys))


def announce(cluster: Cluster, run: str, flow: str, shares: Value) -> None:
    """Tell the tasks of a flow in `run` which partitions each of them has.

    Raises:
        EnvironmentFault: AB310 or AB311, the shares are not stored.
    """
    Journal(cluster, CONTROL, timeout=_PATIENT / 2).write(
        _shares_key(run, flow), _value(Command.SHARES) | {"shares": shares}
    )


def announced(cluster: Cluster, run: str, flow: str) -> Value | None:
    """Return the shares that were announced last; None when there were none.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    value = Journal(cluster, CONTROL).read().get(_shares_key(run, flow))
    return None if value is None else value["shares"]


def pause(cluster: Cluster, topology: str, scopes: Iterable[Scope]) -> int:
    """Pause partitions of a topology's flows until they are resumed, in this run and all later ones.

    Returns:
        The place in the control topic that a task must have listened to.

    Raises:
        EnvironmentFault: AB310 or AB311, the command is not stored.
    """
    return _set_paused(cluster, topology, scopes, paused=True)


def resume(cluster: Cluster, topology: str, scopes: Iterable[Scope]) -> int:
    """Let paused partitions go on; returns and raises as `pause` does."""
    return _set_paused(cluster, topology, scopes, paused=False)


def restart(cluster: Cluster, topology: str, scopes: Iterable[Scope], parked_only: bool) -> int:
    """Have partitions tried again at once by the tasks that run now; returns and raises as `pause` does.

    Args:
        cluster: the target.
        topology: name of the topology whose flows these are.
        scopes: which partitions.
        parked_only: whether those that run are left alone.
    """
    told: dict[str, Value | None] = {
        _key("restart", topology, scope): _value(Command.RESTART, scope) | {"parked-only": parked_only}
        for scope in scopes
    }
    return _journal(cluster).write_all(told)


def forget_old(cluster: Cluster) -> None:
    """Remove the shares of runs that ended without doing so.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading or writing is refused.
    """
    journal = Journal(cluster, CONTROL)
    horizon = time.time() - _FORGET_SECONDS
    old = [key for key, value in journal.read().items() if _is(value, Command.SHARES) and value["time"] < horizon]
    if old:
        journal.write_all(dict.fromkeys(old))


class Listener:
    """A task's ear: hears what its run and its flow are told.

    Args:
        cluster: the target cluster.
        run: the run to listen for.
        flow: the flow to listen for.
        topology: name of its topology.

    Attributes:
        stopped: whether the run was told to stop.
        pauses: the pauses in force.
        shares: which partitions each task has, as last announced.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """

    def __init__(self, cluster: Cluster, run: str, flow: str, topology: str) -> None:
        self._run = run
        self._shares = _shares_key(run, flow)
        self._flow = flow
        self._topology = topology
        # Rules by whose they are: of any topology, as older releases told them, and of ours alone.
        self._rules = {"": Pauses(), topology: Pauses()}
        self._restarts: list[Restart] = []
        self.stopped = False
        self.pauses = Pauses()
        self.shares: Value | None = None
        self._follower: Follower = Journal(cluster, CONTROL).follow()
        for key, value in self._follower.catch_up().items():
            # What is to be restarted has been: whoever begins to listen has only just begun.
            if not _is(value, Command.RESTART):
                self._hear(key, value)

    @property
    def heard(self) -> int:
        """The place in the control topic up to which was listened."""
        return self._follower.next_offset

    def listen(self) -> bool:
        """Take in what was told since; never waits. True when any of it concerns this run or flow."""
        return any([self._hear(key, value) for key, value in self._follower.poll(0.0)])

    def take_restarts(self) -> list[Restart]:
        """Return each restart that was heard, once."""
        taken, self._restarts = self._restarts, []
        return taken

    def close(self) -> None:
        """Close the connection."""
        self._follower.close()

    def _hear(self, key: str, value: Value | None) -> bool:
        if key == self._run:
            self.stopped = _is(value, Command.STOP)
        elif key == self._shares:
            self.shares = None if value is None else value.get("shares")
        elif (told := _told(key)) is None or told.scope.flow != self._flow or told.topology not in self._rules:
            return False
        elif told.kind == "pause":
            change = {told.scope: None if value is None else _is(value, Command.PAUSE)}
            self._rules[told.topology] = self._rules[told.topology].changed(change)
            self.pauses = self._rules[""].changed(self._rules[self._topology].rules)
        elif value is not None:
            self._restarts.append(Restart(told.scope, bool(value.get("parked-only"))))
        return True


def _set_paused(cluster: Cluster, topology: str, scopes: Iterable[Scope], paused: bool) -> int:
    journal = _journal(cluster)
    rules: dict[str, dict[Scope, bool]] = {"": {}, topology: {}}
    for key, value in journal.read().items():
        if (one := _told(key)) is not None and one.kind == "pause" and one.topology in rules:
            rules[one.topology][one.scope] = _is(value, Command.PAUSE)
    pauses = Pauses({**rules[""], **rules[topology]})
    told: dict[str, Value | None] = {}
    for scope in scopes:
        changes = pauses.changes(scope, paused)
        pauses = pauses.changed(changes)
        for changed, rule in changes.items():
            # A rule of any topology stays for the others; what the wider one says holds here all the same.
            said = paused if rule is None and changed in rules[""] else rule
            command = Command.PAUSE if said else Command.RESUME
            told[_key("pause", topology, changed)] = None if said is None else _value(command, changed)
    return journal.write_all(told)


def _journal(cluster: Cluster) -> Journal:
    """Return the journal, made if nothing ever ran there."""
    journal = Journal(cluster, CONTROL, timeout=_PATIENT)
    journal.ensure()
    return journal


def _value(command: Command, scope: Scope | None = None) -> Value:
    about = {} if scope is None else {"flow": scope.flow, "topic": scope.topic, "partition": scope.partition}
    return {"command": command.value, "time": time.time()} | about


def _is(value: Value | None, command: Command) -> bool:
    return value is not None and value.get("command") == command


def _shares_key(run: str, flow: str) -> str:
    return f"shares/{run}/{flow}"


def _key(kind: str, topology: str, scope: Scope) -> str:
    parts = (f"{kind}@{topology}", scope.flow, scope.topic, scope.partition)
    # Neither topologies nor flows nor topics have a slash in their names.
    return "/".join(str(part) for part in parts if part is not None)


class _Told(NamedTuple):
    """What a key of people's commands says: `pause` or `restart`, of which topology ("" for any), and what of it."""

    kind: str
    topology: str
    scope: Scope


def _told(key: str) -> _Told | None:
    """Return what `_key` was made from; None for other kinds of keys. Older releases named no topology."""
    first, *parts = key.split("/")
    kind, _, topology = first.partition("@")
    if kind not in ("pause", "restart") or not 1 <= len(parts) <= len(("flow", "topic", "partition")):
        return None
    flow, topic, partition = [*parts, None, None][:3]
    # Removals have keys alone, and anybody may have written them.
    number = None if partition is None else fits(_PARTITION, partition)
    if flow is None or (number is None and partition is not None):
        return None
    return _Told(kind, topology, Scope(flow, topic, number))
