"""Compare a copy with its original through the recorded runs: every record once, where translation says it stands."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from reconciler.model.cluster import Cluster
from reconciler.model.runs import Runs
from reconciler.state.copies import Copies

SECONDS = 60


def runs_of(target: Cluster, flow: str, remote: str, partitions: int) -> list[Runs]:
    """Return what is recorded of each partition of a copy."""
    copies = Copies(target)
    copies.refresh()
    records = [copies.get(flow, remote, partition) for partition in range(partitions)]
    copies.close()
    assert all(record is not None for record in records)
    return [record.runs for record in records if record is not None]


def committed(cluster: Cluster, topic: str, partition: int = 0, isolation: str = "read_committed") -> list[Message]:
    """Return the records that one partition holds now."""
    consumer = Consumer(
        cluster.librdkafka()
        | {
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "log_level": "2",
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    found: list[Message] = []
    while True:
        message = consumer.poll(SECONDS)
        assert message is not None
        if message.error() is not None:
            consumer.close()
            return found
        found.append(message)


def assert_translated(source: Cluster, topic: str, target: Cluster, runs: Sequence[Runs]) -> int:
    """Assert that every committed record stands once, where its offset translates to; return how many are shifted."""
    shifted = 0
    for partition, translation in enumerate(runs):
        originals = {
            translation.to_target(message.offset()): _content(message)
            for message in committed(source, topic, partition)
        }
        for isolation in ("read_committed", "read_uncommitted"):
            copies = committed(target, f"{source.alias}.{topic}", partition, isolation)
            assert {message.offset(): _content(message) for message in copies} == originals
        shifted += sum(translation.at_target(offset).shift != 0 for offset in originals)
    return shifted


def _content(message: Message) -> tuple[object, ...]:
    return message.key(), message.value(), message.timestamp(), message.headers()
