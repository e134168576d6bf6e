"""What is said with a committed position: of which topics it is, who committed it, and what was read last.

`arrival` reads it, `translated` writes it with each position. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """What is said with a position.

    Attributes:
        source_id: id of the source topic; None where the brokers have none.
        target_id: id of the remote topic, likewise.
        transactional_id: in whose transaction it was committed.
        epoch: the source's leader epoch of what stands before the position; None where that is not known. It is not
            the commit's own leader epoch, which stays -1: consumers of the target would look for it there.
    """

    source_id: str | None
    target_id: str | None
    transactional_id: str
    epoch: int | None = None

    def __str__(self) -> str:
        value = {"source": self.source_id, "target": self.target_id, "producer": self.transactional_id}
        return json.dumps(value if self.epoch is None else value | {"epoch": self.epoch})

    @classmethod
    def parse(cls, text: str) -> Note:
        """Read what was written, also before notes had epochs; what cannot be read says nothing."""
        try:
            value = json.loads(text)
            epoch = value.get("epoch")
            epoch = epoch if isinstance(epoch, int) and epoch >= 0 else None
            return cls(value.get("source"), value.get("target"), str(value.get("producer", "")), epoch)
        except (ValueError, AttributeError):
            return cls(None, None, "")
