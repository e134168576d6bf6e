"""The connections of a takeover, and what is connected before a partition is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.wire import Wire


@dataclass(frozen=True, slots=True)
class Wires:
    """The connections of a takeover.

    Attributes:
        source: to the source; no long poll blocks it.
        target: to the target, beside the senders'.
        produce: the senders', connected before anything is sent over it.
        fetch: the fetchers', likewise.
    """

    source: Wire
    target: Wire
    produce: Wire
    fetch: Sequence[Wire]

    async def connect(self, leader: int) -> None:
        """Connect the fetchers and the sender, the latter to the leader of the remote partition.

        Raises:
            ConnectionLost: a connection cannot be made now.
        """
        for wire in self.fetch:
            await wire.connect()
        await self.produce.connect()
        # This also negotiates the API versions: brokers of one cluster may run different releases.
        await self.produce.reach(leader)
