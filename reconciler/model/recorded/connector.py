"""A connector of Kafka Connect as workers that share it keep it: its configuration, and what it is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from reconciler.model.base.shape import TEXT, TIME, WORD, fields, mapped, one_of, text

ConnectorState = Literal["RUNNING", "PAUSED", "STOPPED"]
"""What a connector is to do, in Connect's words."""

CONNECTOR_STATES: tuple[str, ...] = get_args(ConnectorState)
_LONGEST_NAME = 300
_NAME = text(_LONGEST_NAME, 1)


@dataclass(frozen=True)
class ConnectorRecord:
    """One connector.

    Attributes:
        name: of it.
        config: its settings; references stand for secrets.
        state: what it is to do.
        by: author of the last change.
        since: its time, in seconds since 1970.
    """

    name: str
    config: Mapping[str, str] = field(repr=False)
    state: ConnectorState = "RUNNING"
    by: str = ""
    since: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "name": self.name,
            "config": dict(self.config),
            "state": self.state,
            "by": self.by,
            "since": self.since,
        }

    @classmethod
    def from_json(cls, value: Any) -> ConnectorRecord:
        """Return what `to_json` made.

        Raises:
            Misfit: it has another shape.
        """
        known = fields(
            value,
            {
                "name": _NAME,
                "config": mapped(WORD, TEXT),
                "state": one_of(*CONNECTOR_STATES),
                "by": TEXT,
                "since": TIME,
            },
        )
        state = cast("ConnectorState", known["state"])
        return cls(known["name"], known["config"], state, known["by"], known["since"])
