"""The deal: which member of a flow's group may write which partition. Values and one pure rule, without I/O.

`lease` tells the group what its member wants and holds, and calls `deal` when its member is the one that deals. A
partition never moves while its holder lives; a free one goes to the oldest run that wants it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# A log is what is dealt: a partition of a remote topic, by name and number.
Log = tuple[str, int]

_NOTHING: frozenset[Log] = frozenset()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who may write: the task of a run, and since when its process is a member (seconds since 1970)."""

    run: str
    task: int
    since: float


@dataclass(frozen=True, slots=True)
class Member:
    """What a member says of itself when it joins.

    Attributes:
        who: its run and task.
        wants: all that it would write.
        holds: what it writes now, with a lease that has not run out.
    """

    who: Holder
    wants: frozenset[Log]
    holds: frozenset[Log] = _NOTHING

    def to_bytes(self) -> bytes:
        """Return the value as bytes; `from_bytes` is its inverse."""
        return _pack(
            {
                "run": self.who.run,
                "task": self.who.task,
                "since": self.who.since,
                "wants": _by_topic(self.wants),
                "holds": _by_topic(self.holds),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Member:
        """Read what `to_bytes` returned.

        Raises:
            ValueError: the bytes are something else.
        """
        try:
            value = _unpack(data)
            who = Holder(str(value["run"]), int(value["task"]), float(value["since"]))
            return cls(who, _logs(value["wants"]), _logs(value["holds"]))
        except (zlib.error, KeyError, TypeError, AttributeError) as error:
            message = f"not what a member says of itself: {error}"
            raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class Share:
    """What the deal gives to one member.

    Attributes:
        granted: what it may write.
        taken: what it wants and another holds.
    """

    granted: frozenset[Log]
    taken: Mapping[Log, Holder]

    def to_bytes(self) -> bytes:
        """Return the value as bytes; `from_bytes` is its inverse."""
        by_holder: dict[Holder, set[Log]] = {}
        for log, holder in self.taken.items():
            by_holder.setdefault(holder, set()).add(log)
        taken = [[h.run, h.task, h.since, _by_topic(logs)] for h, logs in by_holder.items()]
        return _pack({"granted": _by_topic(self.granted), "taken": taken})

    @classmethod
    def from_bytes(cls, data: bytes) -> Share:
        """Read what `to_bytes` returned; an empty share where the one that dealt said nothing of this member.

        Raises:
            ValueError: the bytes are something else.
        """
        if not data:
            return cls(_NOTHING, {})
        try:
            value = _unpack(data)
            taken = {
                log: Holder(str(run), int(task), float(since))
                for run, task, since, logs in value["taken"]
                for log in _logs(logs)
            }
            return cls(_logs(value["granted"]), taken)
        except (zlib.error, KeyError, TypeError, AttributeError) as error:
            message = f"not a share: {error}"
            raise ValueError(message) from None


def deal(members: Mapping[str, Member]) -> dict[str, Share]:
    """Give each log that anybody wants or holds to exactly one member, and return the shares by member id.

    Whoever holds a log keeps it, wanted or not: only its holder can say that it has let go. The rest goes to the
    oldest run that wants it. The order of `members` does not matter.
    """
    oldest: dict[str, float] = {}
    for member in members.values():
        run = member.who.run
        oldest[run] = min(oldest.get(run, member.who.since), member.who.since)

    def by_age(item: tuple[str, Member]) -> tuple[float, str, float, str]:
        name, member = item
        return oldest[member.who.run], member.who.run, member.who.since, name

    owners: dict[Log, str] = {}
    in_order = sorted(members.items(), key=by_age)
    for name, member in in_order:
        for log in member.holds:
            owners.setdefault(log, name)
    for name, member in in_order:
        for log in member.wants:
            owners.setdefault(log, name)
    shares = {}
    for name, member in members.items():
        asked = member.wants | member.holds
        granted = frozenset(log for log in asked if owners[log] == name)
        shares[name] = Share(granted, {log: members[owners[log]].who for log in asked - granted})
    return shares


def _by_topic(logs: Iterable[Log]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(logs):
        found.setdefault(topic, []).append(partition)
    return found


def _logs(value: Mapping[str, list[int]]) -> frozenset[Log]:
    return frozenset((str(topic), int(number)) for topic, numbers in value.items() for number in numbers)


def _pack(value: Mapping[str, Any]) -> bytes:
    """Compress: all members' words are kept in one record, which brokers limit to a megabyte."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
