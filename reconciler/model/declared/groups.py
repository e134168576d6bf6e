"""Which consumer groups a flow takes along, and how: their positions as checkpoints, and as offsets at the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from reconciler.model.names.selection import EVERYTHING, NameSelection, names

USUALLY_EXCLUDED = ("__.*", "connect-.*", "console-consumer-.*")
"""Groups that are never moved, as MirrorMaker 2 has it (`DefaultGroupFilter`)."""

ALWAYS_EXCLUDED = (r"anabranch\..*",)
"""The groups of flows themselves."""

ALL = "all"
"""What chooses every group on a command line."""

DEFAULT_INTERVAL = 60.0

MOST_GROUPS = 2_000
"""So many groups of a flow are recorded by name with each round."""


_MISSED = 3
_SHORTEST_SILENCE = 30.0


def is_of_flows(group: str) -> bool:
    """Return whether a group is one of flows themselves."""
    return group in names(ALWAYS_EXCLUDED, any_text=True)


def choosing(named: Iterable[str]) -> NameSelection:
    """Return what names and regular expressions of a command line choose among groups; `all` chooses every group."""
    return names(tuple(EVERYTHING if name == ALL else name for name in named), any_text=True)


class SyncedGroup(NamedTuple):
    """When the positions of one group were last written to the target.

    Attributes:
        name: of the group.
        time: when, in seconds since 1970; 0 where this process never did.
        code: why the last round did not, such as `AB621`; empty where it did.
    """

    name: str
    time: float
    code: str = ""


@dataclass(frozen=True)
class LastLook:
    """When the groups of a flow were last checked.

    Attributes:
        time: when that was done, in seconds since 1970.
        groups: how many there were; None where that is not known.
        by_group: each of them, and those that were refused, which come first; at most `MOST_GROUPS`. Empty in records
            of earlier releases.
    """

    time: float
    groups: int | None = None
    by_group: tuple[SyncedGroup, ...] = ()


@dataclass(frozen=True)
class GroupRules:
    """A flow's rules for consumer groups of its source.

    Attributes:
        include: names and regular expressions of groups; none takes none.
        exclude: likewise, of groups that are left out; exclude wins.
        sync_offsets: whether the positions are committed at the target too, for groups without members there.
        interval: seconds between two rounds.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = USUALLY_EXCLUDED
    sync_offsets: bool = False
    interval: float = DEFAULT_INTERVAL

    def takes(self, group: str) -> bool:
        """Return whether a group is taken along."""
        return group in self._included and group not in self._excluded and not is_of_flows(group)

    @property
    def names_some(self) -> bool:
        """Whether it names the groups that are taken along, and not merely all."""
        return any(item != EVERYTHING for item in self.include)

    def idle(self, there: Iterable[str]) -> list[str]:
        """Return the items of `include` that match none of the groups that there are."""
        return self._included.idle(group for group in there if not is_of_flows(group))

    @cached_property
    def _included(self) -> NameSelection:
        return names(self.include, any_text=True)

    @cached_property
    def _excluded(self) -> NameSelection:
        return names(self.exclude, any_text=True)

    @property
    def longest_silence(self) -> float:
        """Seconds after which groups that were not checked are in trouble."""
        return max(_MISSED * self.interval, _SHORTEST_SILENCE)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GroupRules:
        """Return what `dataclasses.asdict` gave.

        Raises:
            KeyError: a field is missing.
        """
        return cls(tuple(data["include"]), tuple(data["exclude"]), bool(data["sync_offsets"]), float(data["interval"]))
