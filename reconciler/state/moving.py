"""Moves the journals of a topology from those that all topologies share to topics of its own.

Each `apply`, and each start of `replicate`, tries it until one move is whole: records keep their keys, so that a later
move mends what an earlier one has left. The commit point is the digest `moved`, put in force in the shared journal of
ownership: before it all processes work with the shared journals, behind it with the topology's own. It holds up a
process of a release before topics per topology, as any other declaration does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.declaration import MOVED
from reconciler.model.tasks.status import STALE_SECONDS, TaskStatus
from reconciler.state import control
from reconciler.state.declarations import Declarations
from reconciler.state.journals import home
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import SHARED, JournalTopic, own
from reconciler.state.liveness import Liveness
from reconciler.state.status import StatusReader

_SECONDS = 10.0
_PART = 10_000
_TICK = 0.1
_PATIENCE = 2 * STALE_SECONDS

Records = dict[str, Value]


@dataclass(frozen=True)
class RecordFilter:
    """What selects the records of one topology in the shared journals, also those that do not name it.

    Attributes:
        topology: its name.
        flows: names of the flows that it declares into the cluster.
    """

    topology: str
    flows: frozenset[str]


def may_move(cluster: Cluster, whose: RecordFilter) -> bool:
    """Return whether the journals are still shared, and no process works with them.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    return not home.decide(cluster, whose.topology).is_own and not _lives(cluster, whose)


def move(cluster: Cluster, whose: RecordFilter) -> None:
    """Move all records of a topology; this process then uses the topology's own topics.

    The caller holds the lock of apply in the shared journal, and `may_move` has returned true.

    Args:
        cluster: the target.
        whose: selects the records.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, something is refused; AB322, records are missing after the write. Until `moved` is in
            force in the shared journal, all processes use that.
    """
    ours, topology = own(whose.topology), whose.topology
    for topic in (ours.owned, ours.copies, ours.control):
        Journal(cluster, topic, _SECONDS).ensure()
    found = _found(cluster, whose)
    for topic, records in zip((ours.owned, ours.copies, ours.control), found, strict=True):
        _import(cluster, topic, records)
    _put_moved(cluster, topology)
    # A process that started meanwhile with the shared journals reads it within a second, and drains.
    deadline = time.monotonic() + _PATIENCE
    while _lives(cluster, whose) and time.monotonic() < deadline:
        time.sleep(_TICK)
    for topic, before, now in zip((ours.owned, ours.copies, ours.control), found, _found(cluster, whose), strict=True):
        if late := _changes(before, now):
            Journal(cluster, topic, _SECONDS).write_all(late)
    Journal(cluster, ours.status, _SECONDS).ensure()
    home.hold(cluster, topology, "own")


def _lives(cluster: Cluster, whose: RecordFilter) -> bool:
    """Return whether a process of the topology posts to the shared status topic from now on."""
    reader, liveness = StatusReader(cluster, whose.topology, SHARED.status), Liveness()
    try:
        while True:
            liveness.update(_words(reader, whose))
            living = liveness.living()
            if not living or len(living) > len(liveness.unsure()):
                return bool(living)
            time.sleep(_TICK)
    finally:
        reader.close()


def _words(reader: StatusReader, whose: RecordFilter) -> list[TaskStatus]:
    """Return the newest statuses of processes that may be live; those of old releases name no topology."""
    return [
        word
        for word in reader.current(_SECONDS)
        if not word.stopped and word.is_of(whose.topology) and (word.topology or word.flow in whose.flows)
    ]


def _found(cluster: Cluster, whose: RecordFilter) -> tuple[Records, Records, Records]:
    """Return the records of the shared journals that belong into those of ownership, of copies and of control."""
    shared = Journal(cluster, SHARED.owned, _SECONDS).read()
    topology = whose.topology
    owned = {key: value for key, value in shared.items() if home.is_of(key, value, topology)}
    for key in [key for key in owned if _is_declaration(key)]:
        # Entries with the digest `moved` stay behind.
        owned[key] = _without_moved(owned[key])
    owned = {key: value for key, value in owned.items() if value.get("history") != []}
    topics = {value["name"]: value for value in shared.values() if _is_topic(value)}
    ours = {name for name, value in topics.items() if value["topology"] == topology}
    flows = whose.flows | {topics[name]["flow"] for name in ours}
    copies = {
        key: value
        for key, value in Journal(cluster, SHARED.copies, _SECONDS).read().items()
        # Records of copies name no topology.
        if (parts := key.rsplit("/", 2))[1:] and (parts[1] in ours or (parts[0] in flows and parts[1] not in topics))
    }
    probes = {key: value for key, value in shared.items() if value.get("kind") == "probe"}
    commands = control.lasting(Journal(cluster, SHARED.control, _SECONDS).read(), topology, flows)
    return owned, copies | probes, commands


def _import(cluster: Cluster, topic: JournalTopic, records: Mapping[str, Value]) -> None:
    """Have a journal hold these records, and no other but claims of locks.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, writing is refused; AB322, records are missing after the write.
    """
    journal = Journal(cluster, topic, _SECONDS)
    changes = list(_changes(_lasting(journal.read()), records).items())
    for at in range(0, len(changes), _PART):
        journal.write_all(dict(changes[at : at + _PART]))
    if wrong := _changes(_lasting(journal.read()), records):
        raise EnvironmentFault(
            Problem(
                "AB322",
                journal.where,
                f"{len(wrong)} of {len(records)} records that were moved there are not there: {_some(wrong)}",
                "see which other user writes there, and run it again; until then the shared journals count",
            )
        )


def _put_moved(cluster: Cluster, topology: str) -> None:
    """Put `moved` in force in the shared journal of ownership, under each alias that something is in force there."""
    start = f"declaration/{topology}/"
    found = {
        key.removeprefix(start) for key in Journal(cluster, SHARED.owned, _SECONDS).read() if key.startswith(start)
    }
    for alias in sorted(found | {cluster.alias}):
        one = replace(cluster, alias=alias)
        home.hold(one, topology, "shared")
        Declarations(one, topology).put_in_force(MOVED)
        home.forget(one, topology)


def _without_moved(value: Value) -> Value:
    return value | {"history": [one for one in value.get("history", ()) if one.get("digest") != MOVED]}


def _changes(before: Mapping[str, Value], now: Mapping[str, Value]) -> dict[str, Value | None]:
    """Return the values to write, by key, that turn `before` into `now`; None removes a key."""
    return {key: now.get(key) for key in (*before, *now) if before.get(key) != now.get(key)}


def _lasting(records: Mapping[str, Value]) -> Records:
    return {key: value for key, value in records.items() if not key.startswith("lock/")}


def _is_declaration(key: str) -> bool:
    return key.startswith("declaration/")


def _is_topic(value: Value) -> bool:
    return value.get("kind") == "topic" and {"name", "topology", "flow"} <= value.keys()


def _some(keys: Iterable[str]) -> str:
    return ", ".join(sorted(keys)[:3])
