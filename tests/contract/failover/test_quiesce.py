"""Copies are cut where their logs end for good: what dead tasks have left open, or at a leader alone, comes first."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.translation.history import SyncHistory
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.failover.logs.quiesce import Quiesce
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import lease_group, transactional_prefix
from tests.support.clusters.kafka import admin, declared, metadata, wait_until_seen
from tests.support.commands.failing_over import MakePair, Pair, ends_of, write
from tests.support.still import halt

SECONDS = 300.0
# A replica that is stopped stays in sync, so that what the leader has is no part of what others see.
PATIENT = {"replica.lag.time.max.ms": "300000", "broker.session.timeout.ms": "300000"}


@contextmanager
def settling(cluster: Cluster) -> Iterator[Quiesce]:
    one = Quiesce(cluster, "topology", "over")
    try:
        yield one
    finally:
        one.close()


def test_what_stands_at_a_leader_alone_is_waited_for(
    make_clusters: Callable[..., tuple[EmbeddedCluster, ...]], topic_name: str
) -> None:
    (cluster,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=PATIENT))
    client, target, log = admin(cluster), declared("west", cluster), (topic_name, 0)
    client.create_topics([NewTopic(topic_name, 1, 3)])[topic_name].result()
    wait_until_seen(client, topic_name, 1)
    deadline = time.monotonic() + SECONDS
    # A broker that was not quite up when the topic was made is in sync later: until then nobody waits for it.
    while len((partition := metadata(cluster, topic_name).topics[topic_name].partitions[0]).isrs) < 3:
        assert time.monotonic() < deadline
    leader = partition.leader
    producer = Producer(cluster.client_config() | {"acks": 1, "log_level": "2"})
    write_some(producer, topic_name, 10)
    with settling(target) as looking:
        deadline = time.monotonic() + SECONDS
        while looking.left([log], ()):
            assert time.monotonic() < deadline
        follower = cluster.broker(next(node for node in (1, 2, 3) if node != leader))
        halt(follower.pid)
        try:
            write_some(producer, topic_name, 5)
            (why,) = looking.left([log], ())
            assert f"{topic_name}/0" in why
            assert "15" in why
        finally:
            follower.signal(signal.SIGCONT)
        deadline = time.monotonic() + SECONDS
        while looking.left([log], ()):
            assert time.monotonic() < deadline
    groups = Groups(target)
    try:
        assert groups.bounds([log])[log].end == 15
    finally:
        groups.close()


def test_what_a_dead_task_has_left_open_is_aborted_and_its_position_is_none(make: MakePair) -> None:
    pair = make("translated")
    before = committed(pair)
    dead = begun(pair, f"{transactional_prefix(pair.name, 'over')}dead.0", before + 7)
    done = pair.over("--yes", "--patience", 20)
    assert (done.code, pair.phase) == (0, "over"), done
    # The record that was aborted stands there, and the end of its transaction: both are before the cut.
    assert ends_of(pair)[0] == (before, end_of(pair))
    with pytest.raises(KafkaException):
        dead.commit_transaction(SECONDS)


def test_a_position_that_is_just_being_committed_is_waited_for(make: MakePair) -> None:
    pair = make("translated")
    before = committed(pair)
    other = begun(pair, f"nobody-knows-{pair.topic}", before + 7)
    late = pair.over("--yes", "--patience", 2)
    assert (late.code, "[AB718]" in late.err, pair.phase) == (1, True, "ending"), late
    assert f"positions in group {lease_group(pair.name, 'over')}" in late.err
    other.commit_transaction(SECONDS)
    done = pair.over("--yes")
    assert (done.code, ends_of(pair)[0][0]) == (0, before + 7), done


def test_a_position_that_the_group_has_forgotten_is_told_by_the_last_offset_sync(make: MakePair) -> None:
    pair = make("translated")
    before = committed(pair)
    forget(pair)
    shown = pair.over("--dry-run", "--format", "json").json["plan"]
    assert [(one["copied"], one["waiting"]) for one in shown["partitions"]] == [(before, 0)] * 2
    done = pair.over("--yes")
    assert (done.code, ends_of(pair)[0][0]) == (0, before), done
    # So the original has nothing that never crossed.
    write(pair.west, pair.topic, ["new"])
    back = pair.back("--dry-run", "--format", "json")
    assert (back.code, [(one["new"], one["diverged"]) for one in back.json["plan"]["topics"]]) == (0, [(1, 0)]), back


def test_a_position_that_nobody_tells_is_named(make: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make("translated")
    forget(pair)
    monkeypatch.setattr(SyncHistory, "last", lambda *_: None)
    shown = pair.over("--dry-run", "--format", "json").json["plan"]
    assert [(one["copied"], one["waiting"]) for one in shown["partitions"]] == [(-1, 100)] * 2
    assert (
        f"how far {pair.topic}/0 was copied is unknown: all records of its original count as not copied"
        in shown["notices"]
    )


def forget(pair: Pair) -> None:
    """Have the flow's group forget its positions, as it does when nothing has run for days."""
    group, client = lease_group(pair.name, "over"), admin(pair.west)
    client.delete_consumer_groups([group])[group].result(SECONDS)


def write_some(producer: Producer, topic: str, count: int) -> None:
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(SECONDS) == 0


def begun(pair: Pair, transactional_id: str, position: int) -> Producer:
    """Return a producer whose open transaction holds a record of the copy, and a position of the flow."""
    settings = {"transactional.id": transactional_id, "transaction.timeout.ms": 600_000, "log_level": "2"}
    producer = Producer(pair.west.client_config() | settings)
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    write_some(producer, pair.topic, 1)
    reader = Consumer(pair.west.client_config() | {"group.id": lease_group(pair.name, "over")})
    place = TopicPartition(pair.topic, 0, position)
    producer.send_offsets_to_transaction([place], reader.consumer_group_metadata(), SECONDS)
    reader.close()
    return producer


def committed(pair: Pair) -> int:
    """Return the flow's position in the first partition."""
    groups = Groups(declared("west", pair.west))
    try:
        found = groups.committed([lease_group(pair.name, "over")])
        return next(one.offset for one in found if one.partition == 0)
    finally:
        groups.close()


def end_of(pair: Pair) -> int:
    groups = Groups(declared("west", pair.west))
    try:
        bounds = groups.bounds([(pair.topic, 0)])[pair.topic, 0]
        assert bounds.stable == bounds.end
        return bounds.end
    finally:
        groups.close()
