"""The control topic: commands to running tasks, which read them within a second.

`replicate` writes to its own run: to stop, and which partitions each task has (its shares). These messages are sealed
with a key that only the driver and its tasks have (`model/tasks/seal`); a message without the seal is ignored.
Operators write to a flow: pauses hold for every later run, a restart for the tasks that run then. Flows of several
topologies may have one name, so these commands name the topology, and their user. All are in one compacted topic on
the target, so a task that starts late still reads those of its run and flow.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import Pauses, PauseScope, Written
from reconciler.model.tasks.seal import Seal
from reconciler.state.command_keys import Command, author, is_command, parsed, run_key, scope_key, written_by
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


def stop(cluster: Cluster, seals: Iterable[Seal]) -> None:
    """Tell the tasks of flows of a run that write to `cluster` to stop.

    Args:
        cluster: the target.
        seals: those of the flows.

    Raises:
        EnvironmentFault: AB310 or AB311, the command is not stored.
    """
    for topology, some in _by_topology(seals).items():
        values: dict[str, Value | None] = {}
        for seal in some:
            key = run_key(Command.STOP, seal)
            values[key] = seal.sealed(key, _value(Command.STOP))
        Journal(cluster, JournalPlace(topology, "control"), timeout=_TIMEOUT).write_all(values)


def withdraw(cluster: Cluster, seals: Collection[Seal]) -> None:
    """Remove the messages to flows of a run that has ended.

    Raises:
        EnvironmentFault: AB310 or AB311, the removal is not stored.
    """
    for topology, some in _by_topology(seals).items():
        keys = [run_key(command, seal) for seal in some for command in (Command.STOP, Command.SHARES)]
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
    key = run_key(Command.SHARES, seal)
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
        scope_key("restart", topology, scope): _value(Command.RESTART, scope, by) | {"parked-only": parked_only}
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


def lasting(values: Mapping[str, Value], topology: str, flows: Collection[str]) -> dict[str, Value]:
    """Return the pause rules that concern a topology, by key: its own, and those of any topology about flows of it."""
    return {
        key: value
        for key, value in values.items()
        if (one := parsed(key)) is not None
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
            one.scope: written_by(value) for key, value in self._values.items() if (one := parsed(key)) is not None
        }
        return Pauses({**rules[""], **rules[self._topology]}, users)

    def written(self, scope: PauseScope) -> Written | None:
        """Return the user and the time of a rule that `current` has found; None where the rule has none."""
        found = (author(value) for key, value in self._values.items() if (one := parsed(key)) and one.scope == scope)
        return next((one for one in found if one is not None), None)

    def close(self) -> None:
        """Close the connection."""
        if self._follower is not None:
            self._follower.close()


def _rules(values: Mapping[str, Value], topology: str) -> dict[str, dict[PauseScope, bool]]:
    """Return the rules of any topology, under "", and those of a topology."""
    rules: dict[str, dict[PauseScope, bool]] = {"": {}, topology: {}}
    for key, value in values.items():
        if (one := parsed(key)) is not None and one.kind == "pause" and one.topology in rules:
            rules[one.topology][one.scope] = is_command(value, Command.PAUSE)
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
            values[scope_key("pause", topology, changed)] = None if kept is None else _value(command, changed, by)
    return journal.write_all(values)


def _journal(cluster: Cluster, topology: str) -> Journal:
    """Return the journal, made if nothing ever ran there."""
    journal = Journal(cluster, JournalPlace(topology, "control"), timeout=_PATIENT)
    journal.ensure()
    return journal


def _value(command: Command, scope: PauseScope | None = None, by: str = "") -> Value:
    about = {} if scope is None else {"flow": scope.flow, "topic": scope.topic, "partition": scope.partition}
    return {"command": command.value, "time": time.time(), "by": by or user()} | about


def _by_topology(seals: Iterable[Seal]) -> dict[str, list[Seal]]:
    found: dict[str, list[Seal]] = {}
    for seal in seals:
        found.setdefault(seal.topology, []).append(seal)
    return found


def _is_for_a_run(key: str, value: Value) -> bool:
    commands = [command for command in (Command.STOP, Command.SHARES) if is_command(value, command)]
    return any(key.startswith(f"{command.value}/") for command in commands)
