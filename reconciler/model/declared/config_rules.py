"""Which settings copies get from their originals, and which they get by declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.names.selection import any_matches

FIXED = frozenset(
    {
        "compression.type",
        "message.format.version",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
    }
)
"""Settings that decide whether batches pass unchanged and stay: copies have the values that this needs."""

THROTTLES = frozenset({"follower.replication.throttled.replicas", "leader.replication.throttled.replicas"})
"""Settings that tools put on topics while they move replicas, and take away again."""


@dataclass(frozen=True)
class ConfigRules:
    """A flow's rules for the settings of its copies.

    Attributes:
        sync: whether copies follow when settings of their originals change.
        include: names and regular expressions of settings that are copied although they usually are not.
        exclude: likewise, that are not copied; exclude wins.
        set: settings with values of their own, by name; they win over everything but `FIXED`.
        places: where the files declare these values, by name; no part of what is declared.
    """

    sync: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def place_of(self, key: str) -> str:
        """Return where the value of a setting is declared; empty where no file does."""
        return dict(self.places).get(key, "")

    def copies(self, key: str, is_excluded: bool) -> bool:
        """Return whether a setting of originals is copied.

        Args:
            key: its name.
            is_excluded: whether it is not, unless it is included explicitly.
        """
        if any_matches(self.exclude, key):
            return False
        return not is_excluded or any_matches(self.include, key)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ConfigRules:
        """Read what `dataclasses.asdict` gave, back from JSON.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        pairs = tuple((str(key), str(text)) for key, text in value["set"])
        return cls(value["sync"], tuple(value["include"]), tuple(value["exclude"]), pairs)
