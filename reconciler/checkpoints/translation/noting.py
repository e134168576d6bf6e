"""Notes positions for connectors of MirrorMaker 2: in the topic in which Kafka Connect keeps offsets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from reconciler.checkpoints.translation.ended import read_key
from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.base.shape import fits
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log
from reconciler.state.confluent import calls, clients, replicas
from reconciler.state.confluent.faults import unreachable

_SECONDS = 30.0
_WHEN_FULL = 0.5
# What Kafka Connect makes the topic with: `offset.storage.partitions`, and compaction, without which it refuses it.
_PARTITIONS = 25
_CONFIG = {"cleanup.policy": "compact"}
_SETTINGS = {
    # The partitioner of Java's producer: a key has to stand where Connect's own would be.
    "partitioner": "murmur2_random",
    "enable.idempotence": True,
    "message.timeout.ms": int(_SECONDS * 1_000),
}


def note_for_connect(
    cluster: Cluster, topic: str, connector: str, source: str, positions: Mapping[Log, int | None]
) -> None:
    """Note positions of a connector, and wait until all are stored; the topic is made where it is missing.

    Source: `MirrorUtils.wrapPartition` and `wrapOffset`; what is noted is the last offset that was copied, and Connect
    keys it by the connector's name and the partition, as JSON.

    Args:
        cluster: the target, where Connect keeps its offsets.
        topic: in which.
        connector: its name.
        source: alias of the source, as MirrorMaker 2 is configured with it.
        positions: by original, the offset of the next record; None where nothing was copied.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311 or AB313, it refuses.
    """
    keys = _keys(cluster, topic, _ensured(cluster, topic), connector, source)
    failed: list[KafkaError] = []

    def hear(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    reports = clients.Reports()
    producer = clients.make(Producer, cluster, _SETTINGS, reports)
    with calls.ours(cluster, f"topic {topic}", "WRITE", reports):
        for log, offset in positions.items():
            known = keys.get(log)
            if offset is not None and offset > 0:
                value = _json({"offset": offset - 1})
                send(producer, topic, known or key_of(connector, source, log), value, hear)
            elif known is not None:
                # What stands there is none of what was copied since.
                send(producer, topic, known, None, hear)
        left = producer.flush(_SECONDS)
    if failed:
        raise calls.failure(cluster, failed[0], f"topic {topic}", "WRITE", reports)
    if left:
        raise unreachable(cluster, f"{left} positions were not stored in {topic} within {_SECONDS:g} s")


def send(
    producer: Producer,
    topic: str,
    key: bytes,
    value: bytes | None,
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    """Hand a record to a producer, and wait while its queue is full: it holds 100,000 at most.

    Raises KafkaException.
    """
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=on_delivery)
        except BufferError:
            producer.poll(_WHEN_FULL)
        else:
            return


def key_of(connector: str, source: str, log: Log) -> bytes:
    """Return the key of a position as Connect's converter writes it: the order of fields is part of it."""
    return _json([connector, {"cluster": source, "partition": log[1], "topic": log[0]}])


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _ensured(cluster: Cluster, topic: str) -> int:
    """Make the topic where it is missing; return how many partitions it has."""
    admin, seen = clients.metadata(cluster, _SECONDS)
    if topic in seen.topics:
        return len(seen.topics[topic].partitions)

    def create(count: int) -> None:
        """Raises KafkaException."""
        made = admin.create_topics([NewTopic(topic, _PARTITIONS, count, config=_CONFIG)], request_timeout=_SECONDS)
        made[topic].result()

    with calls.ours(cluster, f"topic {topic}", "CREATE"):
        replicas.make(seen, create, cluster.state_replication_factor)
    return 0


def _keys(cluster: Cluster, topic: str, partitions: int, connector: str, source: str) -> dict[Log, bytes]:
    """Return the keys under which positions are noted already, byte by byte as they are."""
    reader = RecordReader(cluster, committed=True, seconds=_SECONDS)
    found: dict[Log, bytes] = {}
    for number in range(partitions):
        for message in reader.messages(topic, number, 0):
            key = message.key()
            known = fits(read_key, key) if message.error() is None and key is not None else None
            if known is not None and key is not None and (known[0], known[1]["cluster"]) == (connector, source):
                found[known[1]["topic"], known[1]["partition"]] = key
    return found
