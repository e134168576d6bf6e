"""A real MirrorMaker 2 writes checkpoints, heartbeats and copies; our client reads them as Kafka's own does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from reconciler.client import Checkpoint, MirrorClient, translate_offsets
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault
from tests.support.clusters.kafka import create, delete_records
from tests.support.clusters.mirror_java import java_answers, our_answers
from tests.support.clusters.mirrormaker import mirrormaker
from tests.support.waiting import eventually

# Records that are deleted before MirrorMaker comes, so that offsets differ on both sides.
BEFORE, RECORDS = 30, 100


def produce(cluster: EmbeddedCluster, topic: str, records: int) -> None:
    producer = Producer(cluster.client_config() | {"log_level": "2"})
    for number in range(2 * records):
        producer.produce(topic, f"value {number}", partition=number % 2)
    assert producer.flush(30) == 0


def commit(cluster: EmbeddedCluster, group: str, *offsets: TopicPartition) -> None:
    consumer = Consumer(cluster.client_config() | {"group.id": group, "log_level": "2"})
    consumer.commit(offsets=list(offsets), asynchronous=False)
    consumer.close()


@pytest.mark.long
def test_what_it_writes_is_read_as_kafkas_own_client_reads_it(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    began = time.time()
    east, west = f"east-{topic_name[-8:]}", f"west-{topic_name[-8:]}"
    billing, audit = f"billing-{topic_name}", f"audit-{topic_name}"
    remote = f"{east}.{topic_name}"
    create(source_cluster, topic_name, 2)
    produce(source_cluster, topic_name, BEFORE)
    delete_records(source_cluster, topic_name, BEFORE)
    client = MirrorClient(target_cluster.client_config())
    expected = [
        # The library that commits it puts a NUL behind it.
        Checkpoint(billing, remote, 0, BEFORE + RECORDS, RECORDS, "at its end\0"),
        Checkpoint(billing, remote, 1, BEFORE + RECORDS, BEFORE + RECORDS, ""),
    ]

    def are_checkpoints_there() -> bool:
        try:
            return client.checkpoints(east, billing) == expected
        except EnvironmentFault as missing:
            assert missing.problems[0].code == "AB640"
            return False

    with mirrormaker(source_cluster, target_cluster, (east, west), topic_name, tmp_path) as log:
        eventually(
            "the copy is there", lambda: client.remote_topics(east), lambda found: remote in found, detail=log.read_text
        )
        produce(source_cluster, topic_name, RECORDS)
        commit(
            source_cluster,
            billing,
            TopicPartition(topic_name, 0, BEFORE + RECORDS, metadata="at its end"),
            TopicPartition(topic_name, 1, BEFORE + RECORDS),
        )
        commit(source_cluster, audit, TopicPartition(topic_name, 0, BEFORE + RECORDS // 2))
        eventually("checkpoints are there", are_checkpoints_there, detail=log.read_text)
        eventually("the source is known", client.upstream_clusters, lambda found: east in found, detail=log.read_text)
        eventually(
            "heartbeats of the source are there",
            client.heartbeats,
            lambda found: any(one.source == east for one in found),
            detail=log.read_text,
        )
    assert our_answers(client, east, audit) == java_answers(target_cluster, east, audit)
    ours = our_answers(client, east, billing)
    assert ours["translateOffsets"] == [[remote, 0, RECORDS, "at its end"], [remote, 1, BEFORE + RECORDS, ""]]
    found = translate_offsets(target_cluster.client_config(), east, billing)
    assert [(one.topic, one.partition, one.offset) for one in found] == [
        (remote, 0, RECORDS),
        (remote, 1, BEFORE + RECORDS),
    ]
    assert f"{east}.checkpoints.internal" in ours["checkpointTopics"]
    assert {"heartbeats", f"{east}.heartbeats"} <= set(ours["heartbeatTopics"])
    assert ours["replicationHops"][east] == 1
    assert {remote, f"{east}.heartbeats"} <= set(ours["remoteTopicsOfSource"])
    (beat,) = (one for one in client.heartbeats() if one.source == east)
    assert beat.target == west
    assert began <= beat.timestamp / 1000 <= time.time()
