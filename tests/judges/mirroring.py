"""One MirrorMaker 2 configuration between two clusters, run as it is by `anabranch mirror-maker2`.

What Kafka's own integration tests configure: topics `test-topic-…` both ways, all groups `consumer-group-…`, each
interval one second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import eq
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared, names
from tests.support.replicator.killed import bounds
from tests.support.replicator.replicating import Replicator
from tests.support.replicator.translated import Content, contents
from tests.support.waiting import eventually

T = TypeVar("T")

PRIMARY, BACKUP = "primary", "backup"
PARTITIONS, EACH = 10, 10
SECONDS = 300.0
_BASE = {
    "clusters": f"{PRIMARY}, {BACKUP}",
    "topics": "test-topic-.*, primary.test-topic-.*, backup.test-topic-.*",
    "groups": "consumer-group-.*",
    "sync.topic.acls.enabled": "false",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "offset.flush.interval.ms": "5000",
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "primary->backup.enabled": "true",
}


class MirrorMaker(Replicator):
    """A process of `mirror-maker2`, in place of `replicate`."""

    def __init__(self, properties: Path, folder: Path, name: str) -> None:
        self._begin(name, folder, "mirror-maker2", str(properties), "--name", name)


class Mirrors:
    """Two clusters, and what mirrors between them.

    Args:
        primary: the one cluster.
        backup: the other one.
        folder: for files.
        name: of the topology.
        settings: of `mm2.properties` beside those that all tests have.
    """

    def __init__(
        self, primary: EmbeddedCluster, backup: EmbeddedCluster, folder: Path, name: str, settings: Mapping[str, str]
    ) -> None:
        self.primary, self.backup = primary, backup
        self._folder, self._name = folder, name
        brokers = {f"{PRIMARY}.bootstrap.servers": primary.bootstrap, f"{BACKUP}.bootstrap.servers": backup.bootstrap}
        self.properties = folder / "mm2.properties"
        lines = [f"{key} = {value}\n" for key, value in {**_BASE, **brokers, **settings}.items()]
        self.properties.write_text("".join(lines), encoding="utf-8")

    @contextmanager
    def running(self, *topics: str) -> Iterator[MirrorMaker]:
        """Run it until the block ends; it has begun when topics are there at the backup."""
        process = MirrorMaker(self.properties, self._folder, self._name)
        try:
            for topic in topics:
                self.created(self.backup, topic, process)
            yield process
        finally:
            if process.is_running:
                process.terminate()
                process.wait(SECONDS)
            process.end()

    @staticmethod
    def created(cluster: EmbeddedCluster, topic: str, process: MirrorMaker) -> None:
        """Wait until a topic is there."""
        awaited(f"{topic} is made", lambda: names(cluster), lambda found: topic in found, process)

    def copied(self, process: MirrorMaker, topic: str, source: str = PRIMARY) -> None:
        """Wait until a copy has all that its original has: each record once, in order, in its partition."""
        here, there = (self.primary, self.backup) if source == PRIMARY else (self.backup, self.primary)
        for number in range(PARTITIONS):
            original = read(here, topic, number)
            look = partial(read, there, f"{source}.{topic}", number, len(original))
            awaited(f"{source}.{topic}/{number} is copied", look, partial(eq, original), process)


def awaited(what: str, look: Callable[[], T], until: Callable[[T], object], process: MirrorMaker) -> T:
    """Wait for a state; a process that has ended meanwhile never brings it about."""

    def looked() -> T:
        assert process.is_running, process.said()[-4_000:]
        return look()

    return eventually(what, looked, until, seconds=SECONDS, detail=process.said)


def read(cluster: EmbeddedCluster, topic: str, partition: int = 0, least: int = 0) -> list[Content]:
    """Return what a partition holds, without offsets."""
    return contents(declared("any", cluster), topic, partition, least=least)


def produce(cluster: EmbeddedCluster, topic: str, partitions: int = PARTITIONS, each: int = EACH) -> None:
    """Write records to the first partitions of a topic; their values differ."""
    producer = Producer(cluster.client_config() | {"linger.ms": 5, "log_level": "2"})
    for number in range(each * partitions):
        value = f"message-{number}-{time.monotonic_ns()}"
        producer.produce(topic, value.encode(), key=f"key-{number}".encode(), partition=number % partitions)
    assert producer.flush(SECONDS) == 0


def topic_of(cluster: EmbeddedCluster, topic: str) -> str:
    """Make a topic of ten partitions; return its name."""
    create(cluster, topic, PARTITIONS)
    return topic


def commit(cluster: EmbeddedCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit offsets as a consumer without members does."""
    consumer = Consumer(cluster.client_config() | {"group.id": group, "enable.auto.commit": False, "log_level": "2"})
    try:
        places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def committed_offsets(cluster: EmbeddedCluster, group: str, topic: str) -> dict[int, int]:
    """Return the offsets that a group has committed in a topic, by partition."""
    consumer = Consumer(cluster.client_config() | {"group.id": group, "log_level": "2"})
    try:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return {one.partition: one.offset for one in consumer.committed(places, SECONDS) if one.offset >= 0}
    finally:
        consumer.close()


def ends(cluster: EmbeddedCluster, topic: str) -> dict[int, int]:
    """Return the ends of a topic's logs, by partition."""
    logs = [(topic, number) for number in range(PARTITIONS)]
    found = bounds(declared("any", cluster), logs)
    return {number: end for (_, number), (_, end) in zip(logs, found, strict=True)}
