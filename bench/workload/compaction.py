"""Lets a broker's log cleaner take overwritten records out of a topic, and ends that before anybody measures.

`race` asks for it where a profile's topic is to be compacted: what is left are batches with holes, as it leaves
them. Afterwards the topic is a plain one, so that neither it nor its copies are cleaned while they are measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.workload.topics import admin
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Problem

# Of a broker: cleaning takes no more turns than it must. A pass remembers all keys of a partition.
EAGER_BROKER = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.threads": "2",
    "log.cleaner.dedupe.buffer.size": str(512 << 20),
}
# Of a topic; the segment that is written to is never cleaned, so it should be small.
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0", "segment.bytes": str(16 << 20)}
_PLAIN = {"cleanup.policy": "delete", "retention.ms": "-1"}
_ANSWER_SECONDS = 30
_SECONDS = 600.0
_PAUSE = 0.5


def finish(cluster: EmbeddedCluster, topic: str, partitions: int) -> None:
    """Wait until everything that can be cleaned of a topic is, then make it a plain one.

    Raises:
        EnvironmentFault: AB351, the cleaner does not get there.
        KafkaException: the cluster refuses the new configuration.
    """
    data, deadline = cluster.broker().data, time.monotonic() + _SECONDS
    while left := list(_not_cleaned(data, topic, partitions)):
        if time.monotonic() > deadline:
            message = f"the cleaner has not come to the end of the partitions {left} within {_SECONDS:g} s"
            raise EnvironmentFault(Problem("AB351", f"source topic {topic}", message, "run it again"))
        time.sleep(_PAUSE)
    _set(cluster, topic, _PLAIN)


def _not_cleaned(data: Path, topic: str, partitions: int) -> Iterator[int]:
    """Yield the partitions with whole segments that the cleaner has not passed."""
    cleaned = cleaned_up_to(data / "cleaner-offset-checkpoint")
    for number in range(partitions):
        newest = max(int(path.stem) for path in (data / f"{topic}-{number}").glob("*.log"))
        if cleaned.get((topic, number), 0) < newest:
            yield number


def cleaned_up_to(checkpoint: Path) -> Mapping[tuple[str, int], int]:
    """Return how far the cleaner has come in each partition, by Kafka's `OffsetCheckpointFile`: nowhere without one."""
    try:
        lines = checkpoint.read_text().splitlines()
    except FileNotFoundError:
        return {}
    # Its version and the number of entries stand before them.
    entries = (line.split() for line in lines[2:])
    return {(topic, int(number)): int(offset) for topic, number, offset in entries}


def _set(cluster: EmbeddedCluster, topic: str, values: Mapping[str, str]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in values.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    # Kept by name: a client that nobody holds takes its requests with it.
    client = admin(cluster)
    client.incremental_alter_configs([resource])[resource].result(_ANSWER_SECONDS)
