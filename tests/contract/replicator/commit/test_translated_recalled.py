"""Copies whose group has lost their positions: the last offset sync tells them, and where it does not they park."""

from __future__ import annotations

import struct
import time
from dataclasses import replace

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import OnRecreate
from reconciler.model.names.own_names import lease_group, syncs_topic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit import position_recovery
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.contract.replicator.commit.test_at_least_once import repeating
from tests.contract.replicator.commit.test_translated import SECONDS, make, translated
from tests.contract.replicator.commit.test_translated_losses import again
from tests.contract.replicator.gaps.test_gaps import transact
from tests.support.clusters.kafka import admin, create, delete, delete_records, patient, set_config
from tests.support.replicator.copying import REMOTE, Running, all_running, at, code, copy, fill, log_end
from tests.support.replicator.owner import Owner
from tests.support.replicator.translated import Content, assert_in_order, assert_repeats_only, contents
from tests.support.wire.wires import batch_of

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
HOUR_MS = 3_600_000


def group_of(spec: FlowSpec) -> str:
    return lease_group(spec.topology, spec.flow.name)


def lose_positions(cluster: EmbeddedCluster, spec: FlowSpec) -> None:
    """Delete the flow's group, as it would expire."""
    client = admin(cluster)
    client.delete_consumer_groups([group_of(spec)])[group_of(spec)].result(SECONDS)


def positions(cluster: EmbeddedCluster, spec: FlowSpec, *topics: str) -> dict[str, int]:
    """Return the positions that stand in the flow's group."""
    client = admin(cluster)
    asked = ConsumerGroupTopicPartitions(group_of(spec))
    found = client.list_consumer_group_offsets([asked])[group_of(spec)].result(SECONDS).topic_partitions
    remotes = {spec.flow.remote_topic(topic): topic for topic in topics}
    return {remotes[one.topic]: one.offset for one in found if one.topic in remotes}


def write_with_holes(cluster: EmbeddedCluster, source: Cluster, topic: str) -> None:
    """Write one batch, and one record behind it; have the cleaner take records out of the middle of the batch."""
    create(cluster, topic, 1, COMPACTED)
    producer = patient(cluster, topic)
    for number in range(20):
        key = b"once-%d" % number if number % 5 == 2 else b"again-%d" % (number % 3)
        producer.produce(topic, key=key, value=b"value-%d" % number)
    producer.flush(SECONDS)
    # Only segments that are not written to any more are compacted.
    time.sleep(0.5)
    producer.produce(topic, key=b"z", value=b"last")
    producer.flush(SECONDS)
    deadline = time.monotonic() + 3 * SECONDS
    while batch_of(source, topic, 0).record_count == 20:
        assert time.monotonic() < deadline, "nothing is compacted"
        time.sleep(0.2)
    # From here on the records stay, so that the copy can be compared.
    set_config(cluster, topic, "cleanup.policy", "delete")


def ours_of(target: Cluster, remote: str) -> list[Content]:
    """Return what a copy holds but for what others wrote there, which is older."""
    recent = (time.time() - 3_600) * 1_000
    return [record for record in contents(target, remote) if isinstance(record[2], int) and record[2] > recent]


