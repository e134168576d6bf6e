"""What a fetch says beside the records, against a real broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.cluster import Cluster
from reconciler.replicator.batch import split
from reconciler.replicator.wire import FetchAnswer, FetchAsk, Wire
from tests.contract.kafka import create, declared
from tests.support.wires import ask

SECONDS = 60.0


@pytest.fixture
def cluster(source_cluster: EmbeddedCluster) -> Cluster:
    return declared("east", source_cluster)


def fetch(cluster: Cluster, topic: str, offset: int, committed: bool) -> FetchAnswer:
    async def question(wire: Wire) -> list[FetchAnswer]:
        info = (await wire.topics([topic]))[topic]
        leader = info.partitions[0]
        asked = FetchAsk(topic, info.topic_id, 0, offset, leader.epoch, 2**20)
        return await wire.fetch(leader.node, [asked], 500, 2**20, committed=committed)

    (answer,) = ask(cluster, question)
    answer.raise_error()
    return answer


def transact(cluster: EmbeddedCluster, topic: str, records: int, commit: bool) -> None:
    producer = Producer(cluster.client_config() | {"transactional.id": f"tests-{topic}-{commit}", "log_level": "2"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(SECONDS) == 0
    if commit:
        producer.commit_transaction(SECONDS)
    else:
        producer.abort_transaction(SECONDS)


def test_aborted_transactions_are_named(source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    transact(source_cluster, topic_name, 3, commit=True)
    transact(source_cluster, topic_name, 2, commit=False)
    answer = fetch(cluster, topic_name, 0, committed=True)
    found = list(split(answer.records))
    (aborted,) = answer.aborted
    assert aborted == (next(batch.producer_id for batch in found if batch.base_offset == 4), 4)
    assert answer.last_stable_offset == found[-1].next_offset == 7
    assert fetch(cluster, topic_name, 0, committed=False).aborted == ()
