"""Wires: what a takeover speaks over, and what is connected before a partition is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.wire import Wire


@dataclass(frozen=True, slots=True)
class Wires:
    """What a takeover speaks over.

    Attributes:
        source: to the source; no long poll blocks it.
        target: to the target beside the writers'.
        produce: the writers', to be connected before anything is sent over it.
        fetch: the readers', likewise.
    """

    source: Wire
    target: Wire
    produce: Wire
    fetch: Sequence[Wire]

    async def connect(self, leader: int) -> None:
        """Connect what records go over, and the writers' to the remote partition's leader.

        Raises:
            ConnectionLost: that cannot be done now.
        """
        for wire in self.fetch:
            await wire.connect()
        await self.produce.connect()
        # What versions of requests it knows is known then: brokers of one cluster are not always of one release.
        await self.produce.reach(leader)
