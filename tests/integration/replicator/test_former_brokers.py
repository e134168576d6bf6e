"""Clusters of former versions of Kafka as sources and targets: every kind of record, groups, and `verify`."""

from __future__ import annotations

import json
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.demo.compare import Isolation, compare
from reconciler.embedded.jars import KAFKA_VERSION
from reconciler.model.declared.cluster import Cluster
from reconciler.observe.registered import takes_ranges
from tests.support.clusters.former import WITH_ZOOKEEPER, former_cluster
from tests.support.commands.command import anabranch
from tests.support.replicator.replicating import Replicator
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long]

FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
replication:
  - from: east
    to: west
    topics: {{include: ["orders.*"]}}
    groups: {{include: [readers], sync-offsets: true, interval: 1s}}
"""
SECONDS = 300.0
PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (WITH_ZOOKEEPER, KAFKA_VERSION),
        ("3.9.1", KAFKA_VERSION),
        (KAFKA_VERSION, "3.9.1"),
        (WITH_ZOOKEEPER, "3.9.1"),
        ("4.3.1", KAFKA_VERSION),
        (KAFKA_VERSION, "4.3.1"),
    ],
)
def test_every_kind_of_record_is_copied_and_groups_are_taken_along(source: str, target: str, tmp_path: Path) -> None:
    with ExitStack() as ended:
        folders = [tmp_path / alias for alias in ("east", "west")]
        for folder in folders:
            folder.mkdir()
        east, west = (
            ended.enter_context(former_cluster(alias, version, folder))
            for alias, version, folder in zip(("east", "west"), (source, target), folders, strict=True)
        )
        for cluster, version in ((east, source), (west, target)):
            assert takes_ranges(cluster) is (version == KAFKA_VERSION), "ranges of addresses in ACLs came with 4.4"
        written = _write(east)
        file = tmp_path / "anabranch.yaml"
        name = f"former-{uuid.uuid4().hex[:6]}"
        file.write_text(FILE.format(name=name, east=east.bootstrap[0], west=west.bootstrap[0]))
        applied = anabranch("apply", file, "--yes")
        assert applied.code == 0, applied
        running = Replicator(file, tmp_path)
        try:
            eventually("all is copied", lambda: _lag(file) == 0, detail=running.said)
            written += _write(east, again=True)
            eventually("what came later is, too", lambda: _lag(file) == 0, detail=running.said)
            wanted = {("east.orders", number): 7 + number for number in range(PARTITIONS)}
            eventually("the group stands there", lambda: _offsets(west) == wanted, detail=running.said)
            running.terminate()
            assert running.wait(SECONDS) == 0, running.said()
        finally:
            running.end()
        isolations: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
        for topic in ("orders", "orders-transactions"):
            for isolation in isolations:
                found = compare(east, topic, west, f"east.{topic}", isolation)
                assert found.is_identical, found
                assert found.records > 0
        assert written == 2 * PARTITIONS * len(CODECS) * 40
        verified = anabranch("verify", file)
        assert verified.code == 0, verified


def _write(cluster: Cluster, again: bool = False) -> int:
    """Write records in every codec and in transactions, some of which are aborted, and return how many are plain."""
    settings = {"bootstrap.servers": cluster.bootstrap[0], "log_level": "2", "linger.ms": 20}
    admin = AdminClient(settings)
    if not again:
        topics = [NewTopic("orders", PARTITIONS, 1), NewTopic("orders-transactions", 1, 1)]
        for future in admin.create_topics(topics).values():
            future.result(SECONDS)
    count = 0
    for codec in CODECS:
        producer = Producer(settings | {"compression.type": codec})
        for partition in range(PARTITIONS):
            for number in range(40):
                key = b"key-%d" % number
                headers = [("codec", codec.encode()), ("again", b"")]
                producer.produce("orders", b"value " * 20, key, partition, headers=headers)
                count += 1
        assert producer.flush(SECONDS) == 0
    busy = Producer(settings | {"transactional.id": "former"})
    busy.init_transactions(SECONDS)
    for ends_well in (True, False, True, False):
        busy.begin_transaction()
        for number in range(5):
            busy.produce("orders-transactions", b"value-%d" % number)
        assert busy.flush(SECONDS) == 0
        (busy.commit_transaction if ends_well else busy.abort_transaction)(SECONDS)
    group = Consumer({"bootstrap.servers": cluster.bootstrap[0], "group.id": "readers", "log_level": "2"})
    try:
        group.commit(offsets=[TopicPartition("orders", one, 7 + one) for one in range(PARTITIONS)], asynchronous=False)
    finally:
        group.close()
    return count


def _lag(file: Path) -> int | None:
    """Return how many records are not copied yet; None while that is not known."""
    (flow,) = json.loads(anabranch("status", file, "--format", "json").stdout)["flows"]
    return flow["lag"] if flow["state"] == "running" and len(flow["partitions"]) == PARTITIONS + 1 else None


def _offsets(cluster: Cluster) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap[0], "log_level": "2"})
    (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("readers")]).values()
    return {(one.topic, one.partition): one.offset for one in found.result(SECONDS).topic_partitions or ()}