def test_the_last_offset_sync_tells_the_position(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    """Behind holes inside batches, aborted records and what others wrote in between; also when nothing follows."""
    topics = holes, mixed = f"{topic_name}-holes", f"{topic_name}-transactions"
    make(source_cluster, target_cluster, [mixed])
    write_with_holes(source_cluster, source, holes)
    create(target_cluster, f"east.{holes}", 1, REMOTE)
    spec = translated(source, target, f"{topic_name}-.*")
    with Running(spec) as copying:
        for _ in range(3):
            transact(source_cluster, mixed, [0], 6)
            copying.settled_again(running=True)
            for topic in topics:
                fill(target_cluster, f"east.{topic}", 10, age=2 * HOUR_MS)
    before = positions(target_cluster, spec, *topics)
    ends = {topic: log_end(target, f"east.{topic}") for topic in topics}
    assert before == {topic: log_end(source, topic) for topic in topics}
    assert len(contents(source, holes)) < before[holes] == 21

    lose_positions(target_cluster, spec)
    assert all_running(copy(again(spec, 1)).status.partitions)
    assert positions(target_cluster, spec, *topics) == before
    assert {topic: log_end(target, f"east.{topic}") for topic in topics} == ends, "nothing is written again"

    lose_positions(target_cluster, spec)
    for topic in topics:
        fill(source_cluster, topic, 300, codec="zstd")
    assert all_running(copy(again(spec, 2)).status.partitions)
    assert positions(target_cluster, spec, *topics) == {topic: log_end(source, topic) for topic in topics}
    for topic in topics:
        ours = ours_of(target, f"east.{topic}")
        assert len(ours) + 30 == len(contents(target, f"east.{topic}"))
        assert ours == contents(source, topic)


def test_it_also_tells_that_of_a_copy_of_which_nothing_is_remembered(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    """What is remembered is stored behind the first commit: who dies in between stores nothing."""
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    # Others may write there before a copy begins.
    fill(target_cluster, f"east.{topic_name}", 10, age=2 * HOUR_MS)
    spec = translated(source, target, topic_name)
    assert all_running(copy(spec).status.partitions)
    end = log_end(target, f"east.{topic_name}")
    lose_positions(target_cluster, spec)
    Journal(target, own(spec.topology).copies).write(f"{spec.flow.name}/east.{topic_name}/0", None)
    assert all_running(copy(again(spec, 1)).status.partitions)
    assert log_end(target, f"east.{topic_name}") == end
    # From then on it is remembered again.
    lose_positions(target_cluster, spec)
    sync_of_another(target_cluster, topic_name)
    found = copy(again(spec, 2)).at(topic_name)
    assert (found.state, code(found)) == (PartitionState.PARKED, "AB226")
    assert ours_of(target, f"east.{topic_name}") == contents(source, topic_name)


def test_under_another_name_of_its_flow_nothing_is_copied_once_more(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    copy(spec)
    end = log_end(target, f"east.{topic_name}")
    renamed = replace(again(spec), flow=replace(spec.flow, name=f"{spec.flow.name}-renamed"))
    with Running(renamed) as copying:
        (found,) = copying.settled_again().partitions
    assert (found.state, code(found)) == (PartitionState.PARKED, "AB233")
    assert log_end(target, f"east.{topic_name}") == end
    # Nothing of it is in a copy that was made anew.
    delete(target_cluster, f"east.{topic_name}")
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    assert all_running(copy(again(renamed, 2)).status.partitions)
    assert contents(target, f"east.{topic_name}") == contents(source, topic_name)


def test_records_that_the_target_has_deleted_since_are_not_copied_again(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    copy(spec)
    delete_records(target_cluster, f"east.{topic_name}", log_end(target, f"east.{topic_name}"))
    lose_positions(target_cluster, spec)
    fill(source_cluster, topic_name, 50)
    assert all_running(copy(again(spec)).status.partitions)
    assert contents(target, f"east.{topic_name}") == contents(source, topic_name)[100:]


def sync_of_another(cluster: EmbeddedCluster, topic: str, **config: str) -> Producer:
    """Write an offset sync as MirrorMaker 2 does."""
    producer = Producer(cluster.client_config() | {"log_level": "2"} | config)
    name = topic.encode()
    key = struct.pack(f">h{len(name)}si", len(name), name, 0)
    if config:
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
    producer.produce(syncs_topic("east"), key=key, value=struct.pack(">qq", 70, 70))
    assert producer.flush(SECONDS) == 0
    return producer


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_copy_whose_position_nothing_tells_parks(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    delivery: str,
) -> None:
    """Where the last word is somebody else's, and where syncs are written outside of transactions."""
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = (translated if delivery == "exactly-once" else repeating)(source, target, topic_name)
    copy(spec)
    if delivery == "exactly-once":
        sync_of_another(target_cluster, topic_name)
    lose_positions(target_cluster, spec)
    found = copy(again(spec)).at(topic_name)
    assert (found.state, code(found)) == (PartitionState.PARKED, "AB226")
    assert ("not written in a transaction of this copy" in str(found.reason)) is (delivery == "exactly-once")
    assert contents(target, f"east.{topic_name}") == contents(source, topic_name)


@pytest.mark.parametrize("ends", ["commit_transaction", "abort_transaction"])
def test_what_is_still_open_in_the_topic_of_offset_syncs_is_waited_for(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    ends: str,
) -> None:
    """When it is aborted, what was told before it holds."""
    monkeypatch.setattr(position_recovery, "_PATIENCE", 5)
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    copy(spec)
    lose_positions(target_cluster, spec)
    other = sync_of_another(target_cluster, topic_name, **{"transactional.id": f"tests-{topic_name}"})
    fill(source_cluster, topic_name, 100)
    with Running(again(spec)) as copying:
        waiting = copying.wait(lambda status: "not ended yet" in str(at(status, topic_name).reason))
        assert code(at(waiting, topic_name)) == "AB220"
        getattr(other, ends)(SECONDS)
        found = at(copying.wait(), topic_name)
    if ends == "abort_transaction":
        assert found.state is PartitionState.RUNNING
        assert assert_in_order(spec, topic_name) == 200
    else:
        assert (found.state, code(found)) == (PartitionState.PARKED, "AB226")


def test_a_sync_of_a_remote_topic_that_was_deleted_tells_nothing(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    """The new one's position was committed, and lost, before any record."""
    remote = f"east.{topic_name}"
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    copy(spec)
    delete(target_cluster, remote)
    create(target_cluster, remote, 1, REMOTE)
    delete_records(source_cluster, topic_name, 100)
    assert all_running(copy(again(spec, 1)).status.partitions)
    assert positions(target_cluster, spec, topic_name) == {topic_name: 100}
    lose_positions(target_cluster, spec)
    fill(source_cluster, topic_name, 50)
    found = copy(again(spec, 2)).at(topic_name)
    assert (found.state, code(found)) == (PartitionState.PARKED, "AB226")
    assert "it is of another remote topic" in str(found.reason)
    assert log_end(target, remote) == 0


@pytest.mark.parametrize("declared", ["park", "restart"])
def test_a_source_topic_that_was_made_anew_is_noticed(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    declared: OnRecreate,
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, on_recreate=declared))
    copy(spec)
    old = contents(target, f"east.{topic_name}")
    lose_positions(target_cluster, spec)
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name)
    # More than there were: nothing but the topic's id tells that it is another one.
    fill(source_cluster, topic_name, 150)
    found = copy(again(spec)).at(topic_name)
    if declared == "park":
        assert (found.state, code(found)) == (PartitionState.PARKED, "AB218")
        assert contents(target, f"east.{topic_name}") == old
    else:
        assert contents(target, f"east.{topic_name}") == old + contents(source, topic_name)


def test_what_a_dead_run_left_open_is_aborted(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    """The sync names the producer, as the position in the group would."""
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, commit_interval=5.0))
    with Owner(spec) as dies:
        dies.wait(lambda status: at(status, topic_name).position == 100)
        fill(source_cluster, topic_name, 300)
        deadline = time.monotonic() + SECONDS
        while len(contents(target, f"east.{topic_name}", isolation="read_uncommitted")) < 400:
            assert time.monotonic() < deadline
        dies.process.kill()
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            lose_positions(target_cluster, spec)
            break
        except KafkaException as error:
            # Its members are waited for.
            assert error.args[0].code() == KafkaError.NON_EMPTY_GROUP
            assert time.monotonic() < deadline
            time.sleep(0.5)
    assert all_running(copy(again(spec)).status.partitions)
    assert assert_in_order(spec, topic_name) == 400
    assert_repeats_only(target, f"east.{topic_name}")
