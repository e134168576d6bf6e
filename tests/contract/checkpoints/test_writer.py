"""Checkpoints and heartbeats on a real broker: what is written when, and what is read back."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from reconciler.checkpoints.mirrormaker.client import MirrorClient
from reconciler.checkpoints.mirrormaker.formats import (
    Checkpoint,
    Heartbeat,
    checkpoint_key,
    checkpoint_value,
    heartbeat_key,
    heartbeat_value,
)
from reconciler.checkpoints.service.emit import CheckpointWriter, HeartbeatWriter
from reconciler.checkpoints.service.last_syncs import LastLooks
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.groups import LastLook
from reconciler.model.names.topic_names import HEARTBEATS
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.state.journals import home
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import JournalTopic
from reconciler.state.ownership import Ownership
from reconciler.state.status import LookWriter
from tests.support.clusters.kafka import partitions, topic_configs

NOBODY = Cluster("gone", ("127.0.0.1:1",))
SECONDS = 300.0


@pytest.fixture
def source(topic_name: str) -> str:
    """An alias that no other test has; the shared cluster keeps what is written under it."""
    return topic_name


def checkpoints(group: str, offsets: Iterable[int]) -> list[Checkpoint]:
    return [Checkpoint(group, "east.orders", number, 2 * at, at, "note") for number, at in enumerate(offsets)]


def written(broker: EmbeddedCluster, topic: str) -> int:
    """How many records a topic has, superseded ones too."""
    consumer = Consumer(broker.client_config() | {"group.id": "unused", "enable.partition.eof": True, "log_level": "2"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    count = 0
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF
            consumer.close()
            return count
        count += 1


def test_the_topics_are_made_as_mirrormaker_makes_them(
    target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = CheckpointWriter(target, source)
    assert writer.topic == f"{source}.checkpoints.internal"
    assert writer.refresh() == {}
    HeartbeatWriter(target, source, "west").beat(1)
    for topic in (writer.topic, "heartbeats"):
        assert partitions(target_cluster, topic) == 1
        assert topic_configs(target_cluster, topic)["cleanup.policy"] == "compact"


def test_only_what_has_moved_is_written_also_by_the_next_process(
    target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = CheckpointWriter(target, source)
    assert writer.emit(checkpoints("g", [5, 6, 7])) == 3
    assert writer.emit(checkpoints("g", [5, 6, 7])) == 0
    assert writer.emit(checkpoints("g", [5, 9, 7])) == 1
    assert writer.emit([Checkpoint("g", "east.orders", 0, 10, 5, "other note")]) == 1
    later = CheckpointWriter(target, source)
    assert later.emit([Checkpoint("g", "east.orders", 0, 10, 5, "other note"), *checkpoints("h", [1])]) == 1
    assert written(target_cluster, writer.topic) == 6
    found = MirrorClient(target).checkpoints(source)
    assert found == [
        Checkpoint("g", "east.orders", 0, 10, 5, "other note"),
        *checkpoints("g", [5, 9, 7])[1:],
        *checkpoints("h", [1]),
    ]


def test_of_two_for_one_partition_the_last_counts(target: Cluster, source: str) -> None:
    writer = CheckpointWriter(target, source)
    assert writer.emit([*checkpoints("g", [5]), *checkpoints("g", [8])]) == 1
    assert MirrorClient(target).checkpoints(source) == checkpoints("g", [8])


def test_checkpoints_of_what_is_gone_are_taken_back_once(
    target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = CheckpointWriter(target, source)
    writer.emit([*checkpoints("stays", [1]), *checkpoints("goes", [2, 3])])
    assert writer.take_back(lambda key: key.group == "goes") == 2
    assert writer.take_back(lambda key: key.group == "goes") == 0
    later = CheckpointWriter(target, source)
    assert later.take_back(lambda key: key.group == "goes") == 0
    assert written(target_cluster, writer.topic) == 5
    client = MirrorClient(target)
    assert client.checkpoints(source) == checkpoints("stays", [1])
    assert client.remote_consumer_offsets("goes", source) == []
    assert later.emit(checkpoints("goes", [2])) == 1
    assert client.checkpoints(source, "goes") == checkpoints("goes", [2])


def test_what_another_writer_wrote_is_known_after_a_refresh(target: Cluster, source: str) -> None:
    ours, theirs = CheckpointWriter(target, source), CheckpointWriter(target, source)
    ours.emit(checkpoints("g", [1]))
    theirs.emit(checkpoints("g", [4]))
    assert ours.emit(checkpoints("g", [1])) == 0
    assert list(ours.refresh().values()) == checkpoints("g", [4])
    assert ours.emit(checkpoints("g", [1])) == 1


def test_many_are_written_and_read(target: Cluster, source: str) -> None:
    places = [(f"group-{group:03}", number) for group in range(250) for number in range(100)]
    many = [Checkpoint(group, "east.orders", number, 2 * number, number) for group, number in places]
    writer = CheckpointWriter(target, source)
    assert writer.emit(many) == 25_000
    found = MirrorClient(target).checkpoints(source)
    assert found == sorted(many, key=lambda one: one.key)
    assert CheckpointWriter(target, source).emit(many) == 0


def test_what_an_aborted_transaction_wrote_does_not_count_and_markers_at_the_end_are_passed(
    target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = CheckpointWriter(target, source)
    writer.refresh()
    producer = Producer(target_cluster.client_config() | {"transactional.id": source, "log_level": "2"})
    producer.init_transactions(30)
    for at, end in ((5, producer.commit_transaction), (9, producer.abort_transaction)):
        producer.begin_transaction()
        (one,) = checkpoints("g", [at])
        producer.produce(writer.topic, checkpoint_value(one), checkpoint_key(one.key))
        assert producer.flush(30) == 0
        end(30)
    assert MirrorClient(target).checkpoints(source) == checkpoints("g", [5])
    assert writer.emit(checkpoints("g", [5])) == 1
    assert CheckpointWriter(target, source).emit(checkpoints("g", [5])) == 0


def test_the_newest_beat_of_each_flow_is_read(target: Cluster, source: str) -> None:
    there, back = HeartbeatWriter(target, source, "west"), HeartbeatWriter(target, "west", source)
    for now in (1_000, 2_000, 3_000):
        there.beat(now)
    back.beat(1_500)
    client = MirrorClient(target)
    ours = [one for one in client.heartbeats() if source in (one.source, one.target)]
    assert sorted(ours, key=lambda one: one.timestamp) == [
        Heartbeat("west", source, 1_500),
        Heartbeat(source, "west", 3_000),
    ]
    assert client.heartbeats(f"{source}.heartbeats") == []


def test_heartbeats_are_not_asked_when_groups_were_looked_at(target: Cluster, source: str) -> None:
    """All topologies of a target write them: what is believed stands in a topic of the topology."""
    flow, looks, writer = f"one-{source}", LastLooks(target, "tests"), LookWriter(target, "tests", f"one-{source}")
    HeartbeatWriter(target, source, "west", whose=("tests", flow)).beat(9_000_000_000_000, 9)
    assert flow not in looks.current()
    for look in (LastLook(1.0, 3), LastLook(2.5, None)):
        writer.write(look)
        deadline = time.monotonic() + SECONDS
        while looks.current().get(flow) != look:
            assert time.monotonic() < deadline
    LookWriter(target, "others", flow).write(LastLook(9e9, 9))
    assert looks.current()[flow] == LastLook(2.5, None)
    looks.close()


def test_beside_shared_journals_heartbeats_tell_when_groups_were_looked_at(
    target: Cluster, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.hold(target, source, "shared")
    LookWriter(target, source, f"one-{source}").write(LastLook(9e9, 9))
    looks = LastLooks(target, source)
    one, two = (HeartbeatWriter(target, source, "west", whose=(source, f"{name}-{source}")) for name in ("one", "two"))
    HeartbeatWriter(target, source, "west").beat(9_000, 9)
    assert looks.current().keys().isdisjoint((f"one-{source}", f"two-{source}"))
    one.beat(1_000, 3)
    two.beat(2_500)
    assert looks.current()[f"one-{source}"] == LastLook(1.0, 3)
    assert looks.current()[f"two-{source}"] == LastLook(2.5, None)
    two.beat(4_000, 0)
    assert looks.current()[f"two-{source}"] == LastLook(4.0, 0)
    assert looks.current()[f"one-{source}"] == LastLook(1.0, 3)
    # A flow of another topology has the same name by default, and its figures are not ours.
    HeartbeatWriter(target, source, "west", whose=("others", f"two-{source}")).beat(9_000, 9)
    assert looks.current()[f"two-{source}"] == LastLook(4.0, 0)
    # Former releases do not say the topology: they count where no other topology has a flow of this name.
    for name, at in (("three", 5_000), ("four", 6_000), ("five", 7_000)):
        former(target, source, f"{name}-{source}", at)
    HeartbeatWriter(target, source, "west", whose=("others", f"four-{source}")).beat(8_000, 9)
    owned = OwnedTopic(f"{source}-x", None, "others", "", f"five-{source}", source, "x", "", 1, "identical", {})
    monkeypatch.setattr(Ownership, "read", lambda _: {owned.name: owned})
    deadline = time.monotonic() + SECONDS
    while f"three-{source}" not in looks.current():
        assert time.monotonic() < deadline
    found = looks.current()
    assert found[f"three-{source}"] == LastLook(5.0, 3)
    assert found.keys().isdisjoint((f"four-{source}", f"five-{source}"))
    looks.close()
    # Others see what they saw before.
    assert Heartbeat(source, "west", 8_000) in MirrorClient(target).heartbeats()


def former(target: Cluster, source: str, flow: str, at: int) -> None:
    """Write a heartbeat as releases do that do not say the topology."""
    journal = Journal(target, JournalTopic(HEARTBEATS, {}))
    said = [("anabranch-flow", flow.encode()), ("anabranch-groups", b"3")]
    journal.store([(heartbeat_key(source, "west"), heartbeat_value(at))], said)


def test_a_cluster_that_is_gone_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="AB310"):
        CheckpointWriter(NOBODY, "east", timeout=1).emit(checkpoints("g", [1]))
    with pytest.raises(Unreachable, match="AB310"):
        HeartbeatWriter(NOBODY, "east", "west", timeout=1).beat(1)


def test_a_name_that_the_format_has_no_room_for_is_refused(target: Cluster, source: str) -> None:
    with pytest.raises(ValueError, match="has room for 32767"):
        CheckpointWriter(target, source).emit(checkpoints("g" * 40_000, [1]))


def test_records_that_are_no_checkpoints_stop_nobody(
    target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = CheckpointWriter(target, source)
    writer.emit(checkpoints("g", [1]))
    producer = Producer(target_cluster.client_config() | {"log_level": "2"})
    for key, value in ((b"junk", b"junk"), (b"junk", None), (checkpoint_key(checkpoints("g", [1])[0].key), b"junk")):
        producer.produce(writer.topic, value, key)
    assert producer.flush(30) == 0
    assert MirrorClient(target).checkpoints(source) == checkpoints("g", [1])
