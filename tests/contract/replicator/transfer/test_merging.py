"""Small source batches arrive in few large ones, and every record at its own offset all the same."""

from __future__ import annotations

import time

from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.records.batch import Batch
from reconciler.records.split import split
from reconciler.wire import FetchAsk, Wire
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, Running, assert_counted, copy, identical, spec_of
from tests.support.wire.wires import ask

RECORDS, PARTITIONS = 2_000, 2
SECONDS = 300.0
HEADERS = [("trace", b"abc"), ("empty", b""), ("trace", b"again"), ("none", None)]


def fill_singly(cluster: EmbeddedCluster, topic: str, records: int, first: int = 0) -> None:
    """Produce records of many shapes, each in a batch of its own."""
    producer = Producer(cluster.client_config() | {"batch.num.messages": 1, "log_level": "2"})
    now = int(time.time() * 1_000)
    for number in range(first, first + records):
        producer.produce(
            topic,
            key=None if number % 11 == 0 else b"key-%d" % number,
            value=None if number % 97 == 0 else b"%d:" % number + b"body" * (number % 300),
            headers=HEADERS if number % 3 == 0 else None,
            partition=number % PARTITIONS,
            # Out of order, and far apart.
            timestamp=now - (number % 7) * 86_400_000,
        )
    assert producer.flush(SECONDS) == 0


def batches(cluster: Cluster, topic: str, partition: int) -> list[Batch]:
    """Return all batches of a partition."""

    async def question(wire: Wire) -> list[Batch]:
        info = (await wire.topics([topic]))[topic]
        leader = info.partitions[partition]
        found: list[Batch] = []
        while True:
            offset = found[-1].next_offset if found else 0
            asked = FetchAsk(topic, info.topic_id, partition, offset, leader.epoch, 2**20)
            (answer,) = await wire.fetch(leader.node, [asked], 100, 2**20, committed=False)
            answer.raise_error()
            if not answer.records:
                return found
            found += split(answer.records)

    return ask(cluster, question)


def test_small_batches_travel_together(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    source, target = declared("east", source_cluster), declared("west", target_cluster)
    create(source_cluster, topic_name, PARTITIONS)
    create(target_cluster, f"east.{topic_name}", PARTITIONS, REMOTE)
    fill_singly(source_cluster, topic_name, RECORDS)
    spec = spec_of(source, target, topic_name)
    with Running(spec) as running:
        running.wait()
        # And while it runs, with what is in flight.
        fill_singly(source_cluster, topic_name, RECORDS, RECORDS)
        running.settled_again()
    assert identical(spec, topic_name) == 2 * RECORDS
    for partition in range(PARTITIONS):
        assert len(batches(source, topic_name, partition)) == 2 * RECORDS // PARTITIONS
        copied = batches(target, f"east.{topic_name}", partition)
        assert copied[0].record_count > 1
        assert len(copied) < 2 * RECORDS // PARTITIONS // 2


def test_a_target_with_small_batches_gets_the_sources_own(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    source, target = declared("east", source_cluster), declared("west", target_cluster)
    create(source_cluster, topic_name, PARTITIONS)
    create(target_cluster, f"east.{topic_name}", PARTITIONS, REMOTE | {"max.message.bytes": "2000"})
    fill_singly(source_cluster, topic_name, RECORDS)
    spec = spec_of(source, target, topic_name)
    copied = copy(spec)
    assert_counted(copied.records, RECORDS, copied.status)
    assert identical(spec, topic_name) == RECORDS
