"""Keys and values of commands in the control topic: what `control` writes, `listener` reads.

Messages of a driver to its run have the run and the flow in their keys; commands of operators have the topology and
what they concern. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from reconciler.model.base.shape import decimal, fits
from reconciler.model.recorded.pauses import PauseScope, Written
from reconciler.model.tasks.seal import Seal
from reconciler.state.journals.encoding import Value

# Names of users and hosts are shorter.
_LONGEST_NAME = 200
_PARTITION = decimal()


class Command(StrEnum):
    """The commands."""

    STOP = "stop"
    SHARES = "shares"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"


def is_command(value: Value | None, command: Command) -> bool:
    """Return whether a value is a command of that kind."""
    return value is not None and value.get("command") == command


def written_by(value: Value | None) -> str:
    """Return the user that wrote a command and when; empty where the command has no user."""
    return str(author(value) or "")


def author(value: Value | None) -> Written | None:
    """Return the user that wrote a command, and the time; None where the command has none."""
    return None if value is None or "by" not in value else Written(value["by"][:_LONGEST_NAME], value["time"])


def run_key(command: Command, seal: Seal) -> str:
    """Return the key of a driver's message to the tasks of a flow in its run."""
    return f"{command.value}/{seal.run}/{seal.flow}"


def scope_key(kind: str, topology: str, scope: PauseScope) -> str:
    """Return the key of an operator's command; `parsed` takes it apart."""
    parts = (f"{kind}@{topology}", scope.flow, scope.topic, scope.partition)
    # Neither topologies nor flows nor topics have a slash in their names.
    return "/".join(str(part) for part in parts if part is not None)


class ScopeKey(NamedTuple):
    """The key of an operator's command: `pause` or `restart`, the topology ("" for any), and the scope."""

    kind: str
    topology: str
    scope: PauseScope


def parsed(key: str) -> ScopeKey | None:
    """Return what `scope_key` was made from; None for other kinds of keys. Older releases named no topology."""
    first, *parts = key.split("/")
    kind, _, topology = first.partition("@")
    if kind not in ("pause", "restart") or not 1 <= len(parts) <= len(("flow", "topic", "partition")):
        return None
    flow, topic, partition = [*parts, None, None][:3]
    # A removal has a key alone, which any program may have written.
    number = None if partition is None else fits(_PARTITION, partition)
    if flow is None or (number is None and partition is not None):
        return None
    return ScopeKey(kind, topology, PauseScope(flow, topic, number))
