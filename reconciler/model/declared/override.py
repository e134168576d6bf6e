"""Overrides: what of flows was changed at run time, beside their files, until `apply` returns to these.

Pure. `service` makes one, `declare` lays it over what the files declare, and an apply of that puts both in force:
`replicate` then goes by it, and `drift` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model.base.shape import TEXT, TIME, WORD, fields, flag, mapped
from reconciler.model.base.text import utc

FlowEntry = Mapping[str, Any]
"""Fields of a flow as an entry of a topology file has them, as JSON types; without `name`, `from` and `to`."""


@dataclass(frozen=True)
class FlowOverride:
    """What is different of one flow.

    Attributes:
        flow: its name.
        source: alias of its source.
        target: alias of its target.
        entry: its other fields, as far as they are different.
        is_new: whether no file declares the flow.
        is_removed: whether it is to be ended, and no longer shown.
        by: author of the last change.
        since: its time, in seconds since 1970.
    """

    flow: str
    source: str
    target: str
    entry: FlowEntry = field(default_factory=dict)
    is_new: bool = False
    is_removed: bool = False
    by: str = ""
    since: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "flow": self.flow,
            "from": self.source,
            "to": self.target,
            "entry": dict(self.entry),
            "new": self.is_new,
            "removed": self.is_removed,
            "by": self.by,
            "since": self.since,
        }

    @classmethod
    def from_json(cls, value: Any) -> FlowOverride:
        """Return what `to_json` made.

        Raises:
            Misfit: it has another shape.
        """
        shapes = {"flow": WORD, "from": WORD, "to": WORD, "entry": mapped(TEXT, _anything), "by": TEXT, "since": TIME}
        known = fields(value, shapes | {"new": flag, "removed": flag})
        ends = known["flow"], known["from"], known["to"]
        return cls(*ends, known["entry"], known["new"], known["removed"], known["by"], known["since"])

    def changed(self, entry: FlowEntry) -> FlowOverride:
        """Return it with further fields; of those that have fields of their own, as `topics`, each counts by itself."""
        found = dict(self.entry)
        for key, value in entry.items():
            former = found.get(key)
            if isinstance(value, Mapping) and isinstance(former, Mapping) and key != "start":
                found[key] = {**former, **value}
            else:
                found[key] = value
        return replace(self, entry=found)

    def document(self) -> dict[str, Any]:
        """Return it as the flows of a topology file."""
        ended = {"enabled": False} if self.is_removed else {}
        return {"flows": [{"name": self.flow, "from": self.source, "to": self.target, **self.entry, **ended}]}

    @property
    def told(self) -> str:
        """The time and the author of the change, for messages."""
        return f"on {utc(self.since)} by {self.by}"

    def __str__(self) -> str:
        return f"override of flow {self.flow}"


def _anything(value: Any) -> Any:
    return value
