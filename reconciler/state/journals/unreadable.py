"""Skips batches that librdkafka cannot decompress, and reads on behind them.

A batch of three kilobytes may hold a hundred megabytes, which librdkafka refuses (`receive.message.max.bytes`): its
error has the offset of the batch, and it fetches the batch again and again. The last offset is not in the error, so it
is found by trying offsets, once for each batch.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls, clients
from reconciler.state.journals import strangers

SETTINGS = {
    # Where a transaction of others has its marker, or compaction has been, no record stands at the end.
    "enable.partition.eof": True,
    # An unreadable batch is fetched again a few times, until it is known how far it goes.
    "fetch.error.backoff.ms": 50,
}
"""Settings of a consumer that skips batches and reports the end of a partition."""

_CODES = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG})
_POLL_SECONDS = 0.1
_MOST_KNOWN = 1_000
# The offsets behind such batches, by place and error text, as this process has found them.
_KNOWN: dict[tuple[str, int, str], int] = {}


class _Place(NamedTuple):
    """A partition, the offset at which an unreadable batch of it begins, and until when may be tried."""

    topic: str
    partition: int
    begin: int
    deadline: float


def is_unreadable(error: KafkaError) -> bool:
    """Return whether an error means that a batch cannot be decompressed."""
    return error.code() in _CODES


def pass_over(consumer: Consumer, cluster: Cluster, message: Message, seconds: float) -> int:
    """Seek a consumer behind an unreadable batch, which is reported once; return the offset there.

    Args:
        consumer: the partition is assigned to it; made with `SETTINGS`.
        cluster: where it reads.
        message: what it returned, with an error that `is_unreadable`.
        seconds: how long that may take: then it goes on wherever was tried last, and the next call goes further.

    Raises:
        Unreachable: AB310, there is no answer with the end of the partition.
    """
    begin = message.offset() or 0
    place = _Place(message.topic(), message.partition(), begin, time.monotonic() + seconds)
    where, text = f"{cluster.where}, topic {place.topic}, partition {place.partition}", message.error().str()
    strangers.note(where, begin, f"its batch cannot be unpacked ({text})")
    # The text holds the batch's size: a topic that was deleted and created has another batch there.
    known = (where, begin, text)
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
    _, end = clients.watermarks(consumer, place.topic, place.partition, seconds)
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
    """Return whether a fetch from an offset returns the unreadable batch. Raises KafkaException."""
    consumer.seek(TopicPartition(place.topic, place.partition, offset))
    while time.monotonic() < place.deadline:
        for message in consumer.consume(1, _POLL_SECONDS):
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                return False
            if is_unreadable(error):
                return (message.offset() or 0) == place.begin
    return False
