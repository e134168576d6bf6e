"""Fetch and produce as kafka-python encodes them, for brokers too old for `fetching` and `producing`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.producer.produce import ProduceRequest

from reconciler.wire.protocol import fetching, producing
from reconciler.wire.protocol.fetching import FetchBounds, Fetched
from reconciler.wire.protocol.producing import Produced
from reconciler.wire.protocol.values import FetchAnswer, FetchAsk, ProduceAnswer, ProduceAsk, RecordError

_ACKS_ALL = -1
_NOBODY = -1
_NO_TOPIC_ID = uuid.UUID(int=0)


def fetch_request(bounds: FetchBounds, asks: Sequence[FetchAsk]) -> Any:
    """Return a fetch request without a session."""
    topics: dict[str, Any] = {}
    for ask in asks:
        if ask.topic not in topics:
            topics[ask.topic] = FetchRequest.FetchTopic(topic=ask.topic, topic_id=_NO_TOPIC_ID, partitions=[])
        topics[ask.topic].partitions.append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=ask.partition,
                current_leader_epoch=ask.leader_epoch,
                fetch_offset=ask.offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=ask.max_bytes,
            )
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=bounds.wait_ms,
        min_bytes=1,
        max_bytes=bounds.max_bytes,
        isolation_level=int(bounds.committed),
        session_id=0,
        session_epoch=-1,
        topics=list(topics.values()),
        forgotten_topics_data=[],
        rack_id=bounds.rack,
        max_version=fetching.FIRST_RAW - 1,
    )


def fetched(answer: Any) -> Fetched:
    """Return what the library made of a fetch answer."""
    answers = [
        FetchAnswer(
            topic.topic,
            p.partition_index,
            p.error_code,
            p.high_watermark,
            p.last_stable_offset,
            p.log_start_offset,
            p.records or b"",
            tuple((one.producer_id, one.first_offset) for one in p.aborted_transactions or ()),
            _NOBODY if p.preferred_read_replica is None else p.preferred_read_replica,
        )
        for topic in answer.responses
        for p in topic.partitions
    ]
    return Fetched(answer.throttle_time_ms, answer.error_code or 0, 0, answers)


def produce_request(asks: Sequence[ProduceAsk], timeout_ms: int, transactional_id: str | None = None) -> Any:
    """Return a produce request."""
    topics: dict[str, Any] = {}
    for ask in asks:
        data = ProduceRequest.TopicProduceData.PartitionProduceData(index=ask.partition, records=ask.head + ask.batch)
        if ask.topic not in topics:
            topics[ask.topic] = ProduceRequest.TopicProduceData(name=ask.topic, partition_data=[])
        topics[ask.topic].partition_data.append(data)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=_ACKS_ALL,
        timeout_ms=timeout_ms,
        topic_data=list(topics.values()),
        max_version=producing.FIRST_RAW - 1,
    )


def produced(answer: Any) -> Produced:
    """Return what the library made of a produce answer."""
    answers = [
        ProduceAnswer(
            topic.name,
            p.index,
            p.error_code,
            p.base_offset,
            p.error_message,
            tuple(RecordError(one.batch_index, one.batch_index_error_message) for one in p.record_errors or ()),
        )
        for topic in answer.responses
        for p in topic.partition_responses
    ]
    return Produced(answer.throttle_time_ms or 0, answers)
