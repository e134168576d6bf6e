"""The metadata of a committed position: its transactional id, its topics, and where its transaction begins.

`translated` reads it, `translated_channel` writes it. Pure.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

from reconciler.model.base.shape import ID, TEXT, Check, fields, fits, maybe, parsed, whole


class OffsetMetadata(NamedTuple):
    """The metadata that is committed with a position.

    Attributes:
        source_id: id of the source topic; None where the brokers have none.
        target_id: id of the remote topic, likewise.
        transactional_id: of the transaction in which it was committed; empty outside of any.
        began: target offset at which the newest transaction with records of the partition begins; -1 without one.
        epoch: the source's leader epoch before the position; None while unknown. It is not the leader epoch of the
            commit, which stays -1, because consumers of the target would compare that with the target's epochs.
        anew_from: source offset from which on the source has other records than the copy and no offset sync records
            it yet; None otherwise.
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
        """Return whether the position is known to belong to these two topics; False without ids."""
        return None not in (source_id, target_id) and (self.source_id, self.target_id) == (source_id, target_id)

    def anew_at(self, is_another: bool, epoch: int, position: int, end: int) -> int | None:
        """Return from which source offset on records may differ from those in offset syncs; None where they do not.

        Args:
            is_another: whether the source topic has another id than `source_id`.
            epoch: of the source's current leader; -1 where it has none.
            position: the committed position.
            end: source offset up to which source and copy agree; the position where they agree fully.
        """
        if is_another:
            return 0
        # A task that died before it committed the position may have written syncs of later records. Under another
        # leader, or where the position was moved, it is unknown whether the source still has those records.
        if self.epoch is not None and epoch in (-1, self.epoch) and end == position:
            return self.anew_from
        return end if self.anew_from is None else min(end, self.anew_from)

    @classmethod
    def parse(cls, text: str) -> OffsetMetadata:
        """Parse metadata; unreadable text and missing fields give the defaults."""
        known = fits(_read, text)
        if known is None:
            return cls()
        numbers = (known.get(name) for name in ("epoch", "anew", "ended"))
        ids = known.get("source"), known.get("target")
        return cls(*ids, known.get("producer", ""), known.get("began", -1), *numbers)


# Any member of a flow's group may commit; brokers accept 4,096 bytes unless offset.metadata.max.bytes is raised.
_LONGEST = 65_536
# Earlier releases wrote other values into these fields, which are ignored; the other fields count.
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
