"""What is said with a committed position: whose it is, of which topics, and where its transaction begins. Pure."""

from __future__ import annotations

import json
from typing import NamedTuple


class Note(NamedTuple):
    """What is said with a position.

    Attributes:
        source_id: id of the source topic; None where the brokers have none.
        target_id: id of the remote topic, likewise.
        transactional_id: in whose transaction it was committed.
        began: target offset at which the newest transaction with records of the partition begins; -1 without one.
    """

    source_id: str | None = None
    target_id: str | None = None
    transactional_id: str = ""
    began: int = -1

    def __str__(self) -> str:
        return json.dumps(
            {"source": self.source_id, "target": self.target_id, "producer": self.transactional_id, "began": self.began}
        )

    @classmethod
    def parse(cls, text: str) -> Note:
        """Read what was written; what cannot be read says nothing."""
        try:
            value = json.loads(text)
            began = value.get("began", -1)
            return cls(value.get("source"), value.get("target"), str(value.get("producer", "")), int(began))
        except (ValueError, TypeError, AttributeError):
            return cls()
