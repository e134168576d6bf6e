"""What is said with a committed position: whose it is, of which topics, and where its transaction begins.

`arrival` reads it, `translated` makes it. Pure.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class Note(NamedTuple):
    """What is said with a position.

    Attributes:
        source_id: id of the source topic; None where the brokers have none.
        target_id: id of the remote topic, likewise.
        transactional_id: in whose transaction it was committed; empty outside of any.
        began: target offset at which the newest transaction with records of the partition begins; -1 without one.
        epoch: the source's leader epoch of what stands before the position; None where that is not known. It is not
            the commit's own leader epoch, which stays -1: consumers of the target would look for it there.
    """

    source_id: str | None = None
    target_id: str | None = None
    transactional_id: str = ""
    began: int = -1
    epoch: int | None = None

    def __str__(self) -> str:
        value = {
            "source": self.source_id,
            "target": self.target_id,
            "producer": self.transactional_id,
            "began": self.began,
        }
        return json.dumps(value if self.epoch is None else value | {"epoch": self.epoch})

    @classmethod
    def parse(cls, text: str) -> Note:
        """Read what was written; what cannot be read, or was not written yet, says nothing."""
        try:
            value = json.loads(text)
            began, epoch = int(value.get("began", -1)), value.get("epoch")
            epoch = epoch if isinstance(epoch, int) and epoch >= 0 else None
            return cls(value.get("source"), value.get("target"), str(value.get("producer", "")), began, epoch)
        except (ValueError, TypeError, AttributeError):
            return cls()
