"""What the bench takes for a copy, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from bench.instruments.sample import ends_fault, sample_fault
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create

RECORDS = 3000
PARTITIONS = 2
Change = Callable[[int], bytes | None]


def produce(cluster: EmbeddedCluster, topic: str, value: Change, count: int = RECORDS) -> None:
    """Produce records with one timestamp, header and key each, alternately to two partitions."""
    create(cluster, topic, PARTITIONS)
    producer = Producer({**cluster.client_config(), "log_level": 2})
    for number in range(count):
        producer.produce(
            topic, value(number), b"key", number % PARTITIONS, timestamp=1000 + number, headers=[("h", b"1")]
        )
    assert producer.flush(300) == 0


def plain(number: int) -> bytes:
    return b"value %d" % number


def changed(at: int, to: bytes | None = b"other") -> Change:
    return lambda number: to if number == at else plain(number)


@pytest.fixture
def original(source_cluster: EmbeddedCluster, topic_name: str) -> tuple[dict[str, str], str]:
    produce(source_cluster, f"{topic_name}-original", plain)
    return source_cluster.client_config(), f"{topic_name}-original"


def test_equal_records_are_a_copy(
    original: tuple[dict[str, str], str], source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    produce(source_cluster, topic_name, plain)
    copy = (source_cluster.client_config(), topic_name)
    assert sample_fault(original, copy, PARTITIONS, with_offsets=True) == ""
    assert ends_fault(original, copy, PARTITIONS) == ""


@pytest.mark.parametrize(
    ("at", "where"), [(0, "partition 0: from the beginning, record 0"), (RECORDS - 1, "partition 1: of the last 1000")]
)
def test_a_record_that_differs_at_an_edge_is_found(
    original: tuple[dict[str, str], str], source_cluster: EmbeddedCluster, topic_name: str, at: int, where: str
) -> None:
    produce(source_cluster, topic_name, changed(at, None))
    found = sample_fault(original, (source_cluster.client_config(), topic_name), PARTITIONS, with_offsets=False)
    assert found.startswith(where)
    assert b"value %d" % at in found.encode()


def test_a_record_too_few_is_found(
    original: tuple[dict[str, str], str], source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    produce(source_cluster, topic_name, plain, RECORDS - 2)
    copy = (source_cluster.client_config(), topic_name)
    assert "of the last 1000" in sample_fault(original, copy, PARTITIONS, with_offsets=False)
    assert sample_fault(original, copy, PARTITIONS, with_offsets=True).startswith("it holds the offsets")
    assert ends_fault(original, copy, PARTITIONS).startswith("it ends at the offsets [1499, 1499]")
