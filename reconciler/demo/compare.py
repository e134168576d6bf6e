"""Compare a topic with its copy, record by record and offset by offset, as any consumer would read them.

Used by the demo and by tests. It reads both logs through confluent-kafka and imports nothing of the replicator.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, TopicPartition

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import LEADER_CHANGES, LOST, in_words

Isolation = Literal["read_uncommitted", "read_committed"]

_TIMEOUT = 20.0
# Of a record in message format v0.
_NO_TIME = -1
_CHUNK = 10_000
# What passes: connections are lost, leaders change, and a client that has just connected anew may lack a partition
# that it was given before.
_PASSING = LOST | LEADER_CHANGES | {KafkaError.BROKER_NOT_AVAILABLE, KafkaError._UNKNOWN_PARTITION}


@dataclass(frozen=True)
class TopicReading:
    """What one partition holds.

    Attributes:
        records: how many.
        first: offset of the first, or -1.
        last: offset of the last, or -1.
        digest: hash over offset, timestamp, key, value and headers of every record, in order.
    """

    records: int
    first: int
    last: int
    digest: str


@dataclass(frozen=True)
class Comparison:
    """A topic and its copy.

    Attributes:
        topic: the original.
        remote: the copy.
        records: how many records the original holds.
        different: the partitions whose readings differ, with both readings.
    """

    topic: str
    remote: str
    records: int
    different: tuple[tuple[int, TopicReading, TopicReading], ...]

    @property
    def is_identical(self) -> bool:
        """Whether every record stands at its own offset, with all that it carries."""
        return not self.different


def compare(
    source: Cluster, topic: str, target: Cluster, remote: str, isolation: Isolation = "read_uncommitted"
) -> Comparison:
    """Read both topics to their ends of now and compare them.

    Args:
        source: holds the original.
        topic: the original.
        target: holds the copy.
        remote: the copy.
        isolation: how the copy is read; of the original the committed records count.

    Raises:
        EnvironmentFault: AB340, one of them cannot be read.
    """
    originals = read(source, topic, "read_committed")
    copies = read(target, remote, isolation)
    nothing = TopicReading(0, -1, -1, "")
    different = tuple(
        (number, originals.get(number, nothing), copies.get(number, nothing))
        for number in sorted(originals.keys() | copies.keys())
        if originals.get(number) != copies.get(number)
    )
    return Comparison(topic, remote, sum(reading.records for reading in originals.values()), different)


def read(cluster: Cluster, topic: str, isolation: Isolation) -> dict[int, TopicReading]:
    """Return what each partition of a topic holds now.

    Raises:
        EnvironmentFault: AB340, it cannot be read.
    """
    where = f"{cluster.where}, topic {topic}"
    consumer = Consumer(
        cluster.librdkafka()
        | {
            "group.id": "anabranch-compare",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 8 * 2**20,
            "log_level": "2",
        }
    )
    try:
        return _read_all(consumer, topic, where)
    except KafkaException as error:
        raise _fault(where, in_words(error.args[0])) from None
    finally:
        consumer.close()


def _read_all(consumer: Consumer, topic: str, where: str) -> dict[int, TopicReading]:
    """Read all partitions to their ends. Raises KafkaException."""
    metadata = clients.settled(partial(clients.one_topic, consumer, _TIMEOUT, topic), _PASSING, _TIMEOUT)
    places = [TopicPartition(topic, number) for number in sorted(metadata.partitions)]
    for place in places:
        ends = partial(consumer.get_watermark_offsets, place, _TIMEOUT)
        place.offset = clients.settled(ends, _PASSING, _TIMEOUT)[0]
    consumer.assign(places)
    numbers = [place.partition for place in places]
    hashes = {number: hashlib.blake2b(digest_size=16) for number in numbers}
    seen = {number: (0, -1, -1) for number in numbers}
    for message in _until_ends(consumer, numbers, where):
        number, offset = message.partition(), message.offset()
        count, first, _ = seen[number]
        seen[number] = (count + 1, first if count else offset, offset)
        # The kind does not count: the source's LogAppendTime is CreateTime in the copy.
        kind, timestamp = message.timestamp()
        fields = (
            offset,
            _NO_TIME if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
            message.key(),
            message.value(),
            message.headers(),
        )
        hashes[number].update(repr(fields).encode())
    return {number: TopicReading(*seen[number], hashes[number].hexdigest()) for number in numbers}


def _until_ends(consumer: Consumer, numbers: Sequence[int], where: str) -> Iterator[Message]:
    """Yield the records of all partitions until each has been read to its end. Raises KafkaException."""
    left = set(numbers)
    deadline = time.monotonic() + _TIMEOUT
    while left:
        messages = consumer.consume(num_messages=_CHUNK, timeout=0.1)
        if messages:
            deadline = time.monotonic() + _TIMEOUT
        elif time.monotonic() > deadline:
            reason = f"no end of partitions {sorted(left)} after {_TIMEOUT:g} s"
            raise _fault(where, reason)
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise _fault(where, in_words(error))


def _fault(where: str, reason: str) -> EnvironmentFault:
    return EnvironmentFault(Problem("AB340", where, f"cannot be read: {reason}", "check the cluster and its ACLs"))
