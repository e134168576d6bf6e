"""Padding on a real broker: the log begins where it must, lookups by timestamp find what comes later, nobody loses."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from reconciler.embedded import EmbeddedCluster
from reconciler.replicator.gaps.padding import CannotPad, is_padding, pad
from reconciler.replicator.partition.place import LogEnd
from reconciler.wire import EARLIEST, ConnectionLost
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, SECONDS
from tests.support.replicator.filling import DELETE, Desk, desk, place

OUT_OF_ORDER = 45
PRODUCER = LogEnd(0, 900, 0, 0)


@pytest.fixture
def at(target_cluster: EmbeddedCluster) -> Iterator[Desk]:
    with desk(declared("west", target_cluster)) as opened:
        yield opened


async def padded(at: Desk, name: str, until: int) -> tuple[int, int, int]:
    """Pad, and return what `pad` says, the log start and the log end."""
    info = await at.topic(name)
    said = await pad(at.wire, place(name), info, PRODUCER, until)
    start = await at.wire.offset(info.partitions[0].node, name, 0, EARLIEST)
    return said, start, await at.end(name)


def test_the_log_begins_exactly_there_again_and_again(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name, 1, REMOTE)
    for until in (1, 700_000, 700_000, 1_700_003):
        assert at.run(partial(padded, at, topic_name, until)) == (until, until, until)
    # The data goes on with the sequence that is its offset.
    assert at.run(lambda: at.write(topic_name, (900, 0, 1_700_003), 2)) == (0, 1_700_003)


def test_sequences_pass_their_largest_number(target_cluster: EmbeddedCluster, at: Desk, topic_name: str) -> None:
    """The broker's rule that the padding of a log of 2^31 offsets relies on."""
    create(target_cluster, topic_name)
    for sequence, base in ((2**31 - 3, 0), (2, 5), (7, 10)):
        assert at.run(partial(at.write, topic_name, (900, 0, sequence), 5)) == (0, base)
    assert at.run(lambda: at.write(topic_name, (900, 0, 13)))[0] == OUT_OF_ORDER


def test_a_small_limit_on_batches_makes_small_batches(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name, 1, REMOTE | {"max.message.bytes": "50000"})
    assert at.run(lambda: padded(at, topic_name, 200_000)) == (200_000, 200_000, 200_000)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_padded_only_where_records_can_be_deleted(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, policy: str
) -> None:
    create(target_cluster, topic_name, 1, REMOTE | {"cleanup.policy": policy})
    if policy == "compact":
        with pytest.raises(CannotPad, match="compacted only"):
            at.run(lambda: padded(at, topic_name, 10))
        assert at.run(lambda: at.end(topic_name)) == 0
    else:
        assert at.run(lambda: padded(at, topic_name, 10)) == (10, 10, 10)


def test_whoever_dies_over_it_is_followed(target_cluster: EmbeddedCluster, at: Desk, topic_name: str) -> None:
    create(target_cluster, topic_name, 1, REMOTE)

    async def interrupted() -> bool:
        info = await at.topic(topic_name)
        # The first deletion asks whether it is allowed, the second one is for the first batch.
        at.wire.lose[DELETE] = deque([None, "request"])
        with pytest.raises(ConnectionLost):
            await pad(at.wire, place(topic_name), info, PRODUCER, 600_000)
        assert await at.wire.offset(info.partitions[0].node, topic_name, 0, EARLIEST) == 0
        end = await at.end(topic_name)
        assert end == 500_000
        return await is_padding(at.wire, place(topic_name), info, 0, end)

    assert at.run(interrupted)
    assert at.run(lambda: padded(at, topic_name, 600_000)) == (600_000, 600_000, 600_000)


def test_records_are_never_taken_for_padding(target_cluster: EmbeddedCluster, at: Desk, topic_name: str) -> None:
    create(target_cluster, topic_name, 1, REMOTE)

    async def work() -> bool:
        await at.write(topic_name, (900, 0, 0), 3)
        info = await at.topic(topic_name)
        return await is_padding(at.wire, place(topic_name), info, 0, 3)

    assert not at.run(work)
    with pytest.raises(CannotPad, match="holds records from offset 0 on"):
        at.run(lambda: padded(at, topic_name, 10))
    with pytest.raises(CannotPad, match="ends at 3, expected at most 2"):
        at.run(lambda: padded(at, topic_name, 2))
    assert at.run(lambda: at.end(topic_name)) == 3


def test_lookups_by_timestamp_find_what_comes_after_the_padding(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name, 1, REMOTE | {"segment.bytes": "1048576"})
    assert at.run(lambda: padded(at, topic_name, 120)) == (120, 120, 120)
    now = int(time.time() * 1_000)
    ages = (7 * 86_400_000, 86_400_000, 0)
    for number, age in enumerate(ages):
        # Each in a segment of its own.
        sequence, stamp = 120 + 10 * number, now - age
        assert at.run(partial(at.write, topic_name, (900, 0, sequence), 10, stamp, 60_000)) == (0, sequence)
    consumer = Consumer(target_cluster.client_config() | {"group.id": "unused", "log_level": "2"})
    try:
        found = [
            consumer.offsets_for_times([TopicPartition(topic_name, 0, now - age)], timeout=SECONDS)[0].offset
            for age in ages
        ]
        assert found == [120, 130, 140]
    finally:
        consumer.close()
