"""Which consumer groups a flow takes along, and how: their positions as checkpoints, and as offsets at the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.model.selection import Names, any_matches, names

USUALLY_EXCLUDED = ("__.*", "connect-.*", "console-consumer-.*")
"""Groups that nobody moves, as MirrorMaker 2 has it (`DefaultGroupFilter`)."""

ALWAYS_EXCLUDED = (r"anabranch\..*",)
"""The groups of flows themselves."""

DEFAULT_INTERVAL = 60.0


_MISSED = 3
_SHORTEST_SILENCE = 30.0


@dataclass(frozen=True)
class LastLook:
    """When the groups of a flow were last looked at.

    Attributes:
        time: when that was done, in seconds since 1970.
        groups: how many there were; None where that is not known.
    """

    time: float
    groups: int | None = None


@dataclass(frozen=True)
class GroupRules:
    """What a flow says about consumer groups of its source.

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
        """Tell whether a group is taken along."""
        if group not in self._included or group in self._excluded:
            return False
        return not any_matches(ALWAYS_EXCLUDED, group)

    @cached_property
    def _included(self) -> Names:
        return names(self.include)

    @cached_property
    def _excluded(self) -> Names:
        return names(self.exclude)

    @property
    def longest_silence(self) -> float:
        """Seconds after which groups that nobody has looked at are in trouble."""
        return max(_MISSED * self.interval, _SHORTEST_SILENCE)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GroupRules:
        """Return what `dataclasses.asdict` gave.

        Raises:
            KeyError: a field is missing.
        """
        return cls(tuple(data["include"]), tuple(data["exclude"]), bool(data["sync_offsets"]), float(data["interval"]))
