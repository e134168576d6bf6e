"""Reads where the partitions of some topics of one cluster begin and end; `survey` calls it for both sides."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection
from functools import partial

from reconciler.verify import patience
from reconciler.verify.patience import PASSING, RETRY, is_passing
from reconciler.wire import (
    EARLIEST,
    LATEST,
    BrokerError,
    ConnectionLost,
    ErrorCode,
    Loop,
    TopicInfo,
    Wire,
    stable_ends,
)

Number = tuple[str, int]


class LogEnds:
    """The ends of one side.

    Args:
        loop: to sleep on.
        wire: to its cluster.

    Attributes:
        topics: as the cluster describes them.
        first: the first offset of each partition.
        end: the end offset of the records that count.
        since: the first one at or after the requested timestamp.
        high: the log end, including open transactions.
    """

    def __init__(self, loop: Loop, wire: Wire) -> None:
        self._loop = loop
        self._wire = wire
        self.topics: dict[str, TopicInfo] = {}
        self.first: dict[Number, int] = {}
        self.end: dict[Number, int] = {}
        self.since: dict[Number, int] = {}
        self.high: dict[Number, int] = {}

    async def look(self, places: Collection[Number], uncommitted: Collection[Number], since: int | None) -> None:
        """Read the bounds of some partitions; those that do not exist or have no leader are left out.

        Args:
            places: topics and numbers.
            uncommitted: those whose uncommitted records count, too.
            since: a timestamp in ms whose first offsets are read; None for none.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the cluster refuses.
        """
        began = time.monotonic()
        while places:
            is_late = time.monotonic() - began > patience.PATIENCE
            try:
                places = await self._look(places, uncommitted, since)
            except (ConnectionLost, BrokerError) as error:
                if is_late or not is_passing(error):
                    raise
            if is_late:
                break
            if places:
                await self._loop.sleep(RETRY)

    async def _look(
        self, places: Collection[Number], uncommitted: Collection[Number], since: int | None
    ) -> Collection[Number]:
        """Read once; return the partitions to try again."""
        self.topics |= await self._wire.topics(sorted({topic for topic, _ in places}))
        by_node: dict[int, list[Number]] = defaultdict(list)
        left: set[Number] = set()
        for topic, number in places:
            info = self.topics[topic]
            leader = info.partitions.get(number)
            code = info.error or (leader.error if leader else 0)
            if code in PASSING and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                left.add((topic, number))
            elif not code and leader is not None:
                by_node[leader.node].append((topic, number))
        for node, numbers in by_node.items():
            # The log end is read later, so that it is not below the last stable offset.
            self.end |= await stable_ends(self._wire, node, numbers)
            self.high |= await stable_ends(self._wire, node, numbers, committed=False)
            # Concurrent calls are merged into one request.
            asks = [partial(self._note, self.first, node, one, EARLIEST, left) for one in numbers]
            asks += [partial(self._note, self.end, node, one, LATEST, left) for one in numbers if one in uncommitted]
            if since is not None:
                asks += [partial(self._note, self.since, node, one, since, left) for one in numbers]
            await self._loop.together(asks)
            left |= {one for one in numbers if one not in self.end}
        for one in left:
            # A partition with one bound missing is unknown.
            self.first.pop(one, None)
        return left

    async def _note(self, into: dict[Number, int], node: int, place: Number, which: int, left: set[Number]) -> None:
        try:
            into[place] = await self._wire.offset(node, *place, which)
        except BrokerError as error:
            if not is_passing(error):
                raise
            left.add(place)

    def id_of(self, topic: str) -> str | None:
        """Return a topic's id as text; None if brokers have no topic ids."""
        found = self.topics[topic].topic_id
        return None if found is None else str(found)

    def held(self, topic: str, number: int) -> int:
        """Return the number of offsets behind an open transaction, which do not count yet."""
        return max(0, self.high.get((topic, number), 0) - self.end[topic, number])

    def has_bounds(self, topic: str, number: int) -> bool:
        """Return whether the bounds of a partition are known."""
        return (topic, number) in self.first and (topic, number) in self.end
