"""What is said with a committed position: whose it is, of which topics, and where its transaction begins.

`translated` reads it, `translated_channel` makes it. Pure.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

from reconciler.model.base.shape import ID, TEXT, Check, fields, fits, maybe, parsed, whole


class OffsetMetadata(NamedTuple):
    """What is said with a position.

    Attributes:
        source_id: id of the source topic; None where the brokers have none.
        target_id: id of the remote topic, likewise.
        transactional_id: in whose transaction it was committed; empty outside of any.
        began: target offset at which the newest transaction with records of the partition begins; -1 without one.
        epoch: the source's leader epoch of what stands before the position; None where that is not known. It is not
            the commit's own leader epoch, which stays -1: consumers of the target would look for it there.
        anew_from: source offset from which on the source has other records than were copied, as long as no offset sync
            has said so; None where it has not, or one has.
        ended: target offset behind the newest record that was written before the position; None while unknown.
    """

    source_id: str | None = None
    target_id: str | None = None
    transactional_id: str = ""
    began: int = -1
    epoch: int | None = None
    anew_from: int | None = None
    ended: int | None = None

    def __str__(self) -> str:
        value = {
            "source": self.source_id,
            "target": self.target_id,
            "producer": self.transactional_id,
            "began": self.began,
        }
        more = {"epoch": self.epoch, "anew": self.anew_from, "ended": self.ended}
        return json.dumps(value | {name: number for name, number in more.items() if number is not None})

    def is_of(self, source_id: str | None, target_id: str | None) -> bool:
        """Tell whether the position is known to be one between these two topics; without ids that is not known."""
        return None not in (source_id, target_id) and (self.source_id, self.target_id) == (source_id, target_id)

    def anew_at(self, is_another: bool, epoch: int, position: int, end: int) -> int | None:
        """Return from where on the source may have others than offset syncs have told of; None where it has not.

        Args:
            is_another: whether the source's topic is another one than this speaks of.
            epoch: of the source's leader of today; -1 where it has none.
            position: that was committed.
            end: where the source's log ceases to be what was copied; the position where it does not.
        """
        if is_another:
            return 0
        # Who died before the position was committed may have told of more: under another leader, or where a position
        # was moved, nobody can tell whether the source still has that.
        if self.epoch is not None and epoch in (-1, self.epoch) and end == position:
            return self.anew_from
        return end if self.anew_from is None else min(end, self.anew_from)

    @classmethod
    def parse(cls, text: str) -> OffsetMetadata:
        """Read what was written; what cannot be read, or was not written yet, says nothing."""
        known = fits(_read, text)
        if known is None:
            return cls()
        numbers = (known.get(name) for name in ("epoch", "anew", "ended"))
        ids = known.get("source"), known.get("target")
        return cls(*ids, known.get("producer", ""), known.get("began", -1), *numbers)


# Any member of a flow's group may commit, and brokers take 4,096 bytes unless somebody lets them take more.
_LONGEST = 65_536
# Earlier releases wrote others of these, which say nothing; what stands beside them counts.
_NUMBER = partial(fits, whole(0))
_FIELDS: dict[str, Check] = {
    "source": maybe(ID),
    "target": maybe(ID),
    "producer": TEXT,
    "began": whole(-1),
    "epoch": _NUMBER,
    "anew": _NUMBER,
    "ended": _NUMBER,
}


def _read(text: str) -> dict[str, Any]:
    return fields(parsed(text, _LONGEST), {}, _FIELDS)
