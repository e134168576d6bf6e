"""Typed requests to one cluster over kafka-python's connections.

`task` makes a `Loop` and four `Wire`s, and everybody under it sends through them. Each method is one request and one
answer; retries, positions and meaning belong to the callers.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer.produce import ProduceRequest
from kafka.protocol.producer.transaction import InitProducerIdRequest

from reconciler.model.cluster import Cluster
from reconciler.replicator.wire.connection import RawProduce
from reconciler.replicator.wire.loop import Loop
from reconciler.replicator.wire.values import (
    ConnectionLost,
    ErrorCode,
    FetchAnswer,
    FetchAsk,
    Leader,
    ProduceAnswer,
    ProduceAsk,
    ProducerState,
    TopicInfo,
)

logging.getLogger("kafka").setLevel(logging.CRITICAL)

EARLIEST = -2
LATEST = -1
UNSUPPORTED_VERSION = 35
_COORDINATOR_TRANSACTION = 1
_ACKS_ALL = -1
_NO_TOPIC_ID = uuid.UUID(int=0)
_RAW_PRODUCE_MIN = 9
# From this version on a produce request names topics by id, so a topic made anew under the same name is an error.
_FIRST_WITH_IDS = 13


class Wire:
    """Requests to one cluster.

    Args:
        loop: the task's loop.
        cluster: whom to talk to.
        client_id: what brokers' logs and quotas see.
        timeout: seconds until a request without an answer closes its connection.
        may_send: asked right before each write to a socket; when it says no, the connection breaks instead.
    """

    def __init__(
        self,
        loop: Loop,
        cluster: Cluster,
        client_id: str,
        timeout: float,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        self.cluster = cluster
        self._loop = loop
        self._timeout_ms = int(timeout * 1000)
        self._manager = loop.manager(
            cluster.kafka_python()
            | {
                "client_id": client_id,
                "request_timeout_ms": self._timeout_ms,
                "receive_message_max_bytes": 2**31 - 1,
                # The windows are ours; the manager only must not refuse.
                "max_in_flight_requests_per_connection": 1_000,
                "reconnect_backoff_max_ms": 1_000,
                # A host that says nothing must not hold a request up for longer than a request may take.
                "socket_connection_setup_timeout_ms": self._timeout_ms,
                "socket_connection_setup_timeout_max_ms": self._timeout_ms,
            }
        )
        self._manager.cluster.set_topics([])
        self._manager.may_send = may_send

    async def connect(self) -> None:
        """Reach any broker of the cluster.

        Raises:
            ConnectionLost: none answered in time, or authentication failed.
        """
        if not self._manager.bootstrapped:
            self._manager.failure = None
            try:
                await self._answer(self._manager.bootstrap_async(timeout_ms=self._timeout_ms))
            except ConnectionLost:
                if self._manager.failure is None:
                    raise
                raise ConnectionLost(_in_words(self._manager.failure)) from None

    def close(self) -> None:
        """Close all connections."""
        self._manager.close()

    def drop(self, why: str) -> None:
        """Break all connections at once, with whatever is still to be sent over them; later requests make new ones."""
        self._manager.drop(kafka_errors.KafkaConnectionError(why))

    async def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return what the cluster says of the topics `names`, missing ones with their error code.

        Raises:
            ConnectionLost: no answer.
        """
        await self.connect()
        asked = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=_NO_TOPIC_ID) for name in names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False, max_version=12)
        try:
            answer = await self._send(request, None)
        except ConnectionLost:
            # All brokers may have moved: the next attempt begins at the declared addresses.
            self._manager.forget_bootstrap()
            raise
        found = {}
        for topic in answer.topics:
            leaders = {p.partition_index: Leader(p.leader_id, p.leader_epoch, p.error_code) for p in topic.partitions}
            topic_id = None if topic.topic_id in (None, _NO_TOPIC_ID) else topic.topic_id
            found[topic.name] = TopicInfo(topic.name, topic_id, topic.error_code, leaders)
        known = {broker.node_id for broker in self._manager.cluster.brokers()}
        if {broker.node_id for broker in answer.brokers} - known:
            self._manager.cluster.request_update()
        return found

    async def fetch(
        self, node: int, asks: Sequence[FetchAsk], wait_ms: int, max_bytes: int, committed: bool
    ) -> list[FetchAnswer]:
        """Fetch from one broker; it answers at once with data, or empty after `wait_ms`.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: the whole request was refused.
        """
        names = {ask.topic_id: ask.topic for ask in asks}
        by_id = None not in names
        topics: dict[tuple[str, uuid.UUID | None], Any] = {}
        for ask in asks:
            key = (ask.topic, ask.topic_id)
            topic = topics.get(key)
            if topic is None:
                topic = FetchRequest.FetchTopic(topic=ask.topic, topic_id=ask.topic_id or _NO_TOPIC_ID, partitions=[])
                topics[key] = topic
            topic.partitions.append(
                FetchRequest.FetchTopic.FetchPartition(
                    partition=ask.partition,
                    current_leader_epoch=ask.leader_epoch,
                    fetch_offset=ask.offset,
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=ask.max_bytes,
                )
            )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=int(committed),
            session_id=0,
            session_epoch=-1,
            topics=list(topics.values()),
            forgotten_topics_data=[],
            rack_id="",
            max_version=17 if by_id else 12,
        )
        answer = await self._send(request, node)
        if answer.error_code:
            raise ErrorCode(answer.error_code)
        return [
            FetchAnswer(
                topic.topic or names[topic.topic_id],
                p.partition_index,
                p.error_code,
                p.high_watermark,
                p.last_stable_offset,
                p.log_start_offset,
                p.records or b"",
                tuple((one.producer_id, one.first_offset) for one in p.aborted_transactions or ()),
            )
            for topic in answer.responses
            for p in topic.partitions
        ]

    def produce(
        self, node: int, asks: Sequence[ProduceAsk], lost: Callable[[ConnectionLost], None]
    ) -> Awaitable[list[ProduceAnswer]]:
        """Write one batch to each of some partitions that one broker leads, and wait for all replicas.

        The request leaves before this returns, so requests leave in the order of the calls.

        Args:
            node: the broker.
            asks: at most one batch for each partition.
            lost: called at once when no answer will come: while the connection falls, and before anybody could send
                the next batch of a partition over a new one. The batches may or may not be in the log.

        Returns:
            What to await for the answers; awaiting it raises ConnectionLost, after `lost`, when none comes.
        """
        pending = self._begin_produce(node, asks)
        pending.add_errback(lambda error: lost(ConnectionLost(_in_words(error))))
        return self._produced(pending, {ask.topic_id: ask.topic for ask in asks})

    def throttled(self, node: int) -> float:
        """Return for how many seconds the broker wants to be left alone (a quota); 0 when it does not."""
        return self._manager.throttled(node)

    async def rest(self, node: int) -> None:
        """Wait until the broker does not want to be left alone any more."""
        while pause := self._manager.throttled(node):
            await self._loop.sleep(pause)

    def _begin_produce(self, node: int, asks: Sequence[ProduceAsk]) -> Any:
        known = self._manager.broker_version_data
        if known is None:
            return Future().failure(kafka_errors.KafkaConnectionError("not connected yet"))
        by_id = all(ask.topic_id is not None for ask in asks)
        newest = known.api_version(ProduceRequest, max_version=_FIRST_WITH_IDS if by_id else _FIRST_WITH_IDS - 1)
        if newest >= _RAW_PRODUCE_MIN:
            rows = [(ask.topic, ask.topic_id, ask.partition, ask.batch) for ask in asks]
            request = RawProduce(newest, self._timeout_ms, rows)
        else:
            request = _classic_produce(asks, self._timeout_ms)
        try:
            return self._manager.send(request, node, request_timeout_ms=self._timeout_ms)
        except kafka_errors.KafkaError as error:
            return Future().failure(error)

    async def _produced(self, pending: Any, ids: dict[uuid.UUID | None, str]) -> list[ProduceAnswer]:
        answer = await self._answer(pending)
        return [
            ProduceAnswer(topic.name or ids[topic.topic_id], p.index, p.error_code, p.base_offset, p.error_message)
            for topic in answer.responses
            for p in topic.partition_responses
        ]

    async def log_end(self, node: int, topic: str, partition: int, epoch: int) -> int | None:
        """Return the log end at the leader, replicated or not; None while the leader cannot say.

        `OffsetForLeaderEpoch` with the current epoch is the one public request that answers with the log end and not
        with the high watermark.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: the leader refuses, for example as its epoch is another.
        """
        place = OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=epoch, leader_epoch=epoch
        )
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[place])
        answer = await self._send(OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked]), node)
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise ErrorCode(found.error_code)
        return None if found.end_offset < 0 else int(found.end_offset)

    async def offset(self, node: int, topic: str, partition: int, which: int) -> int:
        """Return the log start (`EARLIEST`) or the high watermark (`LATEST`) at the leader.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: the leader refuses.
        """
        place = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=which
        )
        asked = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[place])
        # From version 5 on a new leader says that it does not know its high watermark yet, instead of an old one.
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=[asked], timeout_ms=self._timeout_ms, min_version=5
        )
        answer = await self._send(request, node)
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise ErrorCode(found.error_code)
        return int(found.offset)

    async def producers(self, node: int, topic: str, partition: int) -> list[ProducerState]:
        """Return the producers that the leader of a partition remembers.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: the leader refuses.
        """
        asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[partition])
        answer = await self._send(DescribeProducersRequest(topics=[asked]), node)
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise ErrorCode(found.error_code, found.error_message)
        return [
            ProducerState(
                p.producer_id, p.producer_epoch, p.last_sequence, p.current_txn_start_offset >= 0, p.coordinator_epoch
            )
            for p in found.active_producers
        ]

    async def producer_id(self, transactional_id: str) -> int:
        """Return the producer id that belongs to `transactional_id`.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: refused, or the coordinator is not ready.
        """
        node = await self.coordinator(transactional_id)
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
            max_version=4,
        )
        answer = await self._send(request, node)
        if answer.error_code:
            raise ErrorCode(answer.error_code)
        return int(answer.producer_id)

    async def coordinator(self, transactional_id: str) -> int:
        """Return the node that coordinates the transactions of `transactional_id`.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: refused, or the coordinator is not ready.
        """
        await self.connect()
        find = FindCoordinatorRequest(
            key=transactional_id, key_type=_COORDINATOR_TRANSACTION, coordinator_keys=[transactional_id]
        )
        found = await self._send(find, None)
        place = found.coordinators[0] if found.coordinators else found
        if place.error_code:
            raise ErrorCode(place.error_code, place.error_message)
        return int(place.node_id)

    async def ask(self, request: Any, node: int) -> Any:
        """Send a request of the library to one broker, for the other modules of this package.

        Raises:
            ConnectionLost: no answer.
            ErrorCode: UNSUPPORTED_VERSION, the broker does not know such requests.
        """
        return await self._send(request, node)

    async def _send(self, request: Any, node: int | None, patience: float = 0.0) -> Any:
        """Send a request; the broker may take `patience` seconds longer than others for its answer."""
        if node is not None:
            await self.rest(node)
        timeout_ms = self._timeout_ms + int(patience * 1000)
        try:
            pending = self._manager.send(request, node, request_timeout_ms=timeout_ms)
        except kafka_errors.KafkaError as error:
            raise ConnectionLost(_in_words(error)) from None
        return await self._answer(pending)

    async def _answer(self, pending: Any) -> Any:
        try:
            return await pending
        except kafka_errors.IncompatibleBrokerVersion as error:
            raise ErrorCode(UNSUPPORTED_VERSION, str(error)) from None
        except Exception as error:
            # The library hands on whatever broke the connection, its own errors and others.
            raise ConnectionLost(_in_words(error)) from None


def _in_words(error: BaseException) -> str:
    text = str(error)
    return text if text else type(error).__name__


def _classic_produce(asks: Sequence[ProduceAsk], timeout_ms: int) -> Any:
    topics: dict[str, Any] = {}
    for ask in asks:
        data = ProduceRequest.TopicProduceData.PartitionProduceData(index=ask.partition, records=ask.batch)
        if ask.topic not in topics:
            topics[ask.topic] = ProduceRequest.TopicProduceData(name=ask.topic, partition_data=[])
        topics[ask.topic].partition_data.append(data)
    return ProduceRequest(
        transactional_id=None,
        acks=_ACKS_ALL,
        timeout_ms=timeout_ms,
        topic_data=list(topics.values()),
        max_version=_RAW_PRODUCE_MIN - 1,
    )
