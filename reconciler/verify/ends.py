"""Where the partitions of some topics of one cluster begin and end, as `survey` asks for both sides."""

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
        end: the one behind the last that counts.
        since: the first one of the time that was asked for.
        high: the one behind the last that there is, be its transaction open.
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
        """Ask for all of them; what is missing, or has no leader for a while, is left out.

        Args:
            places: topics and numbers.
            uncommitted: those of which uncommitted records count, too.
            since: a time whose first offsets are wanted.

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
        """Ask once; return those of which somebody may tell soon."""
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
            # The other one behind it: what counts by then stands below.
            self.end |= await stable_ends(self._wire, node, numbers)
            self.high |= await stable_ends(self._wire, node, numbers, committed=False)
            # Whoever asks at the same time is in one request.
            asks = [partial(self._note, self.first, node, one, EARLIEST, left) for one in numbers]
            asks += [partial(self._note, self.end, node, one, LATEST, left) for one in numbers if one in uncommitted]
            if since is not None:
                asks += [partial(self._note, self.since, node, one, since, left) for one in numbers]
            await self._loop.together(asks)
            left |= {one for one in numbers if one not in self.end}
        for one in left:
            # What is half told is not known.
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
        """Return a topic's id as text; None where the brokers have none."""
        found = self.topics[topic].topic_id
        return None if found is None else str(found)

    def held(self, topic: str, number: int) -> int:
        """Return how many offsets of a partition stand behind a transaction that is open, and do not count yet."""
        return max(0, self.high.get((topic, number), 0) - self.end[topic, number])

    def knows(self, topic: str, number: int) -> bool:
        """Tell whether it was told where a partition begins and ends."""
        return (topic, number) in self.first and (topic, number) in self.end
