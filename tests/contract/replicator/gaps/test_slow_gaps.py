"""Gaps that take long to be filled hold up their own partitions alone, however much stands behind them."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.gaps.fill import Filler
from reconciler.replicator.partition.shares import Place
from reconciler.wire import TopicInfo
from tests.support.clusters.kafka import create
from tests.support.replicator.copying import REMOTE, Running, at, fill, identical, spec_of

SECONDS = 300.0
PARTITIONS = 8
# More than a task reads in advance, in records of half a megabyte.
BEHIND = 12
VALUE = bytes(500_000)


@pytest.fixture
def gappy(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> str:
    """A topic whose partitions begin with an aborted transaction and megabytes behind it."""
    topic = f"{topic_name}-gappy"
    create(source_cluster, topic, PARTITIONS)
    create(target_cluster, f"east.{topic}", PARTITIONS, REMOTE)
    settings = {"transactional.id": topic, "linger.ms": 0, "log_level": "2"}
    producer = Producer(source_cluster.client_config() | settings)
    producer.init_transactions(SECONDS)
    for aborted, count in ((True, 1), (False, BEHIND)):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for _ in range(count):
                producer.produce(topic, value=VALUE, partition=partition)
        # What is aborted before it is sent never stands in the log.
        producer.flush(SECONDS)
        (producer.abort_transaction if aborted else producer.commit_transaction)(SECONDS)
    return topic


def test_others_flow_while_gaps_are_filled(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    gappy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = f"{gappy}-not"
    create(source_cluster, plain)
    create(target_cluster, f"east.{plain}", 1, REMOTE)
    whole, may_go_on = Filler.fill, False

    async def held_up(self: Filler, place: Place, info: TopicInfo, start: int, count: int) -> int:
        while not may_go_on:
            await self._loop.sleep(0.01)
        return await whole(self, place, info, start, count)

    monkeypatch.setattr(Filler, "fill", held_up)
    spec = spec_of(source, target, gappy, plain)
    with Running(spec) as copying:
        try:
            copying.wait(lambda status: all(at(status, gappy, p).end > BEHIND for p in range(PARTITIONS)))
            fill(source_cluster, plain, 1_000)
            held = copying.wait(lambda status: at(status, plain).position == 1_000)
            assert [at(held, gappy, p).position for p in range(PARTITIONS)] == [0] * PARTITIONS
        finally:
            may_go_on = True
        copying.settled_again(running=True)
    assert identical(spec, gappy, plain) == PARTITIONS * BEHIND + 1_000
