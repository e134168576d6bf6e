"""The wire against a real broker: each request, its answer, its errors, and what a lost connection says."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.records.batch import LARGE
from reconciler.records.split import split
from reconciler.wire import (
    EARLIEST,
    LATEST,
    BrokerError,
    ConnectionLost,
    FetchAnswer,
    FetchAsk,
    Loop,
    ProduceAnswer,
    ProduceAsk,
    TopicInfo,
    Wire,
    error_name,
)
from tests.support.clusters.kafka import create, declared, delete
from tests.support.records.batches import LZ4, ZSTD, Content, build, damaged, decode, some
from tests.support.replicator.copying import log_end
from tests.support.wire.wires import ask

CORRUPT_MESSAGE, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, OUT_OF_ORDER = 2, 3, 100, 45
LIMIT_SECONDS = 15.0


@pytest.fixture
def cluster(source_cluster: EmbeddedCluster) -> Cluster:
    return declared("east", source_cluster)


async def describe(wire: Wire, topic: str) -> TopicInfo:
    return (await wire.topics([topic]))[topic]


def fail(error: ConnectionLost) -> None:
    raise AssertionError(error)


def produce(cluster: Cluster, *asks: ProduceAsk) -> list[ProduceAnswer]:
    async def question(wire: Wire) -> list[ProduceAnswer]:
        node = (await describe(wire, asks[0].topic)).partitions[0].node
        return await wire.produce(node, asks, fail)

    return ask(cluster, question)


def fetch(
    cluster: Cluster, asks: Sequence[FetchAsk], max_bytes: int = 2**24, committed: bool = True
) -> list[FetchAnswer]:
    async def question(wire: Wire) -> list[FetchAnswer]:
        node = (await describe(wire, asks[0].topic)).partitions[0].node
        return await wire.fetch(node, asks, 500, 2**24, committed=True)

    return ask(cluster, question)


def topic_info(cluster: Cluster, topic: str) -> TopicInfo:
    return ask(cluster, lambda wire: describe(wire, topic))


def asking(info: TopicInfo, offset: int = 0, partition: int = 0, size: int = 2**20) -> FetchAsk:
    return FetchAsk(info.name, info.topic_id, partition, offset, info.partitions[partition].epoch, size)


def batches(info: TopicInfo, *data: bytes, partition: int = 0) -> list[ProduceAsk]:
    return [ProduceAsk(info.name, info.topic_id, partition, batch) for batch in data]


def test_topics_are_told_with_their_ids_and_leaders(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 3)

    async def question(wire: Wire) -> dict[str, TopicInfo]:
        return await wire.topics([topic_name, "no-such-topic"])

    found = ask(cluster, question)
    assert sorted(found[topic_name].partitions) == [0, 1, 2]
    assert {(leader.node, leader.error) for leader in found[topic_name].partitions.values()} == {(1, 0)}
    assert isinstance(found[topic_name].topic_id, uuid.UUID)
    assert (found["no-such-topic"].error, found["no-such-topic"].partitions) == (UNKNOWN_TOPIC, {})


@pytest.mark.parametrize("with_ids", [True, False])
def test_batches_come_back_as_they_were_sent(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str, with_ids: bool
) -> None:
    create(source_cluster, topic_name, 2)
    info = topic_info(cluster, topic_name)
    if not with_ids:
        info = TopicInfo(info.name, None, info.error, info.partitions)
    first = (Content(1_000, b"key", b"value" * 100, (("h", b"1"), ("h", None))), Content(2_000, None, None))
    sent = [build(first, codec=ZSTD, producer=(9, 0, 0)), build(some(3), codec=LZ4, producer=(9, 0, 2))]
    (one,) = produce(cluster, *batches(info, sent[0]))
    (two,) = produce(cluster, *batches(info, sent[1]))
    assert [(one.error, one.base_offset), (two.error, two.base_offset)] == [(0, 0), (0, 2)]
    assert (one.topic, one.partition) == (topic_name, 0)

    (answer,) = fetch(cluster, [asking(info)])
    assert (answer.error, answer.high_watermark, answer.last_stable_offset, answer.log_start) == (0, 5, 5, 0)
    found = list(split(answer.records))
    assert [batch.base_offset for batch in found] == [0, 2]
    assert all(batch.is_intact for batch in found)
    assert [batch.body for batch in found] == [batch.body for data in sent for batch in split(data)]
    assert decode(found[0].to_bytes())[0].contents == first


def test_a_target_refuses_what_is_damaged(source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str) -> None:
    """The checksum of a large batch is made out of the source's, and nobody else may look at it."""
    create(source_cluster, topic_name)
    info = topic_info(cluster, topic_name)
    whole = build([Content(1_000, b"key", b"value" * LARGE)])
    for data, error, end in [(damaged(whole), CORRUPT_MESSAGE, 0), (whole, 0, 1)]:
        (one,) = split(data, in_place=True)
        (found,) = produce(cluster, *batches(info, one.rewritten(9, 0, 0)))
        assert found.error == error
        (answer,) = fetch(cluster, [asking(info)])
        assert answer.high_watermark == end


