"""What a fetch says beside the records, and fetch sessions, against a real broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.records.split import split
from reconciler.wire import FetchAnswer, FetchAsk, FetchSession, Wire
from tests.support.clusters.kafka import create, declared
from tests.support.waiting import eventually
from tests.support.wire.wires import ask

SECONDS = 300.0


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
    # A coordinator writes its markers after it has answered.
    answer = eventually(
        "the transactions have ended in the log",
        lambda: fetch(cluster, topic_name, 0, committed=True),
        lambda answer: answer.last_stable_offset == 7,
    )
    found = list(split(answer.records))
    (aborted,) = answer.aborted
    assert aborted == (next(batch.producer_id for batch in found if batch.base_offset == 4), 4)
    assert answer.last_stable_offset == found[-1].next_offset == 7
    assert fetch(cluster, topic_name, 0, committed=False).aborted == ()


@dataclass
class Scene:
    """A session with a broker, and what it was asked last, by partition."""

    wire: Wire
    session: FetchSession
    asks: dict[int, FetchAsk]

    async def next(self, **offsets: int) -> dict[int, FetchAnswer]:
        """Fetch with new offsets, by `p<partition>`."""
        for place, offset in offsets.items():
            number = int(place[1:])
            self.asks[number] = self.asks[number]._replace(offset=offset)
            self.session.want(self.asks[number])
        answers = await self.wire.fetch_more(self.session, 100, 2**20)
        assert not [answer for answer in answers if answer.error]
        return {answer.partition: answer for answer in answers}


def in_session(cluster: Cluster, topic: str, play: Callable[[Scene], Awaitable[None]], names_only: bool) -> None:
    async def question(wire: Wire) -> None:
        info = (await wire.topics([topic]))[topic]
        topic_id = None if names_only else info.topic_id
        session = FetchSession(info.partitions[0].node, committed=True)
        asks = {p: FetchAsk(topic, topic_id, p, 0, leader.epoch, 2**20) for p, leader in info.partitions.items()}
        for one in asks.values():
            session.want(one)
        await play(Scene(wire, session, asks))

    ask(cluster, question)


def produce(cluster: EmbeddedCluster, topic: str, *partitions: int) -> None:
    producer = Producer(cluster.client_config() | {"log_level": "2"})
    for partition in partitions:
        producer.produce(topic, b"value", partition=partition)
    assert producer.flush(SECONDS) == 0


@pytest.mark.parametrize("names_only", [False, True])
def test_a_session_tells_only_what_is_new(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str, names_only: bool
) -> None:
    create(source_cluster, topic_name, 3)
    produce(source_cluster, topic_name, 0, 1, 2)

    async def play(scene: Scene) -> None:
        assert sorted(await scene.next()) == [0, 1, 2]
        assert await scene.next(p0=1, p1=1, p2=1) == {}
        produce(source_cluster, topic_name, 1)
        found = await scene.next()
        assert list(found) == [1]
        assert [batch.base_offset for batch in split(found[1].records)] == [1]
        # Not wanted any more, then wanted again.
        for number in (1, 2):
            scene.session.forget(scene.asks[number])
        produce(source_cluster, topic_name, 0, 2)
        assert list(await scene.next()) == [0]
        found = await scene.next(p0=2, p1=2, p2=1)
        assert {p: [batch.base_offset for batch in split(one.records)] for p, one in found.items()} == {1: [], 2: [1]}

    in_session(cluster, topic_name, play, names_only)


@pytest.mark.parametrize("harm", ["id", "epoch"])
def test_a_session_that_the_broker_does_not_know_is_begun_anew(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str, harm: str
) -> None:
    create(source_cluster, topic_name, 2)
    produce(source_cluster, topic_name, 0, 1)

    async def play(scene: Scene) -> None:
        assert sorted(await scene.next()) == [0, 1]
        if harm == "id":
            scene.session._id += 1
        else:
            scene.session._epoch += 5
        assert sorted(await scene.next()) == [0, 1]
        assert await scene.next(p0=1, p1=1) == {}

    in_session(cluster, topic_name, play, names_only=False)
