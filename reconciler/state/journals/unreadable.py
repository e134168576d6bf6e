"""Batches that the client library does not unpack: they are passed over, and what stands behind them is read.

A batch of three kilobytes may hold a hundred megabytes, which the library refuses (`receive.message.max.bytes`): it
tells where the batch begins and fetches it again and again. How far it goes it does not tell, so that is tried, once.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls
from reconciler.state.journals import strangers

SETTINGS = {
    # Where a transaction of others has its marker, or compaction has been, no record stands at the end.
    "enable.partition.eof": True,
    # An unreadable batch is fetched again a few times, until it is known how far it goes.
    "fetch.error.backoff.ms": 50,
}
"""Of a consumer that passes over batches, and always gets to know that it has read to the end."""

_CODES = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG})
_POLL_SECONDS = 0.1
_MOST_KNOWN = 1_000
# Where batches were found to end in this process, by place and what the library said of them.
_KNOWN: dict[tuple[str, int, str], int] = {}


class _Place(NamedTuple):
    """A partition, the offset at which an unreadable batch of it begins, and until when may be tried."""

    topic: str
    partition: int
    begin: int
    deadline: float


def is_unreadable(error: KafkaError) -> bool:
    """Tell whether an error says that a batch cannot be unpacked."""
    return error.code() in _CODES


def pass_over(consumer: Consumer, cluster: Cluster, message: Message, seconds: float) -> int:
    """Have a consumer go on behind an unreadable batch, which is named once; return the offset where it goes on.

    Args:
        consumer: the partition is assigned to it; made with `SETTINGS`.
        cluster: where it reads.
        message: what it returned, with an error that `is_unreadable`.
        seconds: how long that may take: then it goes on wherever was tried last, and the next call goes further.

    Raises:
        Unreachable: AB310, the cluster does not tell where the partition ends.
    """
    begin = message.offset() or 0
    place = _Place(message.topic(), message.partition(), begin, time.monotonic() + seconds)
    where, said = f"{cluster.where}, topic {place.topic}, partition {place.partition}", message.error().str()
    strangers.note(where, begin, f"its batch cannot be unpacked ({said})")
    # What is said has the batch's size in it: in a topic made anew another one stands at its place.
    known = (where, begin, said)
    if known not in _KNOWN:
        with calls.ours(cluster, f"topic {place.topic}"):
            behind = _behind(consumer, place, seconds)
        if time.monotonic() < place.deadline and len(_KNOWN) < _MOST_KNOWN:
            _KNOWN[known] = behind
    else:
        behind = _KNOWN[known]
    with calls.ours(cluster, f"topic {place.topic}"):
        consumer.seek(TopicPartition(place.topic, place.partition, behind))
    return behind


def _behind(consumer: Consumer, place: _Place, seconds: float) -> int:
    """Return the offset behind the batch. Raises KafkaException."""
    _, end = consumer.get_watermark_offsets(TopicPartition(place.topic, place.partition), timeout=seconds)
    # It is known to reach up to `within`, and not up to `behind`.
    within, step = place.begin, 1
    while (behind := min(within + step, end)) < end and _is_within(consumer, place, behind):
        within, step = behind, 2 * step
    while behind - within > 1:
        middle = (within + behind) // 2
        if _is_within(consumer, place, middle):
            within = middle
        else:
            behind = middle
    return int(behind)


def _is_within(consumer: Consumer, place: _Place, offset: int) -> bool:
    """Tell whether the unreadable batch is fetched for an offset. Raises KafkaException."""
    consumer.seek(TopicPartition(place.topic, place.partition, offset))
    while time.monotonic() < place.deadline:
        for message in consumer.consume(1, _POLL_SECONDS):
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                return False
            if is_unreadable(error):
                return (message.offset() or 0) == place.begin
    return False
