"""A backlog goes over two connections to the target's broker, and a lost one costs no record and doubles none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.transfer import produce_lanes
from reconciler.replicator.transfer.produce_lanes import FIRST, SECOND, LaneRequest, ProduceLanes
from reconciler.replicator.transfer.sender import Sender
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, SECONDS, Running, assert_counted, fill, identical, spec_of

PARTITIONS, RECORDS, VALUE = 4, 400, b"x" * 100_000


class Seen:
    """Watches what leaves over which lane, and breaks the second one now and then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: Counter[int] = Counter()
        self.lanes: list[ProduceLanes] = []
        self.drops = 0
        send = Sender._send

        def sent(writer: Sender, wire: Any, way: LaneRequest, *rest: Any) -> None:
            lane = way.lane
            if writer.lanes not in self.lanes:
                self.lanes.append(writer.lanes)
            self.requests[lane] += 1
            send(writer, wire, way, *rest)
            if lane == SECOND and self.drops and self.requests[SECOND] % 7 == 0:
                self.drops -= 1
                wire.drop("for the test")

        monkeypatch.setattr(Sender, "_send", sent)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def much(cluster: EmbeddedCluster, topic: str) -> int:
    """Produce a backlog of large batches; return of how many records."""
    producer = Producer(cluster.client_config() | {"linger.ms": 50, "batch.size": 900_000, "log_level": "2"})
    for number in range(PARTITIONS * RECORDS):
        producer.produce(topic, b"%d" % number + VALUE, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    return PARTITIONS * RECORDS


@pytest.fixture
def topic(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> str:
    create(source_cluster, topic_name, PARTITIONS)
    create(target_cluster, f"east.{topic_name}", PARTITIONS, REMOTE)
    return topic_name


@pytest.fixture
def clusters(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster) -> tuple[Cluster, Cluster]:
    return declared("east", source_cluster), declared("west", target_cluster)


def test_a_backlog_goes_over_two_and_what_trickles_in_over_one(
    source_cluster: EmbeddedCluster, clusters: tuple[Cluster, Cluster], topic: str, seen: Seen
) -> None:
    spec = spec_of(*clusters, topic)
    records = much(source_cluster, topic)
    with Running(spec) as running:
        running.wait()
        (lanes,) = seen.lanes
        assert seen.requests[FIRST] > 1
        assert seen.requests[SECOND] > 1
        # Nothing is under way any more: an express may go again.
        running.wait(lambda _: not lanes.are_two)
        assert lanes.under_way == [0, 0]
        over_second = seen.requests[SECOND]
        fill(source_cluster, topic, 100, PARTITIONS)
        status = running.settled_again()
    assert seen.requests[SECOND] == over_second
    assert_counted(sum(row.records for row in running.rows), records + 100, status)
    assert identical(spec, topic) == records + 100


@pytest.mark.long
def test_a_second_one_that_breaks_again_and_again_loses_and_doubles_nothing(
    source_cluster: EmbeddedCluster,
    clusters: tuple[Cluster, Cluster],
    topic: str,
    seen: Seen,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(produce_lanes, "_NARROW", 0.05)
    spec = spec_of(*clusters, topic)
    records = much(source_cluster, topic)
    seen.drops = 3
    with Running(spec) as running:
        status = running.wait()
    assert seen.drops < 3, "the second one was never broken"
    assert sum(partition.metrics.retries for partition in status.partitions) > 0
    assert sum(row.records for row in running.rows) <= records
    assert identical(spec, topic) == records


@pytest.mark.long
def test_each_of_several_tasks_has_one(
    source_cluster: EmbeddedCluster, clusters: tuple[Cluster, Cluster], topic: str, seen: Seen
) -> None:
    spec = spec_of(*clusters, topic)
    records = much(source_cluster, topic)
    one = Running(spec)
    one._assignment = replace(one._assignment, tasks=2)
    with one as running:
        running.wait()
    assert seen.requests[SECOND] == 0
    assert identical(spec, topic) == records
