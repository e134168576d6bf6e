"""Lookups before anything is copied: topics, ends of logs, producers, coordinators.

The part of `Wire` whose methods look up one thing of one partition; concurrent lookups share a request (`gather`).
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from reconciler.wire.net.gather import Gather
from reconciler.wire.net.loop import Loop
from reconciler.wire.protocol import epochs
from reconciler.wire.protocol.library import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from reconciler.wire.protocol.values import BrokerError, ConnectionLost, Leader, ProducerState, TopicInfo, by_topic

# What a coordinator is asked for by.
GROUP, TRANSACTIONAL_ID = 0, 1
_NO_TOPIC_ID = uuid.UUID(int=0)
# The first version that names several keys, and the newest that is sent.
_MANY_COORDINATORS, _FIND_COORDINATOR = 4, 6


class Questions(ABC):
    """Lookups in one cluster; those of a kind that are made at the same time share a request.

    Args:
        loop: the task's loop.
        timeout_ms: how long a broker may take.
    """

    def __init__(self, loop: Loop, timeout_ms: int) -> None:
        self._loop = loop
        self._timeout_ms = timeout_ms
        self._gathers: dict[tuple[str, int], Gather[Any, Any]] = {}

    @abstractmethod
    async def connect(self) -> None:
        """Reach any broker of the cluster."""

    @abstractmethod
    async def _send(self, request: Any, node: int | None, patience: float = 0.0) -> Any:
        """Send a request and return its answer."""

    @abstractmethod
    def _version(self, node: int | None, request: Any, newest: int) -> int | None:
        """Return the newest version of a request that this side and a broker support; None before a connection."""

    @abstractmethod
    def _met(self, brokers: Iterable[int]) -> None:
        """Take note of the brokers that an answer names."""

    @abstractmethod
    def _begin_anew(self) -> None:
        """All brokers may have moved: the next attempt begins at the declared addresses."""

    async def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return the metadata of the topics `names`, missing ones with their error code.

        Raises:
            ConnectionLost: no answer.
        """
        return await self._gather("topics", 0, self._topics).get_all(names)

    async def log_end(self, node: int, topic: str, partition: int, epoch: int) -> int | None:
        """Return the log end at the leader, replicated or not; None while the leader does not have it.

        `OffsetForLeaderEpoch` with the current epoch is the one public request that answers with the log end and not
        with the high watermark.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the leader refuses, for example as its epoch is another.
        """
        return await self.epoch_end(node, topic, partition, epoch, epoch)

    async def epoch_end(self, node: int, topic: str, partition: int, current: int, asked: int) -> int | None:
        """Return where an epoch ends in the leader's log (see `epochs`); None while the leader does not have it.

        Args:
            node: the leader.
            topic: of the partition.
            partition: its number.
            current: the leader's own epoch; it refuses when it has another.
            asked: the epoch whose end is asked for.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the leader refuses.
        """
        end = await self._gather("epochs", node, self._epoch_ends).get(epochs.Ask(topic, partition, current, asked))
        return None if end < 0 else int(end)

    async def offset(self, node: int, topic: str, partition: int, which: int) -> int:
        """Return the leader's log start (`EARLIEST`), high watermark (`LATEST`), or first offset of a time (ms; or -1).

        Raises:
            ConnectionLost: no answer.
            BrokerError: the leader refuses.
        """
        # One request may name a partition once.
        gather = self._gather(f"offset {which}", node, partial(self._offsets, which))
        return int(await gather.get((topic, partition)))

    async def producers(self, node: int, topic: str, partition: int) -> list[ProducerState]:
        """Return the producers that the leader of a partition remembers.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the leader refuses.
        """
        found: list[ProducerState] = await self._gather("producers", node, self._producers).get((topic, partition))
        return found

    async def coordinator(self, key: str, key_type: int = TRANSACTIONAL_ID) -> int:
        """Return the node that coordinates the transactions of a transactional id, or a group.

        Raises:
            ConnectionLost: no answer.
            BrokerError: refused, or there is none just now.
        """
        await self.connect()
        gather = self._gather(f"coordinator {key_type}", 0, partial(self._coordinators, key_type))
        return int(await gather.get(key))

    async def transaction_code(self, node: int, transactional_id: str) -> int:
        """Return the error code with which a coordinator answers for a transactional id; 0 when it has it.

        Raises:
            ConnectionLost: no answer.
            BrokerError: UNSUPPORTED_VERSION, the broker does not support the request.
        """
        return int(await self._gather("transactions", node, self._transaction_codes).get(transactional_id))

    def _gather(self, kind: str, node: int, ask: Callable[..., Awaitable[Any]]) -> Gather[Any, Any]:
        """Return the gatherer of one kind of lookup at one node, so that none waits for another node that is silent."""
        found = self._gathers.get((kind, node))
        if found is None:
            found = self._gathers[kind, node] = Gather(self._loop, partial(ask, node))
        return found

    # --- one request for many ----------------------------------------------------------------------------------------

    async def _topics(self, _: int, names: Sequence[str]) -> dict[str, TopicInfo]:
        await self.connect()
        asked = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=_NO_TOPIC_ID) for name in names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False, max_version=12)
        try:
            answer = await self._send(request, None)
        except ConnectionLost:
            self._begin_anew()
            raise
        found = {}
        for topic in answer.topics:
            leaders = {p.partition_index: Leader(p.leader_id, p.leader_epoch, p.error_code) for p in topic.partitions}
            topic_id = None if topic.topic_id in (None, _NO_TOPIC_ID) else topic.topic_id
            found[topic.name] = TopicInfo(topic.name, topic_id, topic.error_code, leaders)
        self._met(broker.node_id for broker in answer.brokers)
        return found

    async def _epoch_ends(self, node: int, asks: Sequence[epochs.Ask]) -> dict[epochs.Ask, int | Exception]:
        found: dict[epochs.Ask, int | Exception] = {}
        # A partition may be asked for two epochs.
        for some in _distinct(asks):
            answer = await self._send(epochs.request(some), node)
            found |= epochs.ends(some, answer)
        return found

    async def _offsets(self, which: int, node: int, places: Sequence[tuple[str, int]]) -> dict[Any, int | Exception]:
        kind = ListOffsetsRequest.ListOffsetsTopic
        asked = [
            kind(
                name=topic,
                partitions=[
                    kind.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=which)
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(places).items()
        ]
        # From version 5 on a new leader reports that it lacks its high watermark yet, instead of an old one.
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=asked, timeout_ms=self._timeout_ms, min_version=5
        )
        answer = await self._send(request, node)
        return {
            (topic.name, one.partition_index): BrokerError(one.error_code) if one.error_code else int(one.offset)
            for topic in answer.topics
            for one in topic.partitions
        }

    async def _producers(
        self, node: int, places: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], list[ProducerState] | Exception]:
        asked = [
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(places).items()
        ]
        answer = await self._send(DescribeProducersRequest(topics=asked), node)
        return {
            (topic.name, one.partition_index): BrokerError(one.error_code, one.error_message)
            if one.error_code
            else [
                ProducerState(p.producer_id, p.producer_epoch, p.last_sequence, begin >= 0, p.coordinator_epoch, begin)
                for p in one.active_producers
                for begin in (p.current_txn_start_offset,)
            ]
            for topic in answer.topics
            for one in topic.partitions
        }

    async def _coordinators(self, key_type: int, _: int, keys: Sequence[str]) -> dict[str, int | Exception]:
        many = (self._version(None, FindCoordinatorRequest, _FIND_COORDINATOR) or 0) >= _MANY_COORDINATORS
        found: dict[str, int | Exception] = {}
        for some in [keys] if many else [[key] for key in keys]:
            find = FindCoordinatorRequest(key=some[0], key_type=key_type, coordinator_keys=list(some))
            answer = await self._send(find, None)
            places = {one.key: one for one in answer.coordinators} if answer.coordinators else {some[0]: answer}
            for key, one in places.items():
                found[key] = BrokerError(one.error_code, one.error_message) if one.error_code else int(one.node_id)
        return found

    async def _transaction_codes(self, node: int, ids: Sequence[str]) -> dict[str, int | Exception]:
        answer = await self._send(DescribeTransactionsRequest(transactional_ids=list(ids)), node)
        return {one.transactional_id: int(one.error_code) for one in answer.transaction_states}


def _distinct(asks: Iterable[epochs.Ask]) -> Iterator[list[epochs.Ask]]:
    """Yield all of them, in lists that name each partition once."""
    rest = list(asks)
    while rest:
        first = {(ask.topic, ask.partition): ask for ask in rest}
        yield list(first.values())
        rest = [ask for ask in rest if ask not in first.values()]
