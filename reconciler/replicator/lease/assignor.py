"""The assignor of a flow's group: which member may write which partition. Values and one pure rule, without I/O.

`lease` joins the group with what its member claims and holds, and calls `assign` when its member is the group leader.
Runs that claim the same partitions share them: a free partition goes to the run with the fewest, and a run with more
than its part releases some if it can. No partition moves before its holder has released it or has left the group.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.base.shape import (
    MOST_TASKS,
    PARTITION,
    TIME,
    WORD,
    Misfit,
    fields,
    listed,
    mapped,
    parsed,
    row,
    topic_name,
    whole,
)

# What is assigned: a partition of a remote topic, by name and number.
Log = tuple[str, int]

_NOTHING: frozenset[Log] = frozenset()
# Least difference between two runs at which a partition moves: moving one at a difference of 1 only reverses it.
_MUCH = 2
# Most bytes of a member's metadata, decompressed: 100,000 partitions in as many topics take less.
_LARGEST = 16 * 2**20
_LOGS = mapped(topic_name, listed(PARTITION))
_MEMBER = {"run": WORD, "task": whole(-1, MOST_TASKS), "since": TIME, "wants": _LOGS, "holds": _LOGS}
_TAKEN = row(WORD, whole(-1, MOST_TASKS), TIME, _LOGS)


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """The holder of a lease: the task of a run, and when its process became a member (seconds since 1970)."""

    run: str
    task: int
    since: float


@dataclass(frozen=True, slots=True)
class Member:
    """The metadata with which a member joins.

    Attributes:
        who: its run and task.
        wants: all partitions that it would write.
        holds: partitions that it writes now, with a valid lease.
        keeps: partitions that it does not release while it lives, as they are in its transactions and commits.
    """

    who: LeaseHolder
    wants: frozenset[Log]
    holds: frozenset[Log] = _NOTHING
    keeps: frozenset[Log] = _NOTHING

    def to_bytes(self) -> bytes:
        """Return the value as bytes; `from_bytes` is its inverse."""
        said = {"run": self.who.run, "task": self.who.task, "since": self.who.since}
        logs = {"wants": self.wants, "holds": self.holds, "keeps": self.keeps}
        return _pack(said | {name: _by_topic(some) for name, some in logs.items() if some or name != "keeps"})

    @classmethod
    def from_bytes(cls, data: bytes) -> Member:
        """Read what `to_bytes` returned.

        Raises:
            Misfit: the bytes are something else.
        """
        try:
            known = fields(_unpack(data), _MEMBER, {"keeps": _LOGS})
        except Misfit as error:
            message = f"not the metadata of a member: {error}"
            raise Misfit(message) from None
        who = LeaseHolder(known["run"], known["task"], float(known["since"]))
        return cls(who, _logs(known["wants"]), _logs(known["holds"]), _logs(known.get("keeps", {})))


@dataclass(frozen=True, slots=True)
class Share:
    """The assignment of one member.

    Attributes:
        granted: partitions that it may write.
        taken: partitions that it claims and another member holds.
        surplus: granted partitions that it has to release, once nothing of them is in flight, to a run with fewer.
    """

    granted: frozenset[Log]
    taken: Mapping[Log, LeaseHolder]
    surplus: frozenset[Log] = _NOTHING

    def to_bytes(self) -> bytes:
        """Return the value as bytes; `from_bytes` is its inverse."""
        by_holder: dict[LeaseHolder, set[Log]] = {}
        for log, holder in self.taken.items():
            by_holder.setdefault(holder, set()).add(log)
        taken = [[h.run, h.task, h.since, _by_topic(logs)] for h, logs in by_holder.items()]
        said = {"granted": _by_topic(self.granted), "taken": taken}
        # Older releases ignore `surplus`, and keep what they hold.
        return _pack({**said, "surplus": _by_topic(self.surplus)} if self.surplus else said)

    @classmethod
    def from_bytes(cls, data: bytes) -> Share:
        """Read what `to_bytes` returned; an empty share where the group leader assigned nothing to this member.

        Raises:
            Misfit: the bytes are something else.
        """
        if not data:
            return cls(_NOTHING, {})
        try:
            known = fields(_unpack(data), {"granted": _LOGS, "taken": listed(_TAKEN)}, {"surplus": _LOGS})
        except Misfit as error:
            message = f"not a share: {error}"
            raise Misfit(message) from None
        taken = {
            log: LeaseHolder(run, task, float(since))
            for run, task, since, logs in known["taken"]
            for log in _logs(logs)
        }
        return cls(_logs(known["granted"]), taken, _logs(known.get("surplus", {})))


def assign(members: Mapping[str, Member]) -> dict[str, Share]:
    """Assign each log that any member claims or holds to exactly one member; return the shares by member id.

    A holder keeps its logs, claimed or not, because only the holder can release them. The rest goes to the runs
    with the fewest, the oldest first. The order of `members` does not matter.
    """
    in_order = sorted(members, key=_by_age(members))
    held: dict[Log, str] = {}
    for name in in_order:
        for log in members[name].holds:
            held.setdefault(log, name)
    owners = dict(held)
    wanting: dict[Log, list[str]] = {}
    for name in in_order:
        for log in members[name].wants:
            wanting.setdefault(log, []).append(name)
    run_of = {name: member.who.run for name, member in members.items()}
    counts = Counter(run_of[name] for name in owners.values())
    # With equal counts `min` takes the first, which is the oldest.
    for log in sorted(wanting.keys() - owners.keys()):
        owners[log] = min(wanting[log], key=lambda name: counts[run_of[name]])
        counts[run_of[owners[log]]] += 1
    surplus: dict[str, set[Log]] = {}
    for log in sorted(wanting):
        rich, poor = owners[log], min(wanting[log], key=lambda name: counts[run_of[name]])
        if (
            rich not in wanting[log]
            # `keeps` protects only what the member holds already.
            or (log in held and log in members[rich].keeps)
            or counts[run_of[rich]] - counts[run_of[poor]] < _MUCH
        ):
            continue
        counts[run_of[rich]] -= 1
        counts[run_of[poor]] += 1
        if log in held:
            surplus.setdefault(rich, set()).add(log)
        else:
            owners[log] = poor
    shares = {}
    for name, member in members.items():
        asked = member.wants | member.holds
        granted = frozenset(log for log in asked if owners[log] == name)
        taken = {log: members[owners[log]].who for log in asked - granted}
        shares[name] = Share(granted, taken, frozenset(surplus.get(name, ())))
    return shares


def _by_age(members: Mapping[str, Member]) -> Callable[[str], tuple[float, str, float, str]]:
    """Return the sort key of members: the oldest run first, and in it the oldest member."""
    oldest: dict[str, float] = {}
    for member in members.values():
        run = member.who.run
        oldest[run] = min(oldest.get(run, member.who.since), member.who.since)

    def key(name: str) -> tuple[float, str, float, str]:
        who = members[name].who
        return oldest[who.run], who.run, who.since, name

    return key


def _by_topic(logs: Iterable[Log]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(logs):
        found.setdefault(topic, []).append(partition)
    return found


def _logs(value: Mapping[str, Iterable[int]]) -> frozenset[Log]:
    return frozenset((topic, number) for topic, numbers in value.items() for number in numbers)


def _pack(value: Mapping[str, Any]) -> bytes:
    """Compress: brokers keep all members' metadata in one record, limited to a megabyte by default."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def _unpack(data: bytes) -> Any:
    """Return what was packed.

    Raises:
        Misfit: it is something else, or too large: any program may join the group, and a megabyte can decompress to a
            gigabyte.
    """
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, _LARGEST + 1)
    except zlib.error:
        message = "not compressed as members do it"
        raise Misfit(message) from None
    if not unpacking.eof and len(text) <= _LARGEST:
        message = "it ends too early"
        raise Misfit(message)
    return parsed(text, _LARGEST)