def test_one_request_carries_many_partitions_and_each_gets_its_answer(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    for name, partitions in ((f"{topic_name}-a", 3), (f"{topic_name}-b", 1)):
        create(source_cluster, name, partitions)
    a, b = topic_info(cluster, f"{topic_name}-a"), topic_info(cluster, f"{topic_name}-b")
    good, hole = build(some(2), producer=(9, 0, 0)), build(some(2), producer=(9, 0, 7))
    produce(cluster, *batches(a, good, partition=1))
    answers = produce(
        cluster, *batches(a, good), *batches(b, good), *batches(a, good, partition=2), *batches(a, hole, partition=1)
    )
    found = {(answer.topic[-1], answer.partition): (answer.error, answer.base_offset) for answer in answers}
    assert found == {("a", 0): (0, 0), ("b", 0): (0, 0), ("a", 2): (0, 0), ("a", 1): (OUT_OF_ORDER, -1)}
    answers_back = fetch(cluster, [asking(a), asking(b), asking(a, partition=2), asking(a, partition=1)])
    assert {(answer.topic[-1], answer.partition): answer.high_watermark for answer in answers_back} == dict.fromkeys(
        found, 2
    )


def test_a_repeat_is_answered_with_its_first_offset(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    info = topic_info(cluster, topic_name)
    for sequence in (0, 2, 4):
        produce(cluster, *batches(info, build(some(2), producer=(9, 0, sequence))))
    (again,) = produce(cluster, *batches(info, build(some(2), producer=(9, 0, 2))))
    assert (again.error, again.base_offset) == (0, 2)
    assert log_end(cluster, topic_name) == 6


@pytest.mark.parametrize("new_first", [True, False])
def test_a_topic_made_anew_never_takes_what_was_meant_for_the_old_one(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str, new_first: bool
) -> None:
    create(source_cluster, topic_name, 2)
    old = topic_info(cluster, topic_name)
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name, 2)
    new = topic_info(cluster, topic_name)
    assert new.topic_id != old.topic_id
    data = build(some(2), producer=(9, 0, 0))
    asks = [*batches(new, data), *batches(old, data, partition=1)]
    answers = produce(cluster, *(asks if new_first else asks[::-1]))
    assert sorted((answer.partition, answer.error) for answer in answers) == [(0, 0), (1, UNKNOWN_TOPIC_ID)]
    assert [log_end(cluster, topic_name, partition) for partition in (0, 1)] == [2, 0]

    fetched = fetch(cluster, [asking(new), asking(old, partition=1)][:: 1 if new_first else -1])
    assert sorted((answer.partition, answer.error) for answer in fetched) == [(0, 0), (1, UNKNOWN_TOPIC_ID)]


def test_a_batch_beyond_the_limits_comes_whole_only_to_the_first_that_has_data(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    """The broker's rule; who fetches must take turns, or a partition with large batches starves behind a busy one."""
    create(source_cluster, f"{topic_name}-a")
    create(source_cluster, f"{topic_name}-z")
    a, z = topic_info(cluster, f"{topic_name}-a"), topic_info(cluster, f"{topic_name}-z")
    large = build([Content(1_000, None, b"x" * 5_000)])
    produce(cluster, *batches(a, build(some(2))), *batches(z, large))
    asks = [asking(a, size=1_000), asking(z, size=1_000)]
    sizes = {answer.topic[-1]: len(answer.records) for answer in fetch(cluster, asks)}
    assert (sizes["a"] > 0, sizes["z"]) == (True, 0)
    sizes = {answer.topic[-1]: len(answer.records) for answer in fetch(cluster, asks[::-1])}
    assert sizes["z"] == len(large)


def test_log_ends_and_starts(source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    info = topic_info(cluster, topic_name)
    produce(cluster, *batches(info, build(some(7))))

    async def question(wire: Wire) -> tuple[int | None, int, int]:
        node, epoch = info.partitions[0].node, info.partitions[0].epoch
        return (
            await wire.log_end(node, topic_name, 0, epoch),
            await wire.offset(node, topic_name, 0, EARLIEST),
            await wire.offset(node, topic_name, 0, LATEST),
        )

    assert ask(cluster, question) == (7, 0, 7)


def test_another_leader_epoch_is_refused(source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    info = topic_info(cluster, topic_name)

    async def question(wire: Wire) -> int | None:
        return await wire.log_end(info.partitions[0].node, topic_name, 0, info.partitions[0].epoch + 5)

    with pytest.raises(BrokerError, match="UNKNOWN_LEADER_EPOCH"):
        ask(cluster, question)


def test_the_state_of_producers(source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    info = topic_info(cluster, topic_name)
    now = int(time.time() * 1_000)
    produce(cluster, *batches(info, build(some(4, now), producer=(900, 3, 10))))

    async def question(wire: Wire) -> list[tuple[int, int, int, bool]]:
        found = await wire.producers(info.partitions[0].node, topic_name, 0)
        return [(p.producer_id, p.epoch, p.last_sequence, p.open_transaction) for p in found]

    assert ask(cluster, question) == [(900, 3, 13, False)]


def test_a_transactional_id_has_one_producer_id_for_ever(cluster: Cluster, topic_name: str) -> None:
    def producer_id(name: str) -> int:
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                return ask(cluster, lambda wire: wire.producer_id(name))
            except BrokerError as error:
                # The first to ask makes the broker create its topic for transactions.
                assert error.name in ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS")
                assert time.monotonic() < deadline
                time.sleep(0.1)

    found = [producer_id(name) for name in (topic_name, topic_name, f"{topic_name}-other")]
    assert found[0] == found[1] != found[2]
    assert min(found) >= 0


def test_an_offset_beyond_the_end_is_an_error_of_its_partition(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    # A broker may know a new topic's leader a moment before it leads.
    deadline = time.monotonic() + LIMIT_SECONDS
    (answer,) = fetch(cluster, [asking(topic_info(cluster, topic_name), offset=5)])
    while error_name(answer.error) == "UNKNOWN_LEADER_EPOCH" and time.monotonic() < deadline:
        (answer,) = fetch(cluster, [asking(topic_info(cluster, topic_name), offset=5)])
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        answer.raise_error()


def test_nobody_at_the_address_is_said_soon() -> None:
    nobody = Cluster("gone", ("127.0.0.1:1",))
    began = time.monotonic()
    with pytest.raises(ConnectionLost):
        ask(nobody, lambda wire: wire.topics(["orders"]), timeout=2.0)
    assert time.monotonic() - began < LIMIT_SECONDS


@pytest.mark.parametrize("connected", [False, True])
def test_a_produce_that_gets_no_answer_is_lost_once(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str, connected: bool
) -> None:
    create(source_cluster, topic_name)
    loop = Loop()
    wire = Wire(loop, cluster, "tests", 2.0)
    told: list[ConnectionLost] = []

    async def send() -> None:
        info = await describe(wire, topic_name) if connected else TopicInfo(topic_name, None, 0, {})
        pending = wire.produce(1, batches(info, build(some(1))), told.append)
        wire.close()
        try:
            await pending
        finally:
            assert len(told) == 1, "who sent is told before who waits, and once"

    try:
        with pytest.raises(ConnectionLost):
            loop.run(send)
    finally:
        wire.close()
        loop.close()
    assert connected or "not connected yet" in str(told[0])


def test_what_may_not_be_sent_any_more_is_not_sent(
    source_cluster: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    loop = Loop()
    allowed = True
    wire = Wire(loop, cluster, "tests", 5.0, lambda: allowed)
    told: list[ConnectionLost] = []

    async def send() -> list[ProduceAnswer]:
        info = await describe(wire, topic_name)
        return await wire.produce(1, batches(info, build(some(3))), told.append)

    async def send_and_be_stopped() -> None:
        nonlocal allowed
        await send()
        info = await describe(wire, topic_name)
        allowed = False
        # More than a socket takes at once.
        large = build([Content(1_000, None, b"x" * 900_000)])
        with pytest.raises(ConnectionLost, match="nothing may be sent"):
            await wire.produce(1, batches(info, large), told.append)
        with pytest.raises(ConnectionLost):
            await send()
        allowed = True
        (answer,) = await send()
        assert answer.base_offset == 3, "something was written that was not allowed"

    try:
        loop.run(send_and_be_stopped)
    finally:
        wire.close()
        loop.close()
    assert len(told) == 1
