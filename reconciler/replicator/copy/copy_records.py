"""The records of a task's copies, stored beside their logs in `state.copies`.

The takeovers and `gaps` use it. Reading and writing wait for the cluster in a thread, so that the loop is not blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from reconciler.model.offsets.runs import CopyRecord
from reconciler.replicator.copy.coalesced import CoalescedRead
from reconciler.replicator.partition.shares import Place
from reconciler.state.copies import Copies, Ids
from reconciler.wire import Loop

# A wait looks less and less often: many tasks of a process may wait for one cluster.
_PAUSE, _LONGEST_PAUSE = 0.002, 0.05

# Returns the new record from the present one; None if there is none.
Change = Callable[[CopyRecord | None], CopyRecord]


class CopyRecords:
    """The copy records of one flow.

    Args:
        loop: the task's loop.
        copies: the records of the target cluster.
        flow: name of the flow.
    """

    def __init__(self, loop: Loop, copies: Copies, flow: str) -> None:
        self._loop = loop
        self._copies = copies
        self._flow = flow
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memory")
        self._reading = CoalescedRead(loop, lambda: self._beside(self._copies.refresh))

    async def refresh(self) -> None:
        """Read all that was stored before this call; concurrent takeovers share one read.

        Raises:
            EnvironmentFault: AB310 or AB311, it cannot be read.
        """
        await self._reading.refresh()

    def get(self, place: Place) -> CopyRecord | None:
        """Return the record of a partition."""
        return self._copies.get(self._flow, place.remote, place.partition)

    def of_others(self, place: Place) -> dict[str, CopyRecord]:
        """Return the records that other flows have of a partition, by flow."""
        return self._copies.of_others(self._flow, place.remote, place.partition)

    def source_id(self, place: Place) -> str | None:
        """Return the id of the source topic of a partition's copy; None while it is not on record."""
        record = self.get(place)
        return None if record is None else record.source_id

    def ids(self, place: Place) -> Mapping[Ids, Collection[int]]:
        """Return the partitions of a copy that are on record, by the topic ids in their records."""
        return self._copies.ids(self._flow, place.remote)

    async def put(self, place: Place, record: CopyRecord) -> None:
        """Store a record, and return when it is stored: only then may the log be written that it describes.

        Raises:
            EnvironmentFault: AB310 or AB311, it is not stored.
        """
        await self._beside(lambda: self._copies.put(self._flow, place.remote, place.partition, record))

    async def change(self, place: Place, how: Change) -> None:
        """Store a changed record, and return when it is stored; changes are made one after the other.

        Raises:
            EnvironmentFault: AB310 or AB311, it is not stored.
        """
        await self._beside(lambda: self._change(place, how, self._copies.put))

    def change_later(self, place: Place, how: Change) -> None:
        """Store a changed record after the changes under way, without waiting for it."""
        self._pool.submit(self._change, place, how, self._copies.post)

    def _change(self, place: Place, how: Change, store: Callable[[str, str, int, CopyRecord], None]) -> None:
        before = self.get(place)
        after = how(before)
        if after != before:
            store(self._flow, place.remote, place.partition, after)

    def hint(self, place: Place, record: CopyRecord) -> None:
        """Store a record without waiting for it."""
        self._copies.post(self._flow, place.remote, place.partition, record)

    def close(self) -> None:
        """Store what was posted; the store is its owner's to close."""
        self._pool.shutdown()
        self._copies.flush()

    async def _beside(self, work: Callable[[], None]) -> None:
        future: Future[None] = self._pool.submit(work)
        pause = _PAUSE
        while not future.done():
            await self._loop.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        future.result()
